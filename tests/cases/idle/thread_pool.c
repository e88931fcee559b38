// Four workers wait at a condition variable for tasks; there is one task each 100 ms, done in no time: nobody has lost anything.
#include "../common.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static int tasks, over;

static void worker(long number) {
    pthread_mutex_lock(&lock);
    while (!over) {
        if (tasks) tasks--;
        else pthread_cond_wait(&more, &lock);
    }
    pthread_mutex_unlock(&lock);
}

int main(void) {
    for (long i = 0; i < 4; i++) start("pool-%ld", worker, i);
    while (going()) {
        sleep_us(100000);
        pthread_mutex_lock(&lock);
        tasks++;
        pthread_cond_signal(&more);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    over = 1;
    pthread_cond_broadcast(&more);
    pthread_mutex_unlock(&lock);
    finish();
    fprintf(stderr, "TRUTH idle who=pool- where=futex|pthread_cond_wait|worker\n");
}
