// Two queries wait for an index, which the indexer keeps while it computes.
#include "../common.h"

static pthread_mutex_t index_lock = PTHREAD_MUTEX_INITIALIZER;

NOINLINE static void rebuild(void) {
    pthread_mutex_lock(&index_lock);
    burn_us(4500);
    pthread_mutex_unlock(&index_lock);
}

static void indexer(long number) {
    while (going()) {
        rebuild();
        sleep_us(11000);
    }
}

static void query(long number) {
    while (going()) {
        struct wait w = wait_begins();
        pthread_mutex_lock(&index_lock);
        wait_ended(w);
        pthread_mutex_unlock(&index_lock);
        sleep_us(700);
    }
}

int main(void) {
    start("indexer", indexer, 0);
    for (long i = 0; i < 2; i++) start("query-%ld", query, i);
    finish();
    truth("query-", "mutex", "indexer", "rebuild");
}
