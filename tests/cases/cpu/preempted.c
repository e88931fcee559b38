// A painter and two grinders compute on one CPU; others are no help: all three are pinned.
#include "../common.h"

static volatile long turns;

NOINLINE static void grind(void) {
    for (long i = 0; i < 100000; i++) turns++;
}

static void grinder(long number) {
    pin(0, 0);
    while (going()) grind();
}

static void painter(long number) {
    pin(0, 0);
    while (going()) burn_and_count(60000);
}

int main(void) {
    for (long i = 0; i < 2; i++) start("grinder-%ld", grinder, i);
    start("painter", painter, 0);
    finish();
    truth("painter", "cpu", "grinder-", "grind");
}
