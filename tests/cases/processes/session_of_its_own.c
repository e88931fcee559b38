// A farmer waits for a miller that has a session of its own: forked twice, with setsid between, it is nobody's child any more.
#include "../common.h"

static int grain[2], flour[2];

NOINLINE static void grind_grain(void) {
    sleep_us(3000);
    burn_us(2500);
}

static void miller(long number) {
    char sack;
    close(grain[1]);
    while (read(grain[0], &sack, 1) == 1) {
        grind_grain();
        if (write(flour[1], &sack, 1) != 1) abort();
    }
}

static void parent_of_miller(long number) {
    setsid();
    process("miller", miller, 0);
}

static void farmer(long number) {
    char sack = 's';
    while (going()) {
        if (write(grain[1], &sack, 1) != 1) abort();
        struct wait w = wait_begins();
        if (read(flour[0], &sack, 1) != 1) abort();
        wait_ended(w);
        sleep_us(2200);
    }
}

int main(void) {
    if (pipe(grain) || pipe(flour)) abort();
    process("forker", parent_of_miller, 0);
    process("farmer", farmer, 0);
    close(grain[1]);
    finish();
    truth("farmer", "pipe", "miller", "grind_grain");
}
