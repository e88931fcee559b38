// A diarist's small fsync is behind the large one of a dumper: both are of one disk and one journal.
#define RUN_MS 2000
#include "../common.h"

static char block[1 << 20];

NOINLINE static void dump(int file) {
    for (int i = 0; i < 64; i++) {
        if (pwrite(file, block, sizeof block, i * (off_t)sizeof block) < 0) abort();
    }
    fsync(file);
    NO_TAIL_CALL();
}

static void dumper(long number) {
    int file = scratch_file();
    while (going()) dump(file);
}

static void diarist(long number) {
    int file = scratch_file();
    for (long line = 0; going(); line++) {
        if (pwrite(file, block, 512, line * 512) < 0) abort();
        struct wait w = wait_begins();
        fsync(file);
        wait_ended(w);
        sleep_us(4000);
    }
}

int main(void) {
    process("dumper", dumper, 0);
    process("diarist", diarist, 0);
    finish();
    truth("diarist", "fsync", "dumper", "dump");
}
