// A renamer waits for a lock of readers and writers that four listers hold in turns: never is it free of all of them.
#include "../common.h"

static pthread_rwlock_t tree = PTHREAD_RWLOCK_INITIALIZER;

NOINLINE static void walk(void) {
    pthread_rwlock_rdlock(&tree);
    sleep_us(6000);
    pthread_rwlock_unlock(&tree);
}

static void lister(long number) {
    sleep_us(number * 1500);
    while (going()) walk();
}

static void renamer(long number) {
    while (going()) {
        sleep_us(15000);
        struct wait w = wait_begins();
        pthread_rwlock_wrlock(&tree);
        wait_ended(w);
        pthread_rwlock_unlock(&tree);
    }
}

int main(void) {
    for (long i = 0; i < 4; i++) start("lister-%ld", lister, i);
    start("renamer", renamer, 0);
    finish();
    truth("renamer", "rwlock", "lister-", "walk");
}
