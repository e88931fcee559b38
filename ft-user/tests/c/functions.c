/*
 * Functions with a known call tree and known self times, of which each measures its own, by the clock of the trace:
 * compiled with -finstrument-functions, or with -fxray-instrument and -DPLAIN=... for what stays as it is. Prints what is true: function, calls, and self time, ns, at least.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#ifndef PLAIN
#define PLAIN __attribute__((no_instrument_function))
#endif

static PLAIN int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Has the CPU, or would like to, until this much time has gone by; returns how much it was. */
static PLAIN int64_t spin(int64_t ns) {
    int64_t begin = now(), t;
    do {
        t = now();
    } while (t - begin < ns);
    return t - begin;
}

struct truth {
    int64_t calls, ns;
};
static struct truth leaf_truth, branch_truth, sleeper_truth, ladder_truth, thrower_truth, catcher_truth;
static jmp_buf back;
static volatile int depth;

__attribute__((noinline)) void leaf(void) {
    leaf_truth.calls++;
    leaf_truth.ns += spin(20000);
}

__attribute__((noinline)) void branch(void) {
    branch_truth.calls++;
    branch_truth.ns += spin(10000);
    leaf();
    branch_truth.ns += spin(10000);
    leaf();
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
        leaf();
        longjmp(back, 1);
    }
    depth++;
}

__attribute__((noinline)) void catcher(void) {
    catcher_truth.calls++;
    if (setjmp(back) == 0) thrower(3);
    leaf();
    catcher_truth.ns += spin(5000);
}

static __attribute__((noinline)) void *worker(void *unused) {
    (void)unused;
    for (int i = 0; i < 300; i++) branch();
    for (int i = 0; i < 5; i++) sleeper();
    for (int i = 0; i < 20; i++) ladder(10);
    for (int i = 0; i < 30; i++) catcher();
    return NULL;
}

/* Wants the same CPU. */
static volatile int over;
static PLAIN void *rival(void *unused) {
    while (!over) {}
    return unused;
}

static PLAIN void tell(const char *name, struct truth truth) {
    printf("%s %lld %lld\n", name, (long long)truth.calls, (long long)truth.ns);
}

PLAIN int main(void) {
    pthread_t thread, other;
    cpu_set_t one;
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
    return 0;
}
