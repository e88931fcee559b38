// A sampler that a timer wakes each 10 ms is late: a bulldozer of SCHED_FIFO has its CPU. As root.
#include "../common.h"

#define PERIOD_NS 10000000LL

NOINLINE static void push_earth(void) { burn_us(9000); }

static void bulldozer(long number) {
    pin(0, 20);
    while (going()) {
        push_earth();
        sleep_us(8000);
    }
}

static void sampler(long number) {
    pin(0, 0);
    while (going()) {
        // The next time that has not passed: no lateness counts twice.
        int64_t due = (now_ns() / PERIOD_NS + 1) * PERIOD_NS;
        struct timespec t = {due / 1000000000, due % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
        int64_t late = now_ns() - due;
        if (late >= SHORT_NS) lost->all_ns += late;
    }
    // What it waited for a CPU besides, as at its start, is unsure.
    int64_t besides = ready_ns() - lost->all_ns;
    if (besides > 0) {
        lost->all_ns += besides;
        lost->unsure_ns += besides;
    }
}

int main(void) {
    start("bulldozer", bulldozer, 0);
    start("sampler", sampler, 0);
    finish();
    truth("sampler", "cpu", "bulldozer", "push_earth");
}
