// Two seats of a plane, processes, wait for the record lock (fcntl) of an inspector, which computes with it.
#include "../common.h"

static int plan;

static void lock_row(short type) {
    struct flock row = {.l_type = type, .l_whence = SEEK_SET, .l_start = 100, .l_len = 50};
    if (fcntl(plan, F_SETLKW, &row)) perror("fcntl");
}

NOINLINE static void inspect(void) {
    lock_row(F_WRLCK);
    burn_us(7000);
    lock_row(F_UNLCK);
}

static void inspector(long number) {
    while (going()) {
        inspect();
        sleep_us(16000);
    }
}

static void seat(long number) {
    while (going()) {
        struct wait w = wait_begins();
        lock_row(F_WRLCK);
        wait_ended(w);
        lock_row(F_UNLCK);
        sleep_us(900);
    }
}

int main(void) {
    plan = scratch_file();
    process("inspector", inspector, 0);
    for (long i = 0; i < 2; i++) process("seat-%ld", seat, i);
    finish();
    truth("seat-", "fcntl", "inspector", "inspect");
}
