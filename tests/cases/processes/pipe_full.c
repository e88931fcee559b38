// A writer of logs blocks at a full pipe: the shipper, another process, computes for each page that it takes.
#include "../common.h"

static int ends[2];
static char page[4096];

NOINLINE static void ship(void) { burn_us(450); }

static void shipper(long number) {
    close(ends[1]);
    while (read(ends[0], page, sizeof page) > 0) ship();
}

static void scribe(long number) {
    close(ends[0]);
    while (going()) {
        struct wait w = wait_begins();
        if (write(ends[1], page, sizeof page) < 0) abort();
        wait_ended(w);
        burn_us(30);
    }
}

int main(void) {
    if (pipe(ends)) abort();
    process("shipper", shipper, 0);
    process("scribe", scribe, 0);
    close(ends[0]);
    close(ends[1]);
    finish();
    truth("scribe", "pipe", "shipper", "ship");
}
