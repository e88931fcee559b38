// A buyer orders a cake and waits at a condition variable until the baker, who computes, has it.
#include "../common.h"

static pthread_mutex_t shop = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ordered = PTHREAD_COND_INITIALIZER, baked = PTHREAD_COND_INITIALIZER;
static int orders, cakes, closed;

NOINLINE static void bake(void) { compute_answer_us(6000); }

static void baker(long number) {
    pthread_mutex_lock(&shop);
    for (;;) {
        while (!orders && !closed) pthread_cond_wait(&ordered, &shop);
        if (!orders) break;
        orders--;
        pthread_mutex_unlock(&shop);
        bake();
        pthread_mutex_lock(&shop);
        cakes++;
        pthread_cond_signal(&baked);
    }
    pthread_mutex_unlock(&shop);
}

static void buyer(long number) {
    while (going()) {
        pthread_mutex_lock(&shop);
        orders++;
        pthread_cond_signal(&ordered);
        struct wait w = wait_begins();
        while (!cakes) pthread_cond_wait(&baked, &shop);
        wait_ended(w);
        cakes--;
        pthread_mutex_unlock(&shop);
        sleep_us(5000);
    }
    pthread_mutex_lock(&shop);
    closed = 1;
    pthread_cond_signal(&ordered);
    pthread_mutex_unlock(&shop);
}

int main(void) {
    start("baker", baker, 0);
    start("buyer", buyer, 0);
    finish();
    truth("buyer", "condition", "baker", "bake");
}
