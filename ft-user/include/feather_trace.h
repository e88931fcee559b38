/*
 * feather_trace.h: trace events of C and C++ programs.
 *
 *     #include <feather_trace.h>
 *
 *     int main(void) {
 *         ft_init();
 *         FT_EVENT("order.placed", "order {0} at {1}", id, price);
 *     }
 *
 * FT_EVENT(name, format, arguments...) is one nop while it is off; its arguments are evaluated only
 * while it is on. The name is "category.name", the format is for listings and may be
 * "", or missing where there is no argument: both are string literals. Up to six arguments of any of these types follow:
 *
 *     integers, enumerations, bool, float, double, pointers   one word each
 *     char *, const char *          the text up to its NUL; NULL is empty (in C++ std::string and
 *                                   std::string_view too)
 *     ft_text(address, length)      text of this length
 *     ft_bytes(address, length)     bytes
 *
 * All arguments together take 304 bytes at most: each number 8, each text 8 more than its length. Long
 * texts are cut to what is left, and marked. An argument's name in the trace is its expression.
 *
 * Placeholders of a format are those of Rust: {} is the next argument, {0} the first one, {id} the one of this
 * expression, {id:#x} the same in hexadecimal digits. In C++ one that does not fit does not compile, nor does in C with gcc one
 * of an argument that is not there ({}, {6}); of all others in C a warning of the trace says so.
 *
 * FT_BEGIN(name, format, arguments...) and FT_END(name) tell the begin and the end of a piece of work on
 * one thread, or in one task.
 *
 * Fibers and coroutines are tasks, each with a number that no other one of the process has at the time, and
 * that is not 0: its address will do.
 *
 *     FT_TASK_NEW(task)      it is made; reports call it by the place of this
 *     FT_TASK_SWITCH(task)   this thread runs it from here on, and no longer the one before; 0: none
 *     FT_TASK_WAKE(task)     it can go on, and waits to be run
 *     FT_TASK_END(task)      it has run to its end, on this thread
 *     FT_TASK_DROP(task)     it will not run again, and has not come to its end
 *
 * Their events are "async.new", "async.switch", "async.wake", "async.polled" and "async.drop": switch them together.
 *
 * Compile as C99 or C++17 (or later) with gcc or clang, and link with libfeather_trace
 * (`pkg-config --cflags --libs feather_trace`). Executables and libraries that use this header all
 * share the one libfeather_trace.so of the process; an object that links libfeather_trace.a has buffers
 * of its own. With FT_OFF defined, and on anything but x86-64 Linux, events are compiled out; their
 * arguments are still checked, and nothing need be linked.
 *
 * A signal handler may come in the middle of an event: it may write events, walk the stack, leave by siglongjmp(), and
 * with -fnon-call-exceptions throw, also where a text cannot be read. Only what is thrown, or a thread that is ended
 * (pthread_exit), in the first event of a thread (ft_thread_init() makes it an ordinary one), in any event of a thread that has no
 * buffer because all are taken (FT_RINGS), in one that is lost or counted, or in a text that has to be cut ends the
 * program: that is not written in C++. A thread that can be cancelled anywhere (PTHREAD_CANCEL_ASYNCHRONOUS) and leaves an event so
 * can be cancelled at its cancellation points alone from then on.
 *
 * Not for objects that dlclose() unloads: their sites would stay known. In a namespace of dlmopen() ft_init() fails with ENOTSUP.
 *
 * A text is read while its event is written, by code through which no exception passes: where its address is bad and a handler of
 * SIGSEGV throws (-fnon-call-exceptions), the program is aborted, with "panic in a function that cannot unwind".
 */
#ifndef FEATHER_TRACE_H
#define FEATHER_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if !defined(__GNUC__)
#error "feather_trace.h needs gcc or clang"
#endif
#if defined(__cplusplus) && __cplusplus < 201703L
#error "feather_trace.h needs C++17 or later; compile with -std=c++17"
#endif
#if !(defined(__x86_64__) && defined(__LP64__) && defined(__linux__)) && !defined(FT_OFF)
#define FT_OFF
#endif
#if defined(__code_model_large__) && !defined(__clang__) && !defined(FT_OFF)
#error "feather_trace.h: gcc makes no sites with -mcmodel=large; compile with -mcmodel=medium, or with -DFT_OFF"
#endif

/*
 * Functions of this header are none of the program's: compilers that record, count or measure its functions leave them out
 * (-finstrument-functions, -fxray-instrument, -fpatchable-function-entry, -fprofile-arcs, --coverage).
 */
#ifndef __has_attribute
#define FT_HAS(attribute) 1
#else
#define FT_HAS(attribute) __has_attribute(attribute)
#endif
#if defined(__clang__) && FT_HAS(xray_never_instrument)
#define FT_NO_XRAY , xray_never_instrument
#else
#define FT_NO_XRAY
#endif
/* gcc does not inline one that it does not count into one that it counts. */
#if defined(__clang__) && FT_HAS(no_profile_instrument_function)
#define FT_NO_PROFILE , no_profile_instrument_function
#else
#define FT_NO_PROFILE
#endif
#if FT_HAS(patchable_function_entry)
#define FT_NO_ENTRY , patchable_function_entry(0)
#else
#define FT_NO_ENTRY
#endif
#define FT_OURS __attribute__((no_instrument_function FT_NO_XRAY FT_NO_PROFILE FT_NO_ENTRY))
#define FT_INLINE FT_OURS static inline __attribute__((always_inline, unused))

/* ---- functions ---------------------------------------------------------------------------------- */

#ifdef FT_OFF
FT_INLINE int ft_init(void) { return 0; }
FT_INLINE size_t ft_enable(const char *glob) { (void)glob; return 0; }
FT_INLINE size_t ft_disable(const char *glob) { (void)glob; return 0; }
FT_INLINE void ft_thread_init(void) {}
#else
#ifdef __cplusplus
extern "C" {
#endif
/*
 * Starts tracing: makes the buffers, enables what FT_ENABLE says, meets the agent if there is one. Starts
 * no thread. Returns 0, or the errno of what failed; the program then goes on untraced, so the result may
 * be ignored. A later call changes nothing, nor does one in a forked child. The sites of a library that is loaded later are switched when
 * it is loaded, as those of the others were.
 */
int ft_init(void);
/*
 * Enables the sites whose name matches the glob, and returns how many match and are on now. NULL matches
 * nothing. errno is 0 then, or says why one that matches is not on: EACCES or EPERM, the process may not write its text;
 * EBUSY, something else has changed it; ENOEXEC, the nops of a compiler call nothing. Not for signal handlers, nor, as
 * dlopen, for a child that a process of several threads has forked: it takes the dynamic linker's lock.
 */
size_t ft_enable(const char *glob);
/* Disables the sites whose name matches the glob, and returns how many match and are off now; errno as for ft_enable. */
size_t ft_disable(const char *glob);
/*
 * Gives the calling thread its buffer now, with memory behind each page, and not with its first event. That takes
 * milliseconds; no later event makes a system call or takes a page fault in the buffer.
 */
void ft_thread_init(void);
#ifdef __cplusplus
}
#endif
#endif

/* ---- text of a given length --------------------------------------------------------------------- */

struct ft_text_arg { const char *address; size_t length; };
struct ft_bytes_arg { const void *address; size_t length; };

FT_INLINE struct ft_text_arg ft_text(const char *address, size_t length) {
    struct ft_text_arg text = { address, length };
    return text;
}
FT_INLINE struct ft_bytes_arg ft_bytes(const void *address, size_t length) {
    struct ft_bytes_arg bytes = { address, length };
    return bytes;
}

/* ---- what follows is not for use by itself ------------------------------------------------------ */

/* Layout of a site's metadata: `SiteMeta` of ft-user/src/layout/site.rs. */
struct ft_str { const char *address; uint64_t length; };
struct ft_arg { struct ft_str name; uint8_t type; uint8_t zero[7]; };
struct ft_meta {
    uint16_t bytes, kind;
    uint32_t line;
    struct ft_str name, file, format;
    const struct ft_arg *args;
    uint64_t arg_count;
};

enum { FT_UNSIGNED = 1, FT_SIGNED, FT_FLOAT, FT_BOOL, FT_POINTER, FT_STR = 7, FT_BYTES = 8 };
enum { FT_KIND_EVENT = 0, FT_KIND_BEGIN = 1, FT_KIND_END = 2 };
enum {
    FT_KIND_TASK_NEW = 15, FT_KIND_TASK_POLLED = 17, FT_KIND_TASK_WAKE = 18, FT_KIND_TASK_DROP = 19,
    FT_KIND_TASK_SWITCH = 22
};

/* The two words of one argument: number and nothing, or address and length (-1: up to the NUL). */
typedef long long ft_pair __attribute__((vector_size(16)));

FT_INLINE uint64_t ft_word_unsigned(uint64_t value) { return value; }
FT_INLINE uint64_t ft_word_signed(int64_t value) { return (uint64_t)value; }
FT_INLINE uint64_t ft_word_pointer(const volatile void *value) { return (uint64_t)(uintptr_t)value; }
FT_INLINE uint64_t ft_word_float(double value) {
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    return word;
}
FT_INLINE ft_pair ft_pair_of(uint64_t word, uint64_t extent) {
    ft_pair pair = { (long long)word, (long long)extent };
    return pair;
}
FT_INLINE ft_pair ft_pair_string(const char *text) { return ft_pair_of(ft_word_pointer(text), UINT64_MAX); }
FT_INLINE ft_pair ft_pair_text(struct ft_text_arg text) {
    return ft_pair_of(ft_word_pointer(text.address), text.length);
}
FT_INLINE ft_pair ft_pair_bytes(struct ft_bytes_arg bytes) {
    return ft_pair_of(ft_word_pointer(bytes.address), bytes.length);
}

#define FT_LITERAL(text) { "" text "", sizeof("" text "") - 1 }

/* `m` of each argument; name and format come first, so that there is no empty list. */
#define FT_EACH_0(m, name, format)
#define FT_EACH_1(m, name, format, a) m(a)
#define FT_EACH_2(m, name, format, a, b) m(a) m(b)
#define FT_EACH_3(m, name, format, a, b, c) m(a) m(b) m(c)
#define FT_EACH_4(m, name, format, a, b, c, d) m(a) m(b) m(c) m(d)
#define FT_EACH_5(m, name, format, a, b, c, d, e) m(a) m(b) m(c) m(d) m(e)
#define FT_EACH_6(m, name, format, a, b, c, d, e, f) m(a) m(b) m(c) m(d) m(e) m(f)

/* How many arguments follow the format; MANY for 7 to 14, NAME where there is no format. */
#define FT_COUNT(...)                                                                                 \
    FT_COUNT_(__VA_ARGS__, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, 6, 5, 4, 3, 2, 1, 0, NAME, ~)
#define FT_COUNT_(name, format, a, b, c, d, e, f, g, h, i, j, k, l, m, n, count, ...) count
#define FT_NAME(name, ...) name
#define FT_FORMAT(...) FT_FORMAT_(__VA_ARGS__, ~)
#define FT_FORMAT_(name, format, ...) format

#ifdef __cplusplus

#include <string>
#include <string_view>
#include <type_traits>

/*
 * A site's metadata is a static member of a template in a namespace without a name, and so a symbol that
 * is local to its object also where the site is in an inline function or a template: the record of the
 * site refers to it relative to itself, which a symbol that another object may define does not allow.
 */
namespace {
template <class T> constexpr bool ft_is_text =
    std::is_same_v<T, char *> || std::is_same_v<T, const char *> || std::is_same_v<T, ft_text_arg> ||
    std::is_same_v<T, ft_bytes_arg> || std::is_same_v<T, std::string> ||
    std::is_same_v<T, std::string_view>;

template <class T> FT_OURS constexpr bool ft_is_signed() {
    if constexpr (std::is_enum_v<T>) return std::is_signed_v<std::underlying_type_t<T>>;
    else return std::is_signed_v<T>;
}

template <class T> FT_OURS constexpr uint8_t ft_type() {
    if constexpr (std::is_same_v<T, ft_bytes_arg>) return FT_BYTES;
    else if constexpr (ft_is_text<T>) return FT_STR;
    else if constexpr (std::is_same_v<T, bool>) return FT_BOOL;
    else if constexpr (std::is_floating_point_v<T>) return FT_FLOAT;
    else if constexpr (std::is_pointer_v<T> || std::is_null_pointer_v<T>) return FT_POINTER;
    else {
        static_assert(std::is_integral_v<T> || std::is_enum_v<T>, "an event cannot carry this type");
        static_assert(sizeof(T) <= 8, "an argument is at most 64 bits wide");
        return ft_is_signed<T>() ? FT_SIGNED : FT_UNSIGNED;
    }
}

template <class T> FT_INLINE ft_pair ft_pair_cpp(const T &value) {
    using V = std::decay_t<T>;
    if constexpr (std::is_same_v<V, ft_bytes_arg>) return ft_pair_bytes(value);
    else if constexpr (std::is_same_v<V, ft_text_arg>) return ft_pair_text(value);
    else if constexpr (std::is_same_v<V, char *> || std::is_same_v<V, const char *>) {
        return ft_pair_string(value);
    } else if constexpr (ft_is_text<V>) {
        return ft_pair_of(ft_word_pointer(value.data()), value.size());
    } else if constexpr (std::is_floating_point_v<V>) {
        return ft_pair_of(ft_word_float(static_cast<double>(value)), 0);
    } else if constexpr (std::is_pointer_v<V>) {
        return ft_pair_of(reinterpret_cast<uint64_t>(static_cast<V>(value)), 0);
    } else if constexpr (std::is_null_pointer_v<V>) {
        return ft_pair_of(0, 0);
    } else {
        return ft_pair_of(static_cast<uint64_t>(value), 0);
    }
}
template <class T> FT_INLINE uint64_t ft_word_cpp(const T &value) {
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) return static_cast<uint64_t>(value);
    else return static_cast<uint64_t>(ft_pair_cpp(value)[0]);
}

FT_OURS constexpr bool ft_has_category(ft_str name) {
    for (uint64_t i = 0; i < name.length; ++i) {
        if (name.address[i] == '.') return i > 0 && i + 1 < name.length;
    }
    return false;
}

/* What is wrong with a format, by the rules of ft-user/src/layout/format.rs, which ft_fault_of follows. */
enum ft_fault { FT_FITS, FT_STRAY_BRACE, FT_NO_ARGUMENT, FT_NO_SPEC, FT_WRONG_TYPE };

FT_OURS constexpr char ft_at(ft_str text, uint64_t i) { return i < text.length ? text.address[i] : '\0'; }
FT_OURS constexpr bool ft_is_align(char c) { return c == '<' || c == '^' || c == '>'; }

/* A number, and `at` behind it; 0 where there is none, and -1 where it is too large. */
FT_OURS constexpr int ft_number(ft_str text, uint64_t &at) {
    int number = 0;
    for (; ft_at(text, at) >= '0' && ft_at(text, at) <= '9'; ++at) {
        number = number * 10 + (ft_at(text, at) - '0');
        if (number > 1000) return -1;
    }
    return number;
}

/* The letter of a specification, 0 where it has none, and -1 where it is none. */
FT_OURS constexpr int ft_letter(ft_str spec) {
    const unsigned char first = static_cast<unsigned char>(ft_at(spec, 0));
    const uint64_t fill = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    uint64_t at = 0;
    if (ft_is_align(ft_at(spec, fill))) at = fill + 1;
    else if (ft_is_align(ft_at(spec, 0))) at = 1;
    if (ft_at(spec, at) == '+') ++at;
    if (ft_at(spec, at) == '#') ++at;
    if (ft_at(spec, at) == '0') ++at;
    if (ft_number(spec, at) < 0) return -1;
    if (ft_at(spec, at) == '.') {
        const uint64_t from = ++at;
        if (ft_number(spec, at) < 0 || at == from) return -1;
    }
    if (at == spec.length) return 0;
    for (const char letter : { '?', 'x', 'X', 'o', 'b', 'e', 'E', 'p' }) {
        if (ft_at(spec, at) == letter && at + 1 == spec.length) return letter;
    }
    return -1;
}

FT_OURS constexpr bool ft_suits(int letter, uint8_t type) {
    const bool is_integer = type == FT_UNSIGNED || type == FT_SIGNED;
    switch (letter) {
    case 0: case '?': return true;
    case 'e': case 'E': return is_integer || type == FT_FLOAT;
    case 'p': return type == FT_POINTER;
    default: return is_integer || type == FT_POINTER;
    }
}

/* Blanks behind a comma do not count. */
FT_OURS constexpr bool ft_is_same(ft_str a, ft_str b) {
    uint64_t i = 0, j = 0;
    while (i < a.length && j < b.length) {
        if (a.address[i] != b.address[j]) return false;
        const bool is_comma = a.address[i] == ',';
        ++i, ++j;
        while (is_comma && ft_at(a, i) == ' ') ++i;
        while (is_comma && ft_at(b, j) == ' ') ++j;
    }
    return i == a.length && j == b.length;
}

/* Which of so many arguments a placeholder means; no less than their number if it is none. */
template <class Here> FT_OURS constexpr uint64_t ft_index(ft_str which, uint64_t count) {
    uint64_t at = 0, index = 0;
    const int position = ft_number(which, at);
    if (position >= 0 && at > 0 && at == which.length) return static_cast<uint64_t>(position);
    while (index < count && !ft_is_same(Here::argument(index), which)) ++index;
    return index;
}

template <class Here> FT_OURS constexpr ft_fault ft_fault_of(const uint8_t *types, uint64_t count) {
    const ft_str format = Here::format();
    uint64_t following = 0;
    for (uint64_t at = 0; at < format.length;) {
        const char brace = ft_at(format, at);
        if (brace != '{' && brace != '}') {
            ++at;
            continue;
        }
        if (ft_at(format, at + 1) == brace) {
            at += 2;
            continue;
        }
        uint64_t end = at + 1, colon = 0;
        while (end < format.length && ft_at(format, end) != '}') {
            const bool is_path = ft_at(format, end - 1) == ':' || ft_at(format, end + 1) == ':';
            if (ft_at(format, end) == ':' && colon == 0 && !is_path) colon = end;
            ++end;
        }
        if (brace == '}' || end == format.length) return FT_STRAY_BRACE;
        const uint64_t behind = colon > 0 ? colon : end;
        const ft_str which = { format.address + at + 1, behind - at - 1 };
        const ft_str spec = { format.address + behind + (colon > 0), end - behind - (colon > 0) };
        const uint64_t index = which.length == 0 ? following++ : ft_index<Here>(which, count);
        if (index >= count) return FT_NO_ARGUMENT;
        const int letter = ft_letter(spec);
        if (letter < 0) return FT_NO_SPEC;
        if (!ft_suits(letter, types[index])) return FT_WRONG_TYPE;
        at = end + 1;
    }
    return FT_FITS;
}

template <size_t N> struct ft_args { ft_arg list[N + 1]; };

template <class Here, class... Args> FT_OURS constexpr ft_args<sizeof...(Args)> ft_describe() {
    constexpr uint8_t types[] = { ft_type<Args>()..., 0 };
    ft_args<sizeof...(Args)> args = {};
    for (size_t i = 0; i < sizeof...(Args); ++i) {
        args.list[i].name = Here::argument(i);
        args.list[i].type = types[i];
    }
    return args;
}

template <class Here, class... Args> struct ft_site {
    static_assert(ft_has_category(Here::name()), "the name of an event is \"category.name\"");
    static constexpr uint8_t types[] = { ft_type<Args>()..., 0 };
    static constexpr ft_fault fault = ft_fault_of<Here>(types, sizeof...(Args));
    static constexpr bool has_text = (ft_is_text<Args> || ... || false);
    static constexpr ft_args<sizeof...(Args)> args = ft_describe<Here, Args...>();
    static constexpr ft_meta meta = {
        sizeof(ft_meta), Here::kind(), Here::line(), Here::name(), Here::file(), Here::format(),
        args.list, sizeof...(Args),
    };
    static_assert(fault != FT_STRAY_BRACE, "a format has a brace that is no placeholder; {{ and }} are braces");
    static_assert(fault != FT_NO_ARGUMENT, "a format refers to an argument that the event does not have");
    static_assert(fault != FT_NO_SPEC, "a placeholder of a format is {name:spec}, with numbers for width and precision");
    static_assert(fault != FT_WRONG_TYPE, "an argument of this type cannot be shown as its placeholder says");
};
} /* namespace */

#define FT_WORD(x) ft_word_cpp(x)
#define FT_PAIR(x) ft_pair_cpp(x)
#define FT_DECAYED(x) , std::decay_t<decltype(x)>
#define FT_NAMED(x) FT_LITERAL(#x),
#define FT_DESCRIBE(n, site_kind, ...)                                                                \
    struct ft_here {                                                                                  \
        FT_OURS static constexpr uint16_t kind() { return site_kind; }                                \
        FT_OURS static constexpr uint32_t line() { return __LINE__; }                                 \
        FT_OURS static constexpr ft_str name() { return FT_LITERAL(FT_NAME(__VA_ARGS__)); }           \
        FT_OURS static constexpr ft_str file() { return FT_LITERAL(__FILE__); }                       \
        FT_OURS static constexpr ft_str format() { return FT_LITERAL(FT_FORMAT(__VA_ARGS__)); }       \
        FT_OURS static constexpr ft_str argument(size_t i) {                                          \
            constexpr ft_str names[] = { FT_EACH_##n(FT_NAMED, __VA_ARGS__) { "", 0 } };              \
            return names[i];                                                                          \
        }                                                                                             \
    };                                                                                                \
    using ft_this = ft_site<ft_here FT_EACH_##n(FT_DECAYED, __VA_ARGS__)>;
#define FT_META ft_this::meta
#define FT_IF_TEXT(n, ...) if constexpr (ft_this::has_text)

#else /* C */

/*
 * By the type of an expression. What is none of these must be a pointer, or does not compile. C99 has no
 * _Generic, but every compiler that this header is for has it there as well.
 */
#define FT_SELECT(x, u, i, real, boolean, string, text, bytes, pointer, wide)                         \
    __extension__ _Generic((x),                                                                       \
        _Bool: boolean, float: real, double: real, long double: real,                                 \
        char: i, signed char: i, short: i, int: i, long: i, long long: i,                             \
        unsigned char: u, unsigned short: u, unsigned int: u, unsigned long: u,                       \
        unsigned long long: u, __int128: wide, unsigned __int128: wide,                               \
        char *: string, const char *: string,                                                         \
        struct ft_text_arg: text, struct ft_bytes_arg: bytes, default: pointer)

/* A site with text takes pairs alone; these only complete the selection of a word. */
FT_INLINE uint64_t ft_word_text(struct ft_text_arg text) { return ft_word_pointer(text.address); }
FT_INLINE uint64_t ft_word_bytes(struct ft_bytes_arg bytes) { return ft_word_pointer(bytes.address); }
FT_INLINE ft_pair ft_pair_unsigned(uint64_t value) { return ft_pair_of(value, 0); }
FT_INLINE ft_pair ft_pair_signed(int64_t value) { return ft_pair_of((uint64_t)value, 0); }
FT_INLINE ft_pair ft_pair_float(double value) { return ft_pair_of(ft_word_float(value), 0); }
FT_INLINE ft_pair ft_pair_pointer(const volatile void *value) {
    return ft_pair_of(ft_word_pointer(value), 0);
}

#define FT_WORD(x)                                                                                    \
    FT_SELECT(x, ft_word_unsigned, ft_word_signed, ft_word_float, ft_word_unsigned, ft_word_pointer,  \
              ft_word_text, ft_word_bytes, ft_word_pointer, ft_word_unsigned)(x)
#define FT_PAIR(x)                                                                                    \
    FT_SELECT(x, ft_pair_unsigned, ft_pair_signed, ft_pair_float, ft_pair_unsigned, ft_pair_string,   \
              ft_pair_text, ft_pair_bytes, ft_pair_pointer, ft_pair_unsigned)(x)
#define FT_TYPE(x)                                                                                    \
    FT_SELECT(x, FT_UNSIGNED, FT_SIGNED, FT_FLOAT, FT_BOOL, FT_STR, FT_STR, FT_BYTES, FT_POINTER, 0)
#define FT_CHECK_TYPE(x)                                                                              \
    __extension__ _Static_assert(FT_TYPE(x) != 0, "an argument is at most 64 bits wide");
#define FT_OR_TEXT(x) || FT_TYPE(x) >= FT_STR
#define FT_NAMED(x) { FT_LITERAL(#x), FT_TYPE(x), { 0 } },
#define FT_DESCRIBE(n, site_kind, ...)                                                                \
    FT_EACH_##n(FT_CHECK_TYPE, __VA_ARGS__)                                                           \
    static const struct ft_arg ft_args[] = {                                                          \
        FT_EACH_##n(FT_NAMED, __VA_ARGS__) { { "", 0 }, 0, { 0 } }                                    \
    };                                                                                                \
    static const struct ft_meta ft_here = {                                                           \
        sizeof(struct ft_meta), site_kind, __LINE__, FT_LITERAL(FT_NAME(__VA_ARGS__)),                \
        FT_LITERAL(__FILE__), FT_LITERAL(FT_FORMAT(__VA_ARGS__)), ft_args, n                          \
    };
#define FT_META ft_here
/* Both compilers see through this, also without optimisation. */
#if defined(__has_attribute)
#if __has_attribute(error)
void ft_no_category(void) __attribute__((error("the name of an event is \"category.name\"")));
#define FT_CHECK_NAME(name)                                                                           \
    if (!__builtin_strchr("" name, '.')) ft_no_category();
#endif
#endif
#ifndef FT_CHECK_NAME
#define FT_CHECK_NAME(name)
#endif
/*
 * gcc also sees through searches of a literal, so there a format that asks for an argument that is not there does not compile. Formats with
 * braces of their own are left to the trace. After `n` pairs of braces the next one must be one of those that are appended.
 */
#if defined(__GNUC__) && !defined(__clang__)
void ft_no_argument(void)
    __attribute__((error("a format refers to an argument that the event does not have")));
#define FT_SEVEN "{}{}{}{}{}{}{}"
#define FT_BEHIND(text) (__builtin_strstr(text, "{}") + 2)
#define FT_BEHIND_0(text) FT_BEHIND(text)
#define FT_BEHIND_1(text) FT_BEHIND(FT_BEHIND_0(text))
#define FT_BEHIND_2(text) FT_BEHIND(FT_BEHIND_1(text))
#define FT_BEHIND_3(text) FT_BEHIND(FT_BEHIND_2(text))
#define FT_BEHIND_4(text) FT_BEHIND(FT_BEHIND_3(text))
#define FT_BEHIND_5(text) FT_BEHIND(FT_BEHIND_4(text))
#define FT_BEHIND_6(text) FT_BEHIND(FT_BEHIND_5(text))
#define FT_ASKS(n, text) || __builtin_strstr(text, "{" #n "}") || __builtin_strstr(text, "{" #n ":")
#define FT_FROM_6(text) FT_ASKS(6, text) FT_ASKS(7, text) FT_ASKS(8, text) FT_ASKS(9, text)
#define FT_FROM_5(text) FT_ASKS(5, text) FT_FROM_6(text)
#define FT_FROM_4(text) FT_ASKS(4, text) FT_FROM_5(text)
#define FT_FROM_3(text) FT_ASKS(3, text) FT_FROM_4(text)
#define FT_FROM_2(text) FT_ASKS(2, text) FT_FROM_3(text)
#define FT_FROM_1(text) FT_ASKS(1, text) FT_FROM_2(text)
#define FT_FROM_0(text) FT_ASKS(0, text) FT_FROM_1(text)
#define FT_CHECK_FORMAT(n, format)                                                                    \
    if (!__builtin_strstr("" format, "{{")                                                            \
        && (__builtin_strlen(FT_BEHIND_##n("" format FT_SEVEN)) >= sizeof(FT_SEVEN) - 1               \
            FT_FROM_##n("" format)))                                                                  \
        ft_no_argument();
#else
#define FT_CHECK_FORMAT(n, format)
#endif
#define FT_IF_TEXT(n, ...) if (0 FT_EACH_##n(FT_OR_TEXT, __VA_ARGS__))

#endif

#ifdef FT_OFF

#define FT_CHECK(x) (void)FT_PAIR(x);
#define FT_SITE(n, kind, id, ...)                                                                     \
    do {                                                                                              \
        if (0) {                                                                                      \
            FT_EACH_##n(FT_CHECK, __VA_ARGS__)                                                        \
        }                                                                                             \
    } while (0)

#else

/*
 * Lists the sites of the object that this becomes a part of, as ft-user/src/arch/x86_64.rs does; once,
 * however many of its sources use this header. The section of the sites is opened so that its bounds
 * exist where there is no site.
 */
__asm__(".pushsection ft_sites,\"aR\",@progbits\n\t"
        ".popsection\n\t"
        ".pushsection .note.feather_trace,\"aGR\",@note,ft_user_v1_note,comdat\n\t"
        ".p2align 2\n\t"
        ".hidden __start_ft_sites\n\t"
        ".hidden __stop_ft_sites\n\t"
        ".weak __start_ft_sites\n\t"
        ".weak __stop_ft_sites\n\t"
        ".long 13, 8, 0x46540001\n\t"
        ".asciz \"FeatherTrace\"\n\t"
        ".p2align 2\n\t"
        ".long __start_ft_sites - .\n\t"
        ".long __stop_ft_sites - .\n\t"
        ".popsection\n\t"
        /* A constructor, before those of the object itself: nothing tells otherwise that it was loaded. */
        ".pushsection .init_array.00101,\"awG\",@init_array,ft_user_v1_note,comdat\n\t"
        ".p2align 3\n\t"
        ".quad ft_loaded_v1\n\t"
        ".popsection");

/*
 * The trigger: a nop of eight bytes while it is off. Its last five are a `jmp` to the cold block, before which
 * the nop ends while the trigger is on (ft-user/src/trigger.rs). "?": its record goes where its function goes,
 * also when the linker keeps one of several copies.
 */
#define FT_TRIGGER                                                                                    \
    "2:\n\t.long 0xe9841f0f\n\t.long %l1 - 3f\n3:\n\t"                                                      \
    ".pushsection ft_sites,\"aR?\",@progbits\n\t"                                                     \
    ".p2align 2\n\t.short 16, 1\n\t.long 2b - ., %c0 - ., 0\n\t.popsection"

/*
 * The call of a write: below the red zone, the words of the arguments; `rax` is the metadata. The write
 * preserves every register but that, so to the compiler the block changes nothing. Through the global
 * offset table, since lazy binding would change registers.
 *
 * What moves the stack pointer stands behind the functions of the section, with an entry of its own in
 * .eh_frame: the assembly cannot know how the function around it finds its frame, or whether it is described
 * at all. To an unwinder this code is a function that was called from its `jmp`, with nothing on the stack but
 * `frame` bytes. It takes up to 2 to the `size` bytes, and is aligned to so many, so that the jump is found from
 * any address in it. ft-user/src/arch/frame.rs explains the entry.
 */
#define FT_CALL(function, frame, size, stores)                                                        \
    "20:\n\tjmp 21f\n22:\n\t.subsection 1\n\t.p2align " #size "\n"                                    \
    "21:\tleaq -" #frame "(%%rsp), %%rsp\n23:\tmovq %%rax, (%%rsp)\n24:\t" stores                     \
    "leaq %c0(%%rip), %%rax\n\tcall *" #function "@GOTPCREL(%%rip)\n\tmovq (%%rsp), %%rax\n"          \
    "25:\tleaq " #frame "(%%rsp), %%rsp\n26:\tjmp 22b\n27:\n\t.subsection 0\n\t"                      \
    ".pushsection .eh_frame,\"a\",@progbits\n"                                                        \
    "28:\t.long 30f - 29f\n29:\t.long 0\n\t.byte 1\n\t.asciz \"zR\"\n\t"                              \
    ".byte 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 0, 0, 0, 0, 0\n"                                            \
    "30:\t.long 32f - 31f\n31:\t.long 31b - 28b, 21b - ., 27b - 21b\n\t"                              \
    ".byte 0, 0x16, 16, 12, 0x80, 0, 0x0b\n\t.short -(1 << " #size ")\n\t"                            \
    ".byte 0x1a, 0x0d\n\t.long 20b + 1 - 21b\n\t.byte 0x22\n\t"                                       \
    ".byte 0x40 + 23b - 21b, 0x0e\n\t.uleb128 " #frame "\n\t"                                         \
    ".byte 0x40 + 24b - 23b, 0x80\n\t.uleb128 " #frame " / 8\n\t"                                     \
    ".byte 0x40 + 25b - 24b, 0xc0\n\t"                                                                \
    ".byte 0x40 + 26b - 25b, 0x0e, 0\n\t.balign 8\n32:\t.popsection"

/* From the fourth word on they wait in vector registers, of which there are enough. */
FT_INLINE double ft_vector(uint64_t word) {
    double vector;
    __asm__ volatile("movq %1, %0" : "=x"(vector) : "r"(word));
    return vector;
}

#define FT_LOCALS_0(name, format)
#define FT_LOCALS_1(name, format, a) const uint64_t ft_1 = FT_WORD(a);
#define FT_LOCALS_2(name, format, a, b) FT_LOCALS_1(name, format, a) const uint64_t ft_2 = FT_WORD(b);
#define FT_LOCALS_3(name, format, a, b, c)                                                            \
    FT_LOCALS_2(name, format, a, b) const uint64_t ft_3 = FT_WORD(c);
#define FT_LOCALS_4(name, format, a, b, c, d)                                                         \
    FT_LOCALS_3(name, format, a, b, c) const double ft_4 = ft_vector(FT_WORD(d));
#define FT_LOCALS_5(name, format, a, b, c, d, e)                                                      \
    FT_LOCALS_4(name, format, a, b, c, d) const double ft_5 = ft_vector(FT_WORD(e));
#define FT_LOCALS_6(name, format, a, b, c, d, e, f)                                                   \
    FT_LOCALS_5(name, format, a, b, c, d, e) const double ft_6 = ft_vector(FT_WORD(f));

#define FT_STORE_0
#define FT_STORE_1 "movq %1, 8(%%rsp)\n\t"
#define FT_STORE_2 FT_STORE_1 "movq %2, 16(%%rsp)\n\t"
#define FT_STORE_3 FT_STORE_2 "movq %3, 24(%%rsp)\n\t"
#define FT_STORE_4 FT_STORE_3 "movq %4, 32(%%rsp)\n\t"
#define FT_STORE_5 FT_STORE_4 "movq %5, 40(%%rsp)\n\t"
#define FT_STORE_6 FT_STORE_5 "movq %6, 48(%%rsp)\n\t"
#define FT_INPUT_0
#define FT_INPUT_1 , "r"(ft_1)
#define FT_INPUT_2 FT_INPUT_1, "r"(ft_2)
#define FT_INPUT_3 FT_INPUT_2, "r"(ft_3)
#define FT_INPUT_4 FT_INPUT_3, "x"(ft_4)
#define FT_INPUT_5 FT_INPUT_4, "x"(ft_5)
#define FT_INPUT_6 FT_INPUT_5, "x"(ft_6)
#define FT_FRAME_0 136
#define FT_FRAME_1 144
#define FT_FRAME_2 152
#define FT_FRAME_3 160
#define FT_FRAME_4 168
#define FT_FRAME_5 176
#define FT_FRAME_6 184

/* As above with pairs, for sites with text. */
#define FT_STORE_PAIR_1 "movups %1, 8(%%rsp)\n\t"
#define FT_STORE_PAIR_2 FT_STORE_PAIR_1 "movups %2, 24(%%rsp)\n\t"
#define FT_STORE_PAIR_3 FT_STORE_PAIR_2 "movups %3, 40(%%rsp)\n\t"
#define FT_STORE_PAIR_4 FT_STORE_PAIR_3 "movups %4, 56(%%rsp)\n\t"
#define FT_STORE_PAIR_5 FT_STORE_PAIR_4 "movups %5, 72(%%rsp)\n\t"
#define FT_STORE_PAIR_6 FT_STORE_PAIR_5 "movups %6, 88(%%rsp)\n\t"
#define FT_PAIR_INPUT_1 , "x"(ft_1)
#define FT_PAIR_INPUT_2 FT_PAIR_INPUT_1, "x"(ft_2)
#define FT_PAIR_INPUT_3 FT_PAIR_INPUT_2, "x"(ft_3)
#define FT_PAIR_INPUT_4 FT_PAIR_INPUT_3, "x"(ft_4)
#define FT_PAIR_INPUT_5 FT_PAIR_INPUT_4, "x"(ft_5)
#define FT_PAIR_INPUT_6 FT_PAIR_INPUT_5, "x"(ft_6)
#define FT_PAIR_FRAME_1 152
#define FT_PAIR_FRAME_2 168
#define FT_PAIR_FRAME_3 184
#define FT_PAIR_FRAME_4 200
#define FT_PAIR_FRAME_5 216
#define FT_PAIR_FRAME_6 232

/* Bytes that it takes, as a power of 2: up to 60 with three arguments, up to 78 with more. */
#define FT_SIZE_0 6
#define FT_SIZE_1 6
#define FT_SIZE_2 6
#define FT_SIZE_3 6
#define FT_SIZE_4 7
#define FT_SIZE_5 7
#define FT_SIZE_6 7

/* "inline": to gcc, which counts lines to know what inlining costs, this is one instruction. */
#if defined(__clang__) || __GNUC__ >= 9
#define FT_ASM __asm__ __inline volatile
#else
#define FT_ASM __asm__ volatile
#endif
#define FT_WRITE(n, meta)                                                                             \
    FT_WRITE_(ft_event_v1_##n, FT_FRAME_##n, FT_SIZE_##n, FT_STORE_##n, FT_INPUT_##n, meta)
#define FT_WRITE_PAIRS(n, meta)                                                                       \
    FT_WRITE_(ft_event_v1_text, FT_PAIR_FRAME_##n, FT_SIZE_##n, FT_STORE_PAIR_##n, FT_PAIR_INPUT_##n, meta)
#define FT_WRITE_(function, frame, size, stores, inputs, meta)                                        \
    FT_ASM(FT_CALL(function, frame, size, stores) : : "i"(&meta) inputs : "memory", "cc");

/* In C++ one expression for all pairs of a site: what an argument makes must live until the call. */
#ifdef __cplusplus
#define FT_TEXT_CALL(n, ...) ft_text_##n<FT_META>(FT_PAIRS_##n(__VA_ARGS__))
namespace {
#define FT_TEXT_WRITER(n, ...)                                                                        \
    template <const ft_meta &meta> FT_INLINE void ft_text_##n(__VA_ARGS__) { FT_WRITE_PAIRS(n, meta) }
FT_TEXT_WRITER(1, ft_pair ft_1)
FT_TEXT_WRITER(2, ft_pair ft_1, ft_pair ft_2)
FT_TEXT_WRITER(3, ft_pair ft_1, ft_pair ft_2, ft_pair ft_3)
FT_TEXT_WRITER(4, ft_pair ft_1, ft_pair ft_2, ft_pair ft_3, ft_pair ft_4)
FT_TEXT_WRITER(5, ft_pair ft_1, ft_pair ft_2, ft_pair ft_3, ft_pair ft_4, ft_pair ft_5)
FT_TEXT_WRITER(6, ft_pair ft_1, ft_pair ft_2, ft_pair ft_3, ft_pair ft_4, ft_pair ft_5, ft_pair ft_6)
#undef FT_TEXT_WRITER
} /* namespace */
#define FT_PAIRS_1(name, format, a) FT_PAIR(a)
#define FT_PAIRS_2(name, format, a, b) FT_PAIR(a), FT_PAIR(b)
#define FT_PAIRS_3(name, format, a, b, c) FT_PAIR(a), FT_PAIR(b), FT_PAIR(c)
#define FT_PAIRS_4(name, format, a, b, c, d) FT_PAIR(a), FT_PAIR(b), FT_PAIR(c), FT_PAIR(d)
#define FT_PAIRS_5(name, format, a, b, c, d, e)                                                       \
    FT_PAIR(a), FT_PAIR(b), FT_PAIR(c), FT_PAIR(d), FT_PAIR(e)
#define FT_PAIRS_6(name, format, a, b, c, d, e, f)                                                    \
    FT_PAIR(a), FT_PAIR(b), FT_PAIR(c), FT_PAIR(d), FT_PAIR(e), FT_PAIR(f)
#else
#define FT_TEXT_CALL(n, ...) FT_PAIRS_##n(__VA_ARGS__) FT_WRITE_PAIRS(n, FT_META)
#define FT_PAIRS_1(name, format, a) const ft_pair ft_1 = FT_PAIR(a);
#define FT_PAIRS_2(name, format, a, b) FT_PAIRS_1(name, format, a) const ft_pair ft_2 = FT_PAIR(b);
#define FT_PAIRS_3(name, format, a, b, c)                                                             \
    FT_PAIRS_2(name, format, a, b) const ft_pair ft_3 = FT_PAIR(c);
#define FT_PAIRS_4(name, format, a, b, c, d)                                                          \
    FT_PAIRS_3(name, format, a, b, c) const ft_pair ft_4 = FT_PAIR(d);
#define FT_PAIRS_5(name, format, a, b, c, d, e)                                                       \
    FT_PAIRS_4(name, format, a, b, c, d) const ft_pair ft_5 = FT_PAIR(e);
#define FT_PAIRS_6(name, format, a, b, c, d, e, f)                                                    \
    FT_PAIRS_5(name, format, a, b, c, d, e) const ft_pair ft_6 = FT_PAIR(f);
#endif

/* No argument, no text. */
#define FT_TEXT_0(...)
#define FT_TEXT_1(...) FT_IF_TEXT(1, __VA_ARGS__) { FT_TEXT_CALL(1, __VA_ARGS__); } else
#define FT_TEXT_2(...) FT_IF_TEXT(2, __VA_ARGS__) { FT_TEXT_CALL(2, __VA_ARGS__); } else
#define FT_TEXT_3(...) FT_IF_TEXT(3, __VA_ARGS__) { FT_TEXT_CALL(3, __VA_ARGS__); } else
#define FT_TEXT_4(...) FT_IF_TEXT(4, __VA_ARGS__) { FT_TEXT_CALL(4, __VA_ARGS__); } else
#define FT_TEXT_5(...) FT_IF_TEXT(5, __VA_ARGS__) { FT_TEXT_CALL(5, __VA_ARGS__); } else
#define FT_TEXT_6(...) FT_IF_TEXT(6, __VA_ARGS__) { FT_TEXT_CALL(6, __VA_ARGS__); } else

#define FT_COLD_BLOCK(n, ...)                                                                         \
    FT_TEXT_##n(__VA_ARGS__) {                                                                        \
        FT_LOCALS_##n(__VA_ARGS__)                                                                    \
        FT_WRITE(n, FT_META)                                                                          \
    }

#ifdef __cplusplus
/*
 * A function of its own: clang takes each label of a function for a possible target of each `asm goto` in
 * it (clang 14 does), and refuses those that would jump over an initialisation.
 */
namespace {
template <const ft_meta &meta> FT_INLINE bool ft_is_on() {
    __asm__ goto(FT_TRIGGER : : "i"(&meta) : "cc" : on);
    return false;
on:
    return true;
}
} /* namespace */
#define FT_SITE(n, kind, id, ...)                                                                     \
    do {                                                                                              \
        FT_DESCRIBE(n, kind, __VA_ARGS__)                                                             \
        if (__builtin_expect(ft_is_on<FT_META>(), 0)) {                                               \
            FT_COLD_BLOCK(n, __VA_ARGS__)                                                             \
        }                                                                                             \
    } while (0)
#else
/* In place: without optimisation a function of C cannot take the metadata as a constant. */
#ifdef __clang__
#define FT_COLD
#else
#define FT_COLD __attribute__((cold))
#endif
#define FT_SITE(n, kind, id, ...)                                                                     \
    do {                                                                                              \
        FT_DESCRIBE(n, kind, __VA_ARGS__)                                                             \
        FT_CHECK_NAME(FT_NAME(__VA_ARGS__))                                                           \
        FT_CHECK_FORMAT(n, FT_FORMAT(__VA_ARGS__))                                                    \
        __asm__ goto(FT_TRIGGER : : "i"(&FT_META) : "cc" : ft_on_##id);                               \
        break;                                                                                        \
    ft_on_##id: FT_COLD;                                                                              \
        FT_COLD_BLOCK(n, __VA_ARGS__)                                                                 \
    } while (0)
#endif

#endif

#define FT_SITE_(n, kind, id, ...) FT_SITE_BY_COUNT(n, kind, id, __VA_ARGS__)
#define FT_SITE_BY_COUNT(n, kind, id, ...) FT_SITE_##n(n, kind, id, __VA_ARGS__)
/* No format is an empty one. */
#define FT_SITE_NAME(n, kind, id, name) FT_SITE(0, kind, id, name, "")
#define FT_SITE_0 FT_SITE
#define FT_SITE_1 FT_SITE
#define FT_SITE_2 FT_SITE
#define FT_SITE_3 FT_SITE
#define FT_SITE_4 FT_SITE
#define FT_SITE_5 FT_SITE
#define FT_SITE_6 FT_SITE
#define FT_SITE_MANY(...)                                                                             \
    do {                                                                                              \
        _Pragma("GCC error \"an event carries at most six arguments\"")                               \
    } while (0)
#define FT_SITE_OF(kind, ...) FT_SITE_(FT_COUNT(__VA_ARGS__), kind, __COUNTER__, __VA_ARGS__)

/* ---- the events --------------------------------------------------------------------------------- */

#define FT_EVENT(...) FT_SITE_OF(FT_KIND_EVENT, __VA_ARGS__)
#define FT_BEGIN(...) FT_SITE_OF(FT_KIND_BEGIN, __VA_ARGS__)
#define FT_END(name) FT_SITE_OF(FT_KIND_END, name, "")

#define FT_TASK_NEW(task) FT_SITE_OF(FT_KIND_TASK_NEW, "async.new", "", task)
#define FT_TASK_SWITCH(task) FT_SITE_OF(FT_KIND_TASK_SWITCH, "async.switch", "", task)
#define FT_TASK_WAKE(task) FT_SITE_OF(FT_KIND_TASK_WAKE, "async.wake", "", task)
/* 1: ready (`SiteKind::TaskPolled` of ft-user/src/layout/site.rs). */
#define FT_TASK_END(task) FT_SITE_OF(FT_KIND_TASK_POLLED, "async.polled", "", task, 1)
#define FT_TASK_DROP(task) FT_SITE_OF(FT_KIND_TASK_DROP, "async.drop", "", task)

#endif
