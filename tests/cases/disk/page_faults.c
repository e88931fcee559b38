// A scanner touches the pages of a file that are not in memory: each touch is a fault that waits for the disk.
#include "../common.h"

#include <sys/sysmacros.h>

#define BYTES (96L << 20)
static char *file_bytes;
static volatile char sum;

NOINLINE static void touch_pages(void) {
    // A step that no read-ahead guesses.
    for (long page = 0, n = BYTES / 4096; page < n && going(); page++) {
        struct wait w = wait_begins();
        sum += file_bytes[page * 7919 % n * 4096];
        wait_ended(w);
    }
}

static void scanner(long number) { touch_pages(); }

// The name of the disk that the file is on, as the kernel has it.
static void disk_of(int file, char *name) {
    char path[64], line[128];
    struct stat status;
    fstat(file, &status);
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u/uevent", major(status.st_dev), minor(status.st_dev));
    FILE *uevent = fopen(path, "r");
    while (uevent && fgets(line, sizeof line, uevent)) sscanf(line, "DEVNAME=%31s", name);
}

int main(void) {
    static char block[1 << 20], name[32], behind[64];
    int file = scratch_file();
    for (long at = 0; at < BYTES; at += sizeof block) {
        memset(block, 1 + at / sizeof block, sizeof block);
        if (write(file, block, sizeof block) < 0) abort();
    }
    fsync(file);
    disk_of(file, name);
    if (!*name) cannot("/var/tmp is on no disk");
    file_bytes = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, file, 0);
    madvise(file_bytes, BYTES, MADV_RANDOM);
    posix_fadvise(file, 0, BYTES, POSIX_FADV_DONTNEED);
    end_ns = now_ns() + 1200 * 1000000LL;
    start("scanner", scanner, 0);
    finish();
    snprintf(behind, sizeof behind, "%s|disk", name);
    truth("scanner", "page-fault", behind, "touch_pages");
}
