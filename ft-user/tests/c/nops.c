/* Functions of which the begins can look as if there were more nops than the option has left. */
#include <feather_trace.h>
#include <stdio.h>

static volatile int sink;

/* Nothing but its entry, and the next function behind it. */
#ifdef NEVER
__attribute__((noinline, used)) void never(void) { __builtin_unreachable(); }
#endif

__attribute__((noinline)) int good(int x) {
    sink = x;
    return x + 1;
}

/* Its loop begins among nops of its own. */
__attribute__((noinline)) void delay(long n) {
    do __asm__ volatile("nop; nop; nop; nop; nop; nop");
    while (--n);
}

int main(void) {
    if (ft_init() != 0) return 2;
    delay(1000);
    if (good(1) != 2) return 3;
    size_t on = ft_enable("fn.good") + ft_enable("fn.delay") + ft_enable("fn.never");
    delay(1000);
    if (good(1) != 2) return 4;
    printf("%zu\n", on);
    return 0;
}
