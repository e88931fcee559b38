// Three lanes wait at a barrier, in each of a hundred rounds, for a straggler.
#include "../common.h"

static pthread_barrier_t line;

NOINLINE static void long_leg(void) {
    burn_us(2000);
    sleep_us(9000);
}

static void straggler(long number) {
    for (int round = 0; round < 100; round++) {
        long_leg();
        pthread_barrier_wait(&line);
    }
}

static void lane(long number) {
    for (int round = 0; round < 100; round++) {
        burn_us(300);
        struct wait w = wait_begins();
        pthread_barrier_wait(&line);
        wait_ended(w);
    }
}

int main(void) {
    pthread_barrier_init(&line, NULL, 4);
    start("straggler", straggler, 0);
    for (long i = 0; i < 3; i++) start("lane-%ld", lane, i);
    finish();
    truth("lane-", "barrier", "straggler", "long_leg");
}
