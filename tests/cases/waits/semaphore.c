// Six callers share a pool of two connections: each waits for the others, which sleep while they have one.
#include "../common.h"

#include <semaphore.h>

static sem_t pool;

NOINLINE static void use_connection(void) { sleep_us(5000); }

static void caller(long number) {
    while (going()) {
        struct wait w = wait_begins();
        sem_wait(&pool);
        wait_ended(w);
        use_connection();
        sem_post(&pool);
        sleep_us(1500);
    }
}

int main(void) {
    sem_init(&pool, 0, 2);
    for (long i = 0; i < 6; i++) start("caller-%ld", caller, i);
    finish();
    truth("caller-", "semaphore", "caller-", "use_connection");
}
