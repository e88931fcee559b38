// The front waits for the middle's lock, the middle meanwhile for the back's, and the back sleeps. Only the front's time counts.
#include "../common.h"

static pthread_mutex_t counter = PTHREAD_MUTEX_INITIALIZER, vault = PTHREAD_MUTEX_INITIALIZER;

NOINLINE static void settle(void) {
    pthread_mutex_lock(&vault);
    sleep_us(10000);
    pthread_mutex_unlock(&vault);
}

NOINLINE static void withdraw(void) {
    pthread_mutex_lock(&counter);
    pthread_mutex_lock(&vault);
    pthread_mutex_unlock(&vault);
    pthread_mutex_unlock(&counter);
}

static void back(long number) {
    while (going()) {
        sleep_us(17000);
        settle();
    }
}

static void middle(long number) {
    while (going()) {
        withdraw();
        sleep_us(300);
    }
}

static void front(long number) {
    while (going()) {
        struct wait w = wait_begins();
        pthread_mutex_lock(&counter);
        wait_ended(w);
        pthread_mutex_unlock(&counter);
        sleep_us(400);
    }
}

int main(void) {
    start("back", back, 0);
    start("middle", middle, 0);
    start("front", front, 0);
    finish();
    truth("front", "mutex", "middle+back", "settle");
}
