// Eight threads for each CPU compute; each waits for a CPU behind the others.
#include "../common.h"

NOINLINE static void crunch(void) { burn_and_count(50000); }

static void cruncher(long number) {
    while (going()) crunch();
}

int main(void) {
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    for (long i = 0; i < 8 * cpus && i < 60; i++) start("cruncher-%ld", cruncher, i);
    finish();
    truth("cruncher-", "cpu", "cruncher-", "crunch");
}
