// Spends its time in known functions, holding a lock and not holding it, and prints how much by the clock of its own CPU
// time. Build with frame pointers.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static long long now(void) {
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static volatile unsigned sum;
#define WORK(name) \
	static __attribute__((noinline)) void name(unsigned n) { \
		for (unsigned i = 0; i < n; i++) sum += i; \
		sum++; \
	}
WORK(alone)
WORK(holding)
WORK(either)

int main(void) {
	// In turns of random length, so that it keeps step with no clock.
	srand(7);
	long long spent[4] = {0}, begin = now(), end = begin;
	while (end - begin < 3000000000LL) {
		unsigned unit = 200000 + (unsigned)rand() % 400000;
		long long at[5];
		at[0] = now();
		alone(5 * unit);
		at[1] = now();
		either(unit);
		at[2] = now();
		pthread_mutex_lock(&lock);
		at[3] = now();
		holding(3 * unit);
		at[4] = now();
		either(unit);
		end = now();
		pthread_mutex_unlock(&lock);
		spent[0] += at[1] - at[0];
		spent[1] += at[2] - at[1];
		spent[2] += at[4] - at[3];
		spent[3] += end - at[4];
	}
	printf("{\"alone\": %lld, \"either\": %lld, \"holding\": %lld, \"either_holding\": %lld, \"all\": %lld}\n",
	       spent[0], spent[1], spent[2], spent[3], now());
	return 0;
}
