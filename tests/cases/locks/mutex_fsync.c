// Two clerks wait for the records, which the archivist keeps until what it has written is on the disk.
#define RUN_MS 2000
#include "../common.h"

static pthread_mutex_t records = PTHREAD_MUTEX_INITIALIZER;
static char page[256 << 10];
static int file;

NOINLINE static void save(void) {
    pthread_mutex_lock(&records);
    for (int i = 0; i < 4; i++) {
        if (pwrite(file, page, sizeof page, i * sizeof page) < 0 || fsync(file)) perror("save");
    }
    pthread_mutex_unlock(&records);
}

static void archivist(long number) {
    while (going()) {
        save();
        sleep_us(30000);
    }
}

static void clerk(long number) {
    while (going()) {
        struct wait w = wait_begins();
        pthread_mutex_lock(&records);
        wait_ended(w);
        pthread_mutex_unlock(&records);
        burn_us(50);
        sleep_us(600);
    }
}

int main(void) {
    file = scratch_file();
    start("archivist", archivist, 0);
    for (long i = 0; i < 2; i++) start("clerk-%ld", clerk, i);
    finish();
    truth("clerk-", "mutex", "archivist", "save");
}
