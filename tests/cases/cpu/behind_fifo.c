// A listener computes on the CPU of a drummer of SCHED_FIFO, which takes it for 15 ms of each 25. As root.
#include "../common.h"

NOINLINE static void beat(void) { burn_us(15000); }

static void drummer(long number) {
    pin(0, 30);
    while (going()) {
        beat();
        sleep_us(10000);
    }
}

static void listener(long number) {
    pin(0, 0);
    while (going()) burn_and_count(100000);
}

int main(void) {
    start("drummer", drummer, 0);
    start("listener", listener, 0);
    finish();
    truth("listener", "cpu", "drummer", "beat");
}
