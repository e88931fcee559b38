/* Two fibers that take turns on one thread, the first within functions and scopes. Each adds up how long it works, by its own
 * clock, and the program prints that. */
#include <feather_trace.h>
#include <stdio.h>
#include <time.h>
#include <ucontext.h>

#define PLAIN __attribute__((no_instrument_function, noinline))
#define RECORDED __attribute__((noinline))

enum { TURNS = 20, MS = 1000000 };
enum { OUTER, INNER, OTHER, WHO };

static ucontext_t back, fibers[2];
static char stacks[2][65536];
static long long worked[WHO], began;

static PLAIN long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static PLAIN void work(int who, long long ns) {
    const long long begin = now();
    long long end;
    do end = now(); while (end - begin < ns);
    worked[who] += end - begin;
}

static PLAIN void yield(int self) {
    FT_TASK_SWITCH(&fibers[1 - self]);
    swapcontext(&fibers[self], &fibers[1 - self]);
}

static RECORDED void inner(void) {
    FT_BEGIN("truth.inner", "");
    work(INNER, MS);
    yield(0);
    work(INNER, MS);
    FT_END("truth.inner");
}

static RECORDED void outer(void) {
    for (int turn = 0; turn < TURNS; ++turn) {
        work(OUTER, 2 * MS);
        inner();
    }
    FT_TASK_SWITCH(0);
    swapcontext(&fibers[0], &back);
}

static RECORDED void other(void) {
    for (;;) {
        work(OTHER, MS);
        yield(1);
    }
}

int PLAIN main(void) {
    if (ft_init() != 0) return 1;
    void (*const run[2])(void) = { outer, other };
    for (int i = 0; i < 2; ++i) {
        getcontext(&fibers[i]);
        fibers[i].uc_stack.ss_sp = stacks[i];
        fibers[i].uc_stack.ss_size = sizeof stacks[i];
        makecontext(&fibers[i], run[i], 0);
        FT_TASK_NEW(&fibers[i]);
    }
    began = now();
    FT_TASK_SWITCH(&fibers[0]);
    swapcontext(&back, &fibers[0]);
    printf("{\"turns\":%d,\"outer\":%lld,\"inner\":%lld,\"other\":%lld,\"all\":%lld}\n", TURNS, worked[OUTER], worked[INNER],
           worked[OTHER], now() - began);
    return 0;
}
