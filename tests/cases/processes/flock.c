// Two printers, processes of their own, wait for the flock of a spooler, which sleeps with it.
#include "../common.h"

#include <sys/file.h>

static char path[] = "/var/tmp/caseXXXXXX";

NOINLINE static void spool(int file) {
    flock(file, LOCK_EX);
    sleep_us(9000);
    flock(file, LOCK_UN);
}

static void spooler(long number) {
    int file = open(path, O_RDWR | O_CLOEXEC);
    while (going()) {
        sleep_us(19000);
        spool(file);
    }
}

static void printer(long number) {
    int file = open(path, O_RDWR | O_CLOEXEC);
    while (going()) {
        struct wait w = wait_begins();
        flock(file, LOCK_EX);
        wait_ended(w);
        flock(file, LOCK_UN);
        sleep_us(800);
    }
}

int main(void) {
    close(mkstemp(path));
    process("spooler", spooler, 0);
    for (long i = 0; i < 2; i++) process("printer-%ld", printer, i);
    finish();
    unlink(path);
    truth("printer-", "flock", "spooler", "spool");
}
