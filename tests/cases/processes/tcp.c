// A shopper asks a till over TCP on the loopback device; the till computes for each item.
#include "../common.h"

#include <arpa/inet.h>
#include <sys/socket.h>

static int listener;
static struct sockaddr_in address;

NOINLINE static void charge(void) { compute_answer_us(4000); }

static void till(long number) {
    int client = accept(listener, NULL, NULL);
    char item[32];
    while (read(client, item, sizeof item) == sizeof item) {
        charge();
        if (write(client, item, sizeof item) < 0) abort();
    }
}

static void shopper(long number) {
    int server = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(server, (struct sockaddr *)&address, sizeof address)) abort();
    char item[32] = "item";
    while (going()) {
        if (write(server, item, sizeof item) < 0) abort();
        struct wait w = wait_begins();
        if (read(server, item, sizeof item) <= 0) abort();
        wait_ended(w);
        sleep_us(3500);
    }
}

int main(void) {
    socklen_t bytes = sizeof address;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&address, bytes) || listen(listener, 1)) cannot("no loopback device");
    getsockname(listener, (struct sockaddr *)&address, &bytes);
    process("till", till, 0);
    process("shopper", shopper, 0);
    close(listener);
    finish();
    truth("shopper", "tcp", "till", "charge");
}
