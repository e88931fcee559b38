// A guest waits at a socket for an inn, another process: its porter, who serves, waits for a mutex of the cleaner, who computes.
#include "../common.h"

#include <sys/socket.h>

static int pair[2];
static pthread_mutex_t rooms = PTHREAD_MUTEX_INITIALIZER;

NOINLINE static void clean_rooms(void) {
    pthread_mutex_lock(&rooms);
    burn_us(8000);
    pthread_mutex_unlock(&rooms);
}

static void cleaner(long number) {
    while (going()) {
        clean_rooms();
        sleep_us(9000);
    }
}

static void porter(long number) {
    char key;
    while (read(pair[1], &key, 1) == 1) {
        pthread_mutex_lock(&rooms);
        pthread_mutex_unlock(&rooms);
        if (write(pair[1], &key, 1) != 1) abort();
    }
}

static void inn(long number) {
    close(pair[0]);
    start("cleaner", cleaner, 0);
    start("porter", porter, 0);
    for (int i = 0; i < thread_count; i++) pthread_join(threads[i], NULL);
}

static void guest(long number) {
    char key = 'k';
    close(pair[1]);
    while (going()) {
        if (write(pair[0], &key, 1) != 1) abort();
        struct wait w = wait_begins();
        if (read(pair[0], &key, 1) != 1) abort();
        wait_ended(w);
        sleep_us(1000);
    }
}

int main(void) {
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) abort();
    process("inn", inn, 0);
    process("guest", guest, 0);
    close(pair[0]);
    close(pair[1]);
    finish();
    truth("guest", "unix-socket", "porter+cleaner", "clean_rooms");
}
