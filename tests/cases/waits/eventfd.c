// A sender hands work over by an eventfd and reads another until the receiver, which computes, has done it.
#include "../common.h"

#include <sys/eventfd.h>

static int work, done;

NOINLINE static void digest(void) { compute_answer_us(3500); }

static void receiver(long number) {
    uint64_t n;
    while (read(work, &n, sizeof n) == sizeof n && n == 1) {
        digest();
        if (write(done, &n, sizeof n) < 0) abort();
    }
}

static void sender(long number) {
    uint64_t one = 1, last = 2;
    while (going()) {
        if (write(work, &one, sizeof one) < 0) abort();
        struct wait w = wait_begins();
        if (read(done, &one, sizeof one) < 0) abort();
        wait_ended(w);
        sleep_us(2500);
    }
    if (write(work, &last, sizeof last) < 0) abort();
}

int main(void) {
    work = eventfd(0, 0);
    done = eventfd(0, 0);
    start("receiver", receiver, 0);
    start("sender", sender, 0);
    finish();
    truth("sender", "eventfd", "receiver", "digest");
}
