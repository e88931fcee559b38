// A builder starts one compiler after another and waits for each, which computes until it ends.
#include "../common.h"

NOINLINE static void translate(void) { burn_us(130000); }

static void compiler(long number) { translate(); }

static void builder(long number) {
    for (long unit = 0; unit < 9; unit++) {
        pid_t child = process("compiler-%ld", compiler, unit);
        struct wait w = wait_begins();
        waitpid(child, NULL, 0);
        wait_ended(w);
        burn_us(10000);
    }
}

int main(void) {
    process("builder", builder, 0);
    finish();
    truth("builder", "child", "compiler-", "translate");
}
