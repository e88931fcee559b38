// Two browsers ask a catalogue by sockets of the Unix domain; it serves one at a time, and sleeps for each.
#include "../common.h"

#include <poll.h>
#include <sys/socket.h>

#define BROWSERS 2
static int here[BROWSERS], there[BROWSERS];

NOINLINE static void look_up(void) { sleep_us(4000); }

static void catalogue(long number) {
    struct pollfd clients[BROWSERS];
    for (int i = 0; i < BROWSERS; i++) {
        close(here[i]);
        clients[i].fd = there[i];
        clients[i].events = POLLIN;
    }
    for (int open = BROWSERS; open;) {
        poll(clients, BROWSERS, -1);
        for (int i = 0; i < BROWSERS; i++) {
            char title[64];
            if (!clients[i].revents) continue;
            ssize_t n = recv(clients[i].fd, title, sizeof title, 0);
            if (n <= 0) {
                clients[i].fd = -1;
                open--;
                continue;
            }
            look_up();
            if (send(clients[i].fd, title, n, 0) != n) abort();
        }
    }
}

static void browser(long number) {
    char title[64] = "title";
    for (int i = 0; i < BROWSERS; i++) {
        close(there[i]);
        if (i != number) close(here[i]);
    }
    while (going()) {
        if (send(here[number], title, sizeof title, 0) < 0) abort();
        struct wait w = wait_begins();
        if (recv(here[number], title, sizeof title, 0) <= 0) abort();
        wait_ended(w);
        sleep_us(6000);
    }
}

int main(void) {
    for (int i = 0; i < BROWSERS; i++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) abort();
        here[i] = pair[0];
        there[i] = pair[1];
    }
    process("catalogue", catalogue, 0);
    for (long i = 0; i < BROWSERS; i++) process("browser-%ld", browser, i);
    for (int i = 0; i < BROWSERS; i++) {
        close(here[i]);
        close(there[i]);
    }
    finish();
    truth("browser-", "unix-socket", "catalogue", "look_up");
}
