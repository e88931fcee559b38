/*
 * A program that is interrupted at each instruction of an event (ft-user/tests/stepper/mod.rs): marks for who steps through
 * it, and what its handler does.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <execinfo.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef __clang__
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noinline, noipa))
#endif

/* Traps that say which they are. */
enum { MARK_BEGIN = 0x46540001, MARK_END = 0x46540002, MARK_HANDLED = 0x46540003, MARK_DONE = 0x46540004 };
#define MARK(which) __asm__ volatile("int3" : : "a"((long)(which)) : "memory")

enum { EVENT, BACKTRACE, LEAVE, THROW, EXIT, EXEC };
static const char *const actions[] = { "event", "backtrace", "leave", "throw", "exit", "exec" };

enum { MOST_FRAMES = 64 };
static int action;
static void *callers[MOST_FRAMES];
static int callers_count;
static volatile long handled, without_callers;
static sigjmp_buf left;

/* What a program has: an event of the handler, and the events that are stepped through, by number. */
static void inner(void);
static void outer(int number);

/* Remembers who called the caller of this: below each interrupted instruction of an event must be the same ones. */
APART static void remember_callers(void) {
    void *all[MOST_FRAMES];
    callers_count = backtrace(all, MOST_FRAMES) - 2;
    /* None where functions are not described. */
    if (callers_count < 0) callers_count = 0;
    memcpy(callers, all + 2, sizeof(void *) * (size_t)callers_count);
}

static void look_for_callers(void) {
    void *all[MOST_FRAMES];
    int found = backtrace(all, MOST_FRAMES), above = found - callers_count;
    if (above > 0 && memcmp(all + above, callers, sizeof(void *) * (size_t)callers_count) == 0) return;
    if (without_callers++ < 5) {
        fprintf(stderr, "at signal %ld, without callers:\n", handled);
        backtrace_symbols_fd(all, found, 2);
    }
}

static void handler(int signal) {
    (void)signal;
    handled++;
    switch (action) {
    case EVENT: inner(); break;
    case BACKTRACE: look_for_callers(); break;
    case LEAVE: siglongjmp(left, 1);
    case THROW:
#ifdef __cpp_exceptions
        throw 7;
#else
        abort();
#endif
    case EXIT: exit(7);
    case EXEC: execl("/proc/self/exe", "stepped", "executed", (char *)NULL); abort();
    }
    MARK(MARK_HANDLED);
}

/* A function of its own: what is thrown at any of its instructions is thrown by the call of it. */
APART static void marked(int number) {
    MARK(MARK_BEGIN);
    outer(number);
    MARK(MARK_END);
}

/* The events, once, or each time that the handler leaves them. `after` comes after each time. */
APART static void run(int number, void (*after)(void)) {
    remember_callers();
    if (action == LEAVE && sigsetjmp(left, 1) != 0) after();
#ifdef __cpp_exceptions
again:
    try {
        marked(number);
    } catch (int thrown) {
        if (thrown != 7) abort();
        after();
        goto again;
    }
#else
    marked(number);
#endif
    after();
}

/* `program busy MS`: the first of them, over and over, for so much CPU time. */
__attribute__((unused)) static int busy(int argc, char **argv, int kinds) {
    if (argc != 3 || strcmp(argv[1], "busy") != 0) return 0;
    long ms = atol(argv[2]);
    while (clock() < ms * (CLOCKS_PER_SEC / 1000))
        for (int i = 0; i < 1000; i++) outer(i % kinds);
    return 1;
}

/* `program ACTION NUMBER`; a number above `once` is stepped through as the first event of its thread. */
static int stepped(int argc, char **argv, int once, void (*after)(void)) {
    struct sigaction handling;
    if (argc > 1 && strcmp(argv[1], "executed") == 0) {
        puts("executed");
        return 0;
    }
    if (argc != 3) return 2;
    while (strcmp(actions[action], argv[1]) != 0)
        if (++action > EXEC) return 2;
    int number = atoi(argv[2]);
    memset(&handling, 0, sizeof handling);
    handling.sa_handler = handler;
    handling.sa_flags = SA_NODEFER;
    sigaction(SIGUSR1, &handling, NULL);
    /* Twice: what is bound and loaded at its first use is. */
    for (int i = 0; i < 2 && number < once; i++) outer(number), inner();
    run(number % once, after);
    printf("%d callers, %ld handled, %ld without callers\n", callers_count, handled, without_callers);
    fflush(stdout);
    MARK(MARK_DONE);
    return without_callers != 0;
}
