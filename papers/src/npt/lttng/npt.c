/* The loop of `ft-load npt` with a trace point of LTTng-UST: `npt CPU PRIORITY CYCLES` runs for that many cycles of the
 * counter, and prints `cycles count` for each length of a pass. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <x86intrin.h>

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "npt_events.h"

/* Longer passes are kept one by one, as many as there is room for, and beyond that counted as the last length. */
#define EXACT 65536
#define LONGER 1000000

static uint64_t counts[EXACT];
static uint64_t longer[LONGER];

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(atoi(argv[1]), &set);
	struct sched_param priority = { .sched_priority = atoi(argv[2]) };
	if (sched_setaffinity(0, sizeof(set), &set) || mlockall(MCL_CURRENT) ||
	    sched_setscheduler(0, SCHED_FIFO, &priority)) {
		perror("npt");
		return 1;
	}
	uint64_t kept = 0, first = __rdtsc(), before = first, end = first + strtoull(argv[3], NULL, 10);
	for (uint64_t pass = 0; before < end; pass++) {
		lttng_ust_tracepoint(npt, pass, pass);
		uint64_t now = __rdtsc(), cycles = now - before;
		before = now;
		/* The first five do not count. */
		if (pass < 5)
			continue;
		if (cycles < EXACT)
			counts[cycles]++;
		else if (kept < LONGER)
			longer[kept++] = cycles;
		else
			counts[EXACT - 1]++;
	}
	for (uint64_t n = 0; n < EXACT; n++)
		if (counts[n])
			printf("%lu %lu\n", n, counts[n]);
	for (uint64_t n = 0; n < kept; n++)
		printf("%lu 1\n", longer[n]);
	return 0;
}
