// What every case in C and C++ shares: a clock, work, threads and processes, and the truth that a case prints about itself.
#ifndef CASES_COMMON_H
#define CASES_COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

// At the end of a function: its last call is no jump, so that the function is on the stack meanwhile.
#define NO_TAIL_CALL() __asm__ volatile("")

// How long a case runs; one may define another length before it includes this file.
#ifndef RUN_MS
#define RUN_MS 1500
#endif

// A shorter wait does not count: screens are about long ones.
#define SHORT_NS 20000

// In memory that forked children share. `unsure_ns` is that part of `all_ns` which a reader may count elsewhere: within its wait a
// thread computes in the kernel, and when the wait is over it may have no CPU yet.
struct lost {
    int64_t all_ns, unsure_ns;
};
static struct lost *lost;
static int64_t end_ns;
static __thread int schedstat = -1;

static inline int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

__attribute__((constructor)) static void begin_case(void) {
    void *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    lost = (struct lost *)shared;
    end_ns = now_ns() + RUN_MS * 1000000LL;
}

// Whether the time of the case is not over yet.
static inline int going(void) { return now_ns() < end_ns; }

static inline void sleep_us(long us) {
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&t, NULL);
}

// Computes until so much time has gone.
static inline void burn_us(long us) {
    for (int64_t end = now_ns() + us * 1000; now_ns() < end;) {
    }
}

// Computes for somebody who has woken this thread and waits for it. It sleeps first: who is preempted by whom it has woken does not come
// to wait for an answer, but waits for a CPU.
static inline void compute_answer_us(long us) {
    sleep_us(200);
    // Not by `burn_us`: a screen shows three functions of a chain, and the case's own is to be one of them.
    for (int64_t end = now_ns() + us * 1000; now_ns() < end;) {
    }
}

// For how long this thread has been ready without a CPU, in all: the second number of its schedstat (0 if there is none).
static inline int64_t ready_ns(void) {
    char text[96];
    if (schedstat < 0) schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    ssize_t n = pread(schedstat, text, sizeof text - 1, 0);
    if (n <= 0) return 0;
    text[n] = 0;
    char *second = strchr(text, ' ');
    return second ? strtoll(second, NULL, 10) : 0;
}

// How long this thread has computed, in all.
static inline int64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

// A wait as its thread measures it. `wait_ended` counts it as lost.
struct wait {
    int64_t since, awake;
};

static inline struct wait wait_begins(void) {
    struct wait w;
    w.awake = ready_ns() + cpu_ns();
    w.since = now_ns();
    return w;
}

static inline void wait_ended(struct wait w) {
    int64_t waited = now_ns() - w.since;
    if (waited < SHORT_NS) return;
    __atomic_fetch_add(&lost->all_ns, waited, __ATOMIC_RELAXED);
    __atomic_fetch_add(&lost->unsure_ns, ready_ns() + cpu_ns() - w.awake, __ATOMIC_RELAXED);
}

// Computes for so long, and counts as lost what it computed nothing in: where the clock jumps, another had the CPU. What the
// kernel did there in interrupts is no wait for a CPU, and unsure, as is what the thread waited before it could measure.
static inline void burn_and_count(int64_t us) {
    static __thread int is_measuring;
    int64_t ready = ready_ns(), jumps = 0, before = now_ns();
    if (!is_measuring) {
        is_measuring = 1;
        __atomic_fetch_add(&lost->all_ns, ready, __ATOMIC_RELAXED);
        __atomic_fetch_add(&lost->unsure_ns, ready, __ATOMIC_RELAXED);
    }
    for (int64_t end = before + us * 1000; before < end;) {
        int64_t t = now_ns();
        if (t - before >= SHORT_NS) jumps += t - before;
        before = t;
    }
    ready = ready_ns() - ready;
    __atomic_fetch_add(&lost->all_ns, jumps, __ATOMIC_RELAXED);
    if (ready < jumps) __atomic_fetch_add(&lost->unsure_ns, jumps - ready, __ATOMIC_RELAXED);
}

// A thread with a name, which may have a number in it (`%ld`). It allocates nothing: an arena of its own would be made then.
struct start {
    char name[16];
    void (*body)(long);
    long number;
};
static struct start starts[64];
static pthread_t threads[64];
static int thread_count;

static inline void *begin_thread(void *argument) {
    struct start *s = (struct start *)argument;
    pthread_setname_np(pthread_self(), s->name);
    s->body(s->number);
    return NULL;
}

static inline void start(const char *name, void (*body)(long), long number) {
    struct start *s = &starts[thread_count];
    snprintf(s->name, sizeof s->name, name, number);
    s->body = body;
    s->number = number;
    if (pthread_create(&threads[thread_count++], NULL, begin_thread, s)) abort();
}

// A process with a name, likewise.
static inline pid_t process(const char *name, void (*body)(long), long number) {
    pid_t pid = fork();
    if (pid) return pid;
    char text[16];
    snprintf(text, sizeof text, name, number);
    prctl(PR_SET_NAME, text);
    schedstat = -1;
    body(number);
    _exit(0);
}

// Until all of them have ended.
static inline void finish(void) {
    for (int i = 0; i < thread_count; i++) pthread_join(threads[i], NULL);
    while (wait(NULL) > 0) {
    }
}

// An open file that has no name any more, on a disk: /tmp often is none.
static inline int scratch_file(void) {
    char path[] = "/var/tmp/caseXXXXXX";
    int fd = mkstemp(path);
    if (fd < 0) abort();
    unlink(path);
    return fd;
}

// Says that the case cannot run here, and ends.
static inline void cannot(const char *why) {
    fprintf(stderr, "TRUTH none %s\n", why);
    exit(0);
}

// Puts the calling thread on one CPU; with a priority, as a thread of SCHED_FIFO. CPU 0 runs most interrupts.
static inline void pin(int cpu, int priority) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one)) cannot("the CPU may not be used");
    struct sched_param p;
    p.sched_priority = priority;
    if (priority && sched_setscheduler(0, SCHED_FIFO, &p)) cannot("SCHED_FIFO needs root");
}

// Who lost the time, at what kind of thing, who or what was behind it, and the function where that one was. `a+b` is both, `a|b`
// one of them, an empty text is not asked for.
static inline void truth(const char *who, const char *what, const char *behind, const char *where) {
    fflush(stdout);
    fprintf(stderr, "TRUTH who=%s what=%s", who, what);
    if (*behind) fprintf(stderr, " behind=%s", behind);
    if (*where) fprintf(stderr, " where=%s", where);
    fprintf(stderr, " lost_ms=%.1f unsure_ms=%.1f\n", lost->all_ns / 1e6, lost->unsure_ns / 1e6);
}

#endif
