// What programs share that wait for each other and know of each wait: who waits, since when it sleeps for sure, who ends it,
// and between which times of the clock. For C and C++.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>

// A wait: times of CLOCK_MONOTONIC, ns.
struct wait {
	const char *what;
	// The waiter has read its clock, and does nothing more before it waits.
	int begun;
	int waiter, waker;
	// Where it waits; 0 if that is not known.
	uintptr_t address;
	// Just outside of the wait; around what ended it; since when it slept for sure.
	int64_t around[2], wakes[2], asleep;
};

static inline int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static inline int tid(void)
{
	return (int)syscall(SYS_gettid);
}

static inline void pause_us(long us)
{
	struct timespec time = {0, us * 1000};
	nanosleep(&time, NULL);
}

// The waiter's part: what comes next is the wait, behind which it calls `waited`.
static inline void about_to_wait(struct wait *wait)
{
	wait->waiter = tid();
	wait->around[0] = now_ns();
	__atomic_store_n(&wait->begun, 1, __ATOMIC_SEQ_CST);
}

static inline void waited(struct wait *wait)
{
	wait->around[1] = now_ns();
}

// Whether a thread sleeps at a futex: the call is told of a thread that is off the CPU (`task_current_syscall`, lib/syscall.c).
static inline int sleeps(int pid, int thread)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/task/%d/syscall", pid, thread);
	FILE *file = fopen(path, "r");
	long call = -1;
	if (file == NULL || fscanf(file, "%ld", &call) != 1) call = -1;
	if (file != NULL) fclose(file);
	return call == SYS_futex;
}

// The waker's part: returns when the waiter, of this process, sleeps. What comes next ends the wait; then it calls `woke`.
static inline void about_to_wake(struct wait *wait, int pid)
{
	while (!__atomic_load_n(&wait->begun, __ATOMIC_SEQ_CST)) pause_us(100);
	while (!sleeps(pid, wait->waiter)) pause_us(200);
	wait->asleep = now_ns();
	wait->waker = tid();
	pause_us(1000);
	wait->wakes[0] = now_ns();
}

static inline void woke(struct wait *wait)
{
	wait->wakes[1] = now_ns();
}

// Prints them as the tests read them.
static inline void print_waits(const struct wait *waits, int n)
{
	printf("{\"waits\": [");
	for (int i = 0; i < n; i++) {
		const struct wait *w = &waits[i];
		printf("%s{\"what\": \"%s\", \"tid\": %d, \"kind\": \"wait\", \"end\": \"woken\", \"address\": %ld, \"waker\": %d, "
		       "\"call\": \"wake\", \"timeout_ns\": 0, \"owner\": 0, \"asleep\": %ld, \"around\": [%ld, %ld], \"wakes\": [%ld, %ld]}",
		       i > 0 ? ", " : "", w->what, w->waiter, (long)w->address, w->waker, (long)w->asleep,
		       (long)w->around[0], (long)w->around[1], (long)w->wakes[0], (long)w->wakes[1]);
	}
	printf("]}\n");
}
