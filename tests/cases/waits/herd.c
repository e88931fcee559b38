// An angler throws one fish and wakes all twelve herons: eleven go back to sleep. The truth is how often that happened.
#include "../common.h"

#define HERONS 12
static pthread_mutex_t pond = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t splash = PTHREAD_COND_INITIALIZER;
static long fish, wasted;
static int over;

static void heron(long number) {
    pthread_mutex_lock(&pond);
    while (!over) {
        pthread_cond_wait(&splash, &pond);
        if (fish) fish--;
        else if (!over) wasted++;
    }
    pthread_mutex_unlock(&pond);
}

NOINLINE static void throw_fish(void) {
    pthread_mutex_lock(&pond);
    fish++;
    pthread_cond_broadcast(&splash);
    pthread_mutex_unlock(&pond);
}

static void angler(long number) {
    while (going()) {
        sleep_us(1500);
        throw_fish();
    }
    pthread_mutex_lock(&pond);
    over = 1;
    pthread_cond_broadcast(&splash);
    pthread_mutex_unlock(&pond);
}

int main(void) {
    for (long i = 0; i < HERONS; i++) start("heron-%ld", heron, i);
    start("angler", angler, 0);
    finish();
    fprintf(stderr, "TRUTH who=heron- what=herd behind=angler where=throw_fish count=%ld\n", wasted);
}
