/*
 * Functions in which clang leaves sleds (-fxray-instrument -fxray-instruction-threshold=1), or gcc nops to make some of
 * (-fpatchable-function-entry=11), switched one by one.
 *
 * With a number, so many threads call them while they are switched, and each looks at what comes out. `late` makes a thread before
 * there is a library; `signals` makes sleds while a signal's handler calls functions.
 */
#define _GNU_SOURCE
#include <feather_trace.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __clang__
#define PLAIN __attribute__((xray_never_instrument))
#else
#define PLAIN __attribute__((patchable_function_entry(0)))
#endif
#define APART __attribute__((noinline))

static volatile long sink;

APART void leaf(void) { sink++; }

/* Ends by a jump, where it is optimised. */
APART void tail(void) {
    sink++;
    leaf();
}

APART void branch(void) {
    leaf();
    tail();
    sink++;
}

/* What registers can carry, in and out. */
struct pair {
    long a;
    double b;
};
APART struct pair six(long a, long b, long c, long d, long e, long f, double g, double h, double i, double j,
                      double k, double l, double m, double n) {
    struct pair out = { a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f, g + 2 * h + 3 * i + 4 * j + 5 * k + 6 * l + 7 * m + 8 * n };
    return out;
}

APART long double wide(long double a, long double b) { return a * b + 1; }

APART long vary(int n, ...) {
    va_list list;
    long sum = 0;
    va_start(list, n);
    for (int i = 0; i < n; i++) sum += i % 2 ? (long)va_arg(list, double) : va_arg(list, int);
    va_end(list);
    return sum;
}

/* Ends by a jump that depends on its argument. */
APART long odd(long n);
APART long even(long n) { return n == 0 ? 1 : odd(n - 1); }
APART long odd(long n) { return n == 0 ? 0 : even(n - 1); }

static PLAIN int is_right(long x) {
    struct pair p = six(x, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 7, (double)x);
    return p.a == x + 90 && p.b == 140 + 8 * (double)x && wide(3, (long double)x) == 3 * (long double)x + 1
        && vary(4, 1, 2.0, 3, (double)(x % 1000)) == 6 + x % 1000 && even(x % 8) == (x % 2 == 0);
}

static volatile int stop;
static long passes[64];

static PLAIN void *storm(void *slot) {
    long n = 0;
    while (!stop) {
        if (!is_right(n)) {
            printf("wrong at %ld\n", n);
            exit(1);
        }
        n++;
        *(volatile long *)slot = n;
    }
    return NULL;
}

static PLAIN void *sleep_on(void *unused) {
    pause();
    return unused;
}

static volatile sig_atomic_t alarms, is_wrong;

static PLAIN void on_alarm(int signal) {
    (void)signal;
    alarms++;
    if (!is_right(7)) is_wrong = 1;
}

/* Begins with the library while the alarm comes all the time. */
static PLAIN int begin_under_signals(void) {
    struct itimerval often = { { 0, 20 }, { 0, 20 } }, never = { { 0, 0 }, { 0, 0 } };
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &often, NULL);
    while (alarms < 1) {}
    if (ft_init() != 0) return 2;
    size_t on = ft_enable("fn.leaf");
    setitimer(ITIMER_REAL, &never, NULL);
    return on != 1 || is_wrong;
}

PLAIN int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "late") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, sleep_on, NULL);
        if (ft_init() != 0 || !is_right(7)) return 2;
        printf("%zu\n", ft_enable("fn.leaf"));
        fflush(stdout);
        return !is_right(7) || getchar() != EOF;
    }
    if (argc > 1 && strcmp(argv[1], "signals") == 0) {
        for (int i = 0; i < 50; i++) {
            int status;
            pid_t child = fork();
            if (child == 0) _exit(begin_under_signals());
            if (waitpid(child, &status, 0) != child || status != 0) return 3;
        }
        puts("fine");
        return 0;
    }
    if (ft_init() != 0) return 2;
    if (argc > 1) {
        pthread_t threads[64];
        int count = atoi(argv[1]);
        for (int i = 0; i < count; i++) pthread_create(&threads[i], NULL, storm, &passes[i]);
        for (int i = 0; i < count; i++)
            while (*(volatile long *)&passes[i] == 0) {}
        /* From outside as well, for whoever reads this line. */
        puts("running");
        fflush(stdout);
        if (argc > 2) getchar();
        for (int flip = 0; flip < 200; flip++) {
            size_t on = ft_enable(flip % 3 ? "fn.*" : "fn.six");
            /* Calls while they are on, also where another program has this thread's CPU. */
            for (long before = passes[0]; *(volatile long *)&passes[0] == before;) sched_yield();
            size_t off = ft_disable("fn.*");
            if (on == 0 || off < on) return 3;
        }
        stop = 1;
        for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
        puts("fine");
        return 0;
    }
    /* Off, one, all, and off again. */
    if (!is_right(7)) return 4;
    branch();
    size_t one = ft_enable("fn.leaf");
    branch();
    size_t all = ft_enable("fn.*");
    branch();
    if (!is_right(1001)) return 5;
    size_t off = ft_disable("fn.?*");
    branch();
    printf("%#lx %#lx %#lx %zu %zu %zu\n", (long)leaf, (long)tail, (long)branch, one, all, off);
    fflush(stdout);
    getchar();
    return 0;
}
