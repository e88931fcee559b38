// Two allocators share one arena of malloc with a trimmer, which keeps it while it gives free pages back.
#include "../common.h"

#include <malloc.h>

#define CHUNKS 60000
static void *chunks[CHUNKS];
// A compiler leaves out what is allocated and freed for nothing.
static __thread void *volatile kept;

NOINLINE static void trim_heap(void) {
    malloc_trim(0);
    NO_TAIL_CALL();
}

static void trimmer(long number) {
    while (going()) {
        trim_heap();
        sleep_us(15000);
    }
}

static void allocator(long number) {
    while (going()) {
        struct wait w = wait_begins();
        // Larger than what a thread keeps for itself.
        kept = malloc(3000);
        wait_ended(w);
        w = wait_begins();
        free(kept);
        wait_ended(w);
        sleep_us(300);
    }
}

int main(void) {
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    // Every second chunk is free, so that none of them merge.
    for (int i = 0; i < CHUNKS; i++) chunks[i] = malloc(8400);
    for (int i = 0; i < CHUNKS; i += 2) free(chunks[i]);
    end_ns = now_ns() + RUN_MS * 1000000LL;
    start("trimmer", trimmer, 0);
    for (long i = 0; i < 2; i++) start("allocator-%ld", allocator, i);
    finish();
    truth("allocator-", "malloc-arena", "trimmer", "trim_heap|malloc_trim");
}
