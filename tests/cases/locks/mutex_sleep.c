// Three tellers wait for the ledger, which the auditor keeps while it sleeps.
#include "../common.h"

static pthread_mutex_t ledger = PTHREAD_MUTEX_INITIALIZER;
static long entries;

NOINLINE static void audit(void) {
    pthread_mutex_lock(&ledger);
    sleep_us(7000);
    pthread_mutex_unlock(&ledger);
}

static void auditor(long number) {
    while (going()) {
        sleep_us(23000);
        audit();
    }
}

static void teller(long number) {
    while (going()) {
        struct wait w = wait_begins();
        pthread_mutex_lock(&ledger);
        wait_ended(w);
        entries++;
        pthread_mutex_unlock(&ledger);
        sleep_us(400);
    }
}

int main(void) {
    start("auditor", auditor, 0);
    for (long i = 0; i < 3; i++) start("teller-%ld", teller, i);
    finish();
    truth("teller-", "mutex", "auditor", "audit");
}
