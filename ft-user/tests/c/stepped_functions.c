/*
 * Functions that are traced by hooks (-finstrument-functions), by sleds of clang (-fxray-instrument) or by entries of gcc
 * (-fpatchable-function-entry=11), interrupted at each instruction.
 */
#include "stepped.h"
#include <feather_trace.h>

static volatile long sink = 7;

APART static long leaf(long n) { return sink + n; }

/* Ends by a jump, where it is optimised. */
APART static long tail(long n) {
    sink++;
    return leaf(n);
}

APART static long branch(long a, long b, long c, double d) {
    long *room = (long *)__builtin_alloca((size_t)sink % 8 * 8 + 8);
    room[0] = tail(a) + c;
    if (leaf(b) < a) return room[0];
    return room[0] + (long)d;
}

static void inner(void) { leaf(1); }
static void after(void) { leaf(2); }
APART static void outer(int number) { number == 0 ? leaf(3) : number == 1 ? tail(4) : branch(5, 6, 7, 8.0); }

int main(int argc, char **argv) {
    if (ft_init() != 0) return 2;
    return stepped(argc, argv, 3, after);
}
