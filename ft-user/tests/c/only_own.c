/*
 * Which functions a compiler takes for the program's: three of its own, and none of the header's, whose code runs in them. With
 * -finstrument-functions those that begin, with -fxray-instrument those that have sleds.
 */
#include <stdio.h>
#include <feather_trace.h>

#ifdef SLEDS
#define PLAIN __attribute__((xray_never_instrument))
#else
#define PLAIN __attribute__((no_instrument_function))
#endif
#define OWN __attribute__((noinline))

static void OWN leaf(int i, const char *text);
static void OWN work(void);
static void OWN all(void);

static int begun[3], others;

#ifdef __cplusplus
extern "C" {
#endif
#ifdef SLEDS
/* An entry of LLVM's xray_instr_map of version 2: addresses are relative to themselves. */
struct entry { int64_t address, function; unsigned char kind, always, version, zero[13]; };
extern const struct entry first[] __asm__("__start_xray_instr_map") __attribute__((visibility("hidden")));
extern const struct entry end[] __asm__("__stop_xray_instr_map") __attribute__((visibility("hidden")));
#else
PLAIN void __cyg_profile_func_enter(void *function, void *caller);
PLAIN void __cyg_profile_func_exit(void *function, void *caller);
#endif
#ifdef __cplusplus
}
#endif

static void PLAIN seen(uintptr_t function) {
    const uintptr_t own[] = { (uintptr_t)leaf, (uintptr_t)work, (uintptr_t)all };
    for (int i = 0; i < 3; i++) {
        if (function == own[i]) {
            begun[i] = 1;
            return;
        }
    }
    others++;
}

#ifndef SLEDS
void __cyg_profile_func_enter(void *function, void *caller) { (void)caller; seen((uintptr_t)function); }
void __cyg_profile_func_exit(void *function, void *caller) { (void)function; (void)caller; }
#endif

static void leaf(int i, const char *text) {
    FT_EVENT("own.numbers", "{0} {1}", i, 1.5);
    FT_EVENT("own.texts", "{0} {1} {2}", i, text, ft_bytes(text, 2));
    FT_BEGIN("own.scope", "{0}", ft_text(text, 1));
    FT_END("own.scope");
}

static void work(void) {
    for (int i = 0; i < 10; i++) leaf(i, "abc");
}

static void all(void) { work(); }

int PLAIN main(void) {
    ft_init();
    int on = (int)ft_enable("own.*");
    all();
#ifdef SLEDS
    for (const struct entry *e = first; e < end; e++) {
        if (e->kind == 0) seen((uintptr_t)&e->function + (uintptr_t)e->function);
    }
#endif
    printf("%d of its own, %d others, %d sites\n", begun[0] + begun[1] + begun[2], others, on);
    return 0;
}
