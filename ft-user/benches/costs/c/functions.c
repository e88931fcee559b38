/* Calls of a function that does next to nothing, so that what a compiler adds to it stands alone. Between batches whoever
   records has time to read. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#ifndef QUIET
#define QUIET __attribute__((no_instrument_function))
#endif
#define MOST_CALLS 50000
#define BATCHES 21

__attribute__((noinline)) static unsigned long leaf(unsigned long x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

QUIET static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

QUIET static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Calls of a batch are the argument, if there is one. */
QUIET int main(int count, char **arguments)
{
	int calls = count > 1 ? atoi(arguments[1]) : MOST_CALLS;
	cpu_set_t last;
	CPU_ZERO(&last);
	CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &last);
	sched_setaffinity(0, sizeof last, &last);
	double batch[BATCHES];
	unsigned long x = 0;
	for (int i = 0; i < BATCHES; i++) {
		usleep(30000);
		double from = now();
		for (int j = 0; j < calls; j++)
			x = leaf(x);
		batch[i] = (now() - from) / calls;
	}
	qsort(batch, BATCHES, sizeof *batch, compare);
	printf("figure call %.3f\n", batch[BATCHES / 2]);
	return x != (unsigned long)BATCHES * calls;
}
