// Known chains of eight functions without frame pointers: each ends in a call of the C library that blocks. Prints its threads.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 200 };

// Something is left to do after each call, which so is no jump. Every other function needs room on the stack, of its own size.
static volatile int after;
static volatile char *volatile kept;
#define STEP(name, step, next, bytes) \
	static __attribute__((noinline)) void name##_##step(void) { \
		char room[bytes]; \
		if (bytes > 1) { memset(room, after, bytes); kept = room; } \
		next; \
		after++; \
	}
#define WAY(name, last) \
	STEP(name, eight, last, 1) \
	STEP(name, seven, name##_eight(), 24) \
	STEP(name, six, name##_seven(), 1) \
	STEP(name, five, name##_six(), 200) \
	STEP(name, four, name##_five(), 1) \
	STEP(name, three, name##_four(), 64) \
	STEP(name, two, name##_three(), 1) \
	STEP(name, one, name##_two(), 8) \
	static void *name##_begins(void *unused) { \
		name##_id = (int)syscall(SYS_gettid); \
		for (int i = 0; i < ROUNDS; i++) name##_one(); \
		name##_done = 1; \
		return unused; \
	}
#define ID(name) static int name##_id; static volatile int name##_done

static const struct timespec nap = {0, 1000000};
static int pipes[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int posted;
static int word;

ID(sleep); ID(read); ID(wait); ID(poll); ID(futex); ID(signal);

static inline __attribute__((always_inline)) void wait_for_post(void) {
	pthread_mutex_lock(&mutex);
	while (posted == 0) pthread_cond_wait(&changed, &mutex);
	posted = 0;
	pthread_mutex_unlock(&mutex);
}

WAY(sleep, nanosleep(&nap, NULL))
WAY(read, ({ char byte; if (read(pipes[0], &byte, 1) != 1) abort(); }))
WAY(wait, wait_for_post())
WAY(poll, poll(NULL, 0, 1))
WAY(futex, syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &nap, NULL, 0))

// In a handler, which interrupts a chain of its own.
static void handler(int unused) {
	(void)unused;
	nanosleep(&nap, NULL);
	after++;
}
WAY(signal, raise(SIGUSR1))

// Two variables that are aligned more than the stack is: the frame has to be found by another register.
static __attribute__((noinline)) void start_all(void (*start)(void)) {
	char aligned[64] __attribute__((aligned(64)));
	memset(aligned, after, sizeof aligned);
	kept = aligned;
	start();
	after++;
}

static pthread_t threads[5];
static void start_threads(void) {
	pthread_create(&threads[0], NULL, read_begins, NULL);
	pthread_create(&threads[1], NULL, wait_begins, NULL);
	pthread_create(&threads[2], NULL, poll_begins, NULL);
	pthread_create(&threads[3], NULL, futex_begins, NULL);
	pthread_create(&threads[4], NULL, signal_begins, NULL);
}
static void sleep_all(void) { sleep_begins(NULL); }

int main(int argc, char **argv) {
	(void)argv;
	// Somewhere on the stack, and so that its place is not the same in each run.
	kept = alloca(16 * argc);
	signal(SIGUSR1, handler);
	if (pipe(pipes) != 0) return 1;
	start_threads();
	start_all(sleep_all);
	while (!read_done || !wait_done) {
		poll(NULL, 0, 2);
		if (!read_done && write(pipes[1], "", 1) != 1) return 1;
		pthread_mutex_lock(&mutex);
		posted = 1;
		pthread_cond_signal(&changed);
		pthread_mutex_unlock(&mutex);
	}
	for (int i = 0; i < 5; i++) pthread_join(threads[i], NULL);
	printf("{\"sleep\": %d, \"read\": %d, \"wait\": %d, \"poll\": %d, \"futex\": %d, \"signal\": %d, \"rounds\": %d}\n",
	       sleep_id, read_id, wait_id, poll_id, futex_id, signal_id, ROUNDS);
	return 0;
}
