// A pilgrim asks by one pipe and waits at another, which is empty until the oracle, another process, has pondered.
#include "../common.h"

static int questions[2], answers[2];

NOINLINE static void ponder(void) {
    compute_answer_us(3000);
    sleep_us(2000);
}

static void oracle(long number) {
    char word;
    close(questions[1]);
    while (read(questions[0], &word, 1) == 1) {
        ponder();
        if (write(answers[1], &word, 1) != 1) abort();
    }
}

static void pilgrim(long number) {
    char word = 'x';
    while (going()) {
        if (write(questions[1], &word, 1) != 1) abort();
        struct wait w = wait_begins();
        if (read(answers[0], &word, 1) != 1) abort();
        wait_ended(w);
        burn_us(2000);
    }
}

int main(void) {
    if (pipe(questions) || pipe(answers)) abort();
    process("oracle", oracle, 0);
    process("pilgrim", pilgrim, 0);
    close(questions[1]);
    finish();
    truth("pilgrim", "pipe", "oracle", "ponder");
}
