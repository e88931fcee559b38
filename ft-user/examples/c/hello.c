/*
 * A C program that can be traced. With libfeather_trace installed (ft-user/capi/install):
 *
 *     cc hello.c $(pkg-config --cflags --libs feather_trace) -o hello
 *     ft-agent record -k none -- ./hello
 */
#include <feather_trace.h>
#include <stdio.h>

static unsigned collatz(unsigned start) {
    unsigned steps = 0;
    FT_BEGIN("hello.collatz", "from {start}", start);
    for (unsigned long n = start; n != 1; ++steps) {
        n = n % 2 ? 3 * n + 1 : n / 2;
        FT_EVENT("hello.step", "step {steps}: {n}", steps, n);
    }
    FT_END("hello.collatz");
    return steps;
}

int main(void) {
    /* Without an agent nothing is recorded, and the program runs as it would without this line. */
    ft_init();
    unsigned steps = 0;
    for (unsigned start = 1; start <= 100; ++start) steps += collatz(start);
    FT_EVENT("hello.done", "{0} took {steps} steps", "hello.c", steps);
    printf("%u steps\n", steps);
}
