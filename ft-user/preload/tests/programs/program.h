// What the test programs share. A program checks results, so that it can fail with and without the library;
// it names its locks on standard output, and waits at its end until its events are read.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CHECK(expected, call)                                                                 \
	do {                                                                                      \
		long result_ = (call);                                                                \
		if (result_ != (expected)) {                                                          \
			fprintf(stderr, "%s:%d: %s is %ld\n", __FILE__, __LINE__, #call, result_);        \
			_exit(1);                                                                         \
		}                                                                                     \
	} while (0)

// A success must leave errno alone.
#define KEEPS_ERRNO(call)     \
	do {                      \
		errno = 4711;         \
		CHECK(0, call);       \
		CHECK(4711, errno);   \
	} while (0)

static inline void name(const char *text, const void *address)
{
	printf("%s %p\n", text, address);
}

static inline void name_thread(const char *text)
{
	printf("%s %#x\n", text, gettid());
	fflush(stdout);
}

// Until the thread sleeps in a futex that is a part of the `bytes` bytes at `lock`.
static inline void wait_until_blocked(pid_t tid, const void *lock, size_t bytes)
{
	char path[64];
	unsigned long number = 0, futex = 0, start = (unsigned long)lock;
	snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
	while (number != SYS_futex || futex < start || futex >= start + bytes) {
		FILE *file = fopen(path, "r");
		if (!file || fscanf(file, "%lu %lx", &number, &futex) != 2)
			number = 0;
		if (file)
			fclose(file);
		sched_yield();
	}
}

// This much from now on `clock`.
static inline struct timespec in_ms(clockid_t clock, long ms)
{
	struct timespec t;
	clock_gettime(clock, &t);
	t.tv_nsec += ms * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static inline int finish(void)
{
	puts("done");
	fflush(stdout);
	getchar();
	return 0;
}
