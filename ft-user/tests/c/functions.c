/*
 * functions [ROUNDS]: functions with a known call tree and known self times, by the clock of the trace: each measures what it does itself,
 * and whoever calls it what the call takes. Compiled with -finstrument-functions, or with -fxray-instrument and -DPLAIN=... for what stays
 * as it is. Prints what is true: function, calls, self time at least, and time with all that it calls at most, ns; 0: of that nobody knows.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifndef PLAIN
#define PLAIN __attribute__((no_instrument_function))
#endif

static PLAIN int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Has the CPU, or would like to, until this much time has gone by; returns how much it was. Apart from its callers: one with such a
 * variable of its own would not end by a jump. */
static PLAIN __attribute__((noinline)) int64_t spin(int64_t ns) {
    int64_t begin = now(), t;
    do {
        t = now();
    } while (t - begin < ns);
    return t - begin;
}

struct truth {
    int64_t calls, ns, around;
};
static struct truth leaf_truth, branch_truth, sleeper_truth, ladder_truth, thrower_truth, catcher_truth, relay_truth, runner_truth;
static jmp_buf back;
static int rounds;

/* Calls, and measures how long that takes. */
#define AROUND(truth, call)              \
    do {                                 \
        int64_t begin = now();           \
        call;                            \
        (truth).around += now() - begin; \
    } while (0)
static volatile int depth;

__attribute__((noinline)) void leaf(void) {
    leaf_truth.calls++;
    leaf_truth.ns += spin(20000);
}

__attribute__((noinline)) void branch(void) {
    branch_truth.calls++;
    branch_truth.ns += spin(10000);
    AROUND(leaf_truth, leaf());
    branch_truth.ns += spin(10000);
    AROUND(leaf_truth, leaf());
    branch_truth.ns += spin(10000);
}

/* Blocks. */
__attribute__((noinline)) void sleeper(void) {
    int64_t begin = now();
    struct timespec t = { 0, 3000000 };
    sleeper_truth.calls++;
    nanosleep(&t, NULL);
    sleeper_truth.ns += now() - begin;
}

/* Recursive, and perhaps inlined into itself. */
void ladder(int rungs) {
    ladder_truth.calls++;
    ladder_truth.ns += spin(1000);
    if (rungs > 1) ladder(rungs - 1);
    ladder_truth.ns += spin(1000);
}

/* Calls itself, and is left in the innermost call. */
__attribute__((noinline)) void thrower(int more) {
    thrower_truth.calls++;
    thrower_truth.ns += spin(5000);
    if (more > 0) thrower(more - 1);
    else {
        AROUND(leaf_truth, leaf());
        longjmp(back, 1);
    }
    depth++;
}

__attribute__((noinline)) void catcher(void) {
    catcher_truth.calls++;
    if (setjmp(back) == 0) thrower(3);
    AROUND(leaf_truth, leaf());
    catcher_truth.ns += spin(5000);
}

__attribute__((noinline)) void runner(void) {
    runner_truth.calls++;
    runner_truth.ns += spin(20000);
}

/* Calls another one last of all: by a jump, where it is optimised and has nothing to tell after that. */
__attribute__((noinline)) void relay(void) {
    relay_truth.calls++;
    relay_truth.ns += spin(10000);
    runner();
}

static __attribute__((noinline)) void *worker(void *unused) {
    (void)unused;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < 10; i++) AROUND(branch_truth, branch());
        if (round % 4 == 0) AROUND(sleeper_truth, sleeper());
        AROUND(ladder_truth, ladder(10));
        AROUND(catcher_truth, catcher());
        AROUND(relay_truth, relay());
    }
    return NULL;
}

/* Wants the same CPU. */
static volatile int over;
static PLAIN void *rival(void *unused) {
    while (!over) {}
    return unused;
}

static PLAIN void tell(const char *name, struct truth truth) {
    printf("%s %lld %lld %lld\n", name, (long long)truth.calls, (long long)truth.ns, (long long)truth.around);
}

PLAIN int main(int argc, char **argv) {
    pthread_t thread, other;
    cpu_set_t one;
    rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 20;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    pthread_create(&other, NULL, rival, NULL);
    pthread_create(&thread, NULL, worker, NULL);
    pthread_join(thread, NULL);
    over = 1;
    pthread_join(other, NULL);
    tell("leaf", leaf_truth);
    tell("branch", branch_truth);
    tell("sleeper", sleeper_truth);
    tell("ladder", ladder_truth);
    tell("thrower", thrower_truth);
    tell("catcher", catcher_truth);
    tell("relay", relay_truth);
    tell("runner", runner_truth);
    return 0;
}
