// A server waits in epoll for two clients, which say a word and then have no work for it: nobody has lost anything.
#include "../common.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#define CLIENTS 2
static int here[CLIENTS], there[CLIENTS];

static void server(long number) {
    int ready = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < CLIENTS; i++) {
        struct epoll_event e = {EPOLLIN, {.fd = there[i]}};
        epoll_ctl(ready, EPOLL_CTL_ADD, there[i], &e);
    }
    for (int open = CLIENTS; open;) {
        struct epoll_event e;
        char word[16];
        if (epoll_wait(ready, &e, 1, -1) != 1) continue;
        ssize_t n = read(e.data.fd, word, sizeof word);
        if (n > 0 && write(e.data.fd, word, n) == n) continue;
        epoll_ctl(ready, EPOLL_CTL_DEL, e.data.fd, NULL);
        open--;
    }
}

static void client(long number) {
    char word[16] = "hello";
    while (going()) {
        if (write(here[number], word, sizeof word) < 0 || read(here[number], word, sizeof word) < 0) abort();
        sleep_us(250000);
    }
    shutdown(here[number], SHUT_RDWR);
}

int main(void) {
    for (int i = 0; i < CLIENTS; i++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) abort();
        here[i] = pair[0];
        there[i] = pair[1];
    }
    start("server", server, 0);
    for (long i = 0; i < CLIENTS; i++) start("client-%ld", client, i);
    finish();
    fprintf(stderr, "TRUTH idle who=server where=epoll_wait|epoll\n");
}
