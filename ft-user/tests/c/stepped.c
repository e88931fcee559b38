/* Events of all kinds, in C and in C++; the last one goes the rare way, in Rust. Sites are on if FT_ENABLE says so. */
#include "stepped.h"
#include <feather_trace.h>
#include <sys/time.h>

static volatile unsigned long x = 7;
static char text[] = "hello, this is some text";

static void inner(void) { FT_EVENT("inner.event", "", x); }
static void after(void) { FT_EVENT("after.event", "", x, x, x); }

APART static void none(void) { FT_EVENT("outer.none", ""); }
APART static void two(void) { FT_EVENT("outer.two", "", x, x); }
APART static void three(void) { FT_EVENT("outer.three", "", x, x, x); }
APART static void six(void) { FT_EVENT("outer.six", "", x, x, (double)x, x, x, x); }
APART static void string(void) { FT_EVENT("outer.string", "", (const char *)text); }
APART static void bytes(void) {
    FT_EVENT("outer.bytes", "", x, ft_bytes(text, x), ft_text(text, 3), (const char *)NULL, x, ft_text(text, sizeof text));
}
APART static void cut(void) {
    static char longer[400];
    FT_EVENT("outer.cut", "", ft_bytes(longer, sizeof longer));
}
APART static long scope(void) {
    FT_BEGIN("outer.scope", "", x);
    long sum = 0;
    for (unsigned long i = 0; i < x; i++) sum += (long)(i * x);
    FT_END("outer.scope");
    return sum;
}
/* With registers to save, an array on the stack and a call: the frame is neither empty nor only found by rsp. */
APART static unsigned long framed(unsigned long n) {
    unsigned long sum = x, *room = (unsigned long *)__builtin_alloca(8 * (n + 1));
    for (unsigned long i = 0; i <= n; i++) room[i] = i * sum;
    FT_EVENT("outer.framed", "", n, sum, room[n], sum, n, room[0]);
    two();
    return room[n] + sum;
}

static void (*const kinds[])(void) = { none, two, three, six, string, bytes };
enum { KINDS = sizeof kinds / sizeof kinds[0] };

APART static void outer(int number) {
    if (number < KINDS) kinds[number]();
    else if (number == KINDS) scope();
    else if (number == KINDS + 1) framed(x);
    else cut();
}

static void profiler(int signal) {
    (void)signal;
    handled++;
    look_for_callers();
}

/* All of them, until a profiler has walked the stack so many times. */
APART static int profiled(long samples) {
    struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = { { 0, 0 }, { 0, 0 } };
    remember_callers();
    signal(SIGPROF, profiler);
    setitimer(ITIMER_PROF, &often, NULL);
    for (int i = 0; handled < samples; i++) outer(i % (KINDS + 3));
    setitimer(ITIMER_PROF, &never, NULL);
    printf("%d callers, %ld handled, %ld without callers\n", callers_count, handled, without_callers);
    return without_callers != 0;
}

int main(int argc, char **argv) {
    if (ft_init() != 0) return 2;
    if (argc == 3 && strcmp(argv[1], "profile") == 0) return profiled(atol(argv[2]));
    if (busy(argc, argv, KINDS + 3)) return 0;
    return stepped(argc, argv, KINDS + 3, after);
}
