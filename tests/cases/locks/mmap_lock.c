// Two mappers change the address space while a balloon fills 48 MiB of it: the kernel has one lock for all of them.
#include "../common.h"

NOINLINE static void inflate(void) {
    size_t bytes = 48 << 20;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (p != MAP_FAILED) munmap(p, bytes);
    NO_TAIL_CALL();
}

static void balloon(long number) {
    while (going()) {
        sleep_us(12000);
        inflate();
    }
}

static void mapper(long number) {
    while (going()) {
        struct wait w = wait_begins();
        void *p = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        wait_ended(w);
        w = wait_begins();
        munmap(p, 8192);
        wait_ended(w);
        sleep_us(500);
    }
}

int main(void) {
    for (long i = 0; i < 2; i++) start("mapper-%ld", mapper, i);
    start("balloon", balloon, 0);
    finish();
    truth("mapper-", "mmap_lock", "balloon", "inflate");
}
