/* Two fibers on one thread, which hand the CPU to each other a known number of times, each within a scope. */
#include <feather_trace.h>
#include <stdio.h>
#include <ucontext.h>

enum { TURNS = 50 };

static ucontext_t scheduler, fibers[2];
static char stacks[2][65536];

static void run(int self) {
    FT_BEGIN("fibers.run", "");
    for (int turn = 0; turn < TURNS; ++turn) {
        if (turn > 0) FT_TASK_WAKE(&fibers[1 - self]);
        FT_TASK_SWITCH(0);
        swapcontext(&fibers[self], &scheduler);
    }
    FT_END("fibers.run");
    FT_TASK_END(&fibers[self]);
}

int main(void) {
    ft_init();
    ft_enable("async.*");
    ft_enable("fibers.*");
    for (int i = 0; i < 2; ++i) {
        getcontext(&fibers[i]);
        fibers[i].uc_stack.ss_sp = stacks[i];
        fibers[i].uc_stack.ss_size = sizeof stacks[i];
        fibers[i].uc_link = &scheduler;
        makecontext(&fibers[i], (void (*)(void))run, 1, i);
        FT_TASK_NEW(&fibers[i]);
    }
    for (int turn = 0; turn <= TURNS; ++turn) {
        for (int i = 0; i < 2; ++i) {
            FT_TASK_SWITCH(&fibers[i]);
            swapcontext(&scheduler, &fibers[i]);
        }
    }
    return 0;
}
