// On one CPU a courier of priority 70 waits for a clerk's mutex (15), whom a band of priority 40 keeps from the CPU. As root.
#include "../common.h"

#include <semaphore.h>

static pthread_mutex_t desk = PTHREAD_MUTEX_INITIALIZER;
static sem_t mail, music;
static volatile int over;

// The courier comes and blocks; then the band comes, and the clerk cannot go on.
NOINLINE static void stamp(void) {
    pthread_mutex_lock(&desk);
    burn_us(500);
    sem_post(&mail);
    sem_post(&music);
    burn_us(1500);
    pthread_mutex_unlock(&desk);
}

NOINLINE static void play(void) { burn_us(11000); }

static void clerk(long number) {
    pin(0, 15);
    while (going()) {
        stamp();
        sleep_us(25000);
    }
    over = 1;
    sem_post(&mail);
    sem_post(&music);
}

static void band(long number) {
    pin(0, 40);
    for (sem_wait(&music); !over; sem_wait(&music)) play();
}

static void courier(long number) {
    pin(0, 70);
    for (sem_wait(&mail); !over; sem_wait(&mail)) {
        struct wait w = wait_begins();
        pthread_mutex_lock(&desk);
        wait_ended(w);
        pthread_mutex_unlock(&desk);
    }
}

int main(void) {
    sem_init(&mail, 0, 0);
    sem_init(&music, 0, 0);
    start("courier", courier, 0);
    start("band", band, 0);
    start("clerk", clerk, 0);
    finish();
    truth("courier", "mutex", "clerk+band", "stamp|play");
}
