/*
 * A program with gigabytes of zeros behind its text, and with functions that a linker may make one.
 */
#include <feather_trace.h>
#include <stdio.h>

static volatile char zeros[3UL << 30];
static volatile int sink;

__attribute__((noinline)) int first(int x) {
    sink = x;
    return x + 1;
}

__attribute__((noinline)) int second(int x) {
    sink = x;
    return x + 1;
}

int main(int argc, char **argv) {
    (void)argv;
    if (ft_init() != 0) return 2;
    zeros[(size_t)argc << 30] = 1;
    size_t on = ft_enable("fn.first") + ft_enable("fn.second");
    printf("%zu\n", on);
    return first(1) + second(1) != 4;
}
