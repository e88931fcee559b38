// A server forks four children, which share a mutex; one of them, the janitor, keeps it while it sleeps.
#define RUN_MS 1800
#include "../common.h"

static pthread_mutex_t *scoreboard;

NOINLINE static void sweep(void) {
    pthread_mutex_lock(scoreboard);
    sleep_us(6500);
    pthread_mutex_unlock(scoreboard);
}

static void janitor(long number) {
    while (going()) {
        sleep_us(21000);
        sweep();
    }
}

static void serve(long number) {
    while (going()) {
        struct wait w = wait_begins();
        pthread_mutex_lock(scoreboard);
        wait_ended(w);
        pthread_mutex_unlock(scoreboard);
        burn_us(60);
        sleep_us(700);
    }
}

int main(void) {
    void *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t between;
    pthread_mutexattr_init(&between);
    pthread_mutexattr_setpshared(&between, PTHREAD_PROCESS_SHARED);
    scoreboard = shared;
    pthread_mutex_init(scoreboard, &between);
    process("janitor", janitor, 0);
    for (long i = 0; i < 3; i++) process("httpd-%ld", serve, i);
    finish();
    truth("httpd-", "mutex", "janitor", "sweep");
}
