// Three lookups, which read, wait for a reloader, which writes.
#include "../common.h"

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;

NOINLINE static void reload(void) {
    pthread_rwlock_wrlock(&table);
    burn_us(1000);
    sleep_us(8000);
    pthread_rwlock_unlock(&table);
}

static void reloader(long number) {
    while (going()) {
        sleep_us(26000);
        reload();
    }
}

static void lookup(long number) {
    while (going()) {
        struct wait w = wait_begins();
        pthread_rwlock_rdlock(&table);
        wait_ended(w);
        pthread_rwlock_unlock(&table);
        sleep_us(500);
    }
}

int main(void) {
    start("reloader", reloader, 0);
    for (long i = 0; i < 3; i++) start("lookup-%ld", lookup, i);
    finish();
    truth("lookup-", "rwlock", "reloader", "reload");
}
