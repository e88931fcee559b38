/* A thread that works every millisecond, sometimes for too long, and says so.
 *
 * periodic CYCLES: of each hundred, cycle 30 computes for 3 ms, and cycle 60 waits for a mutex that another thread holds for 4 ms
 * while it sleeps. It prints, as JSON, what each cycle was due at, how long it took, and how much of that it waited or computed. */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PERIOD 1000000LL
#define COMPUTES 3000000LL
#define HOLDS 4000000LL
/* Less is left of a period than a thread takes to go to sleep. */
#define TOO_LITTLE 100000LL

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t go;
static int held, over;

static long long at(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void sleep_until(long long ns)
{
	struct timespec t = { ns / 1000000000, ns % 1000000000 };
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static void compute(long long ns)
{
	long long until = at(CLOCK_THREAD_CPUTIME_ID) + ns;
	while (at(CLOCK_THREAD_CPUTIME_ID) < until)
		;
}

static void *holder(void *unused)
{
	for (;;) {
		while (sem_wait(&go))
			;
		if (__atomic_load_n(&over, __ATOMIC_SEQ_CST))
			return unused;
		struct timespec holds = { 0, HOLDS };
		pthread_mutex_lock(&mutex);
		__atomic_store_n(&held, 1, __ATOMIC_SEQ_CST);
		nanosleep(&holds, NULL);
		pthread_mutex_unlock(&mutex);
	}
}

static void *periodic(void *cycles)
{
	int n = *(int *)cycles;
	/* Where that is forbidden, its timers have the usual slack of 50 us. */
	struct sched_param first = { 80 };
	int error = pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
	long long due = at(CLOCK_MONOTONIC) + 5 * PERIOD;
	printf("{\"real_time\": %s, \"cycles\": [", error ? "false" : "true");
	for (int i = 0; i < n; i++) {
		sleep_until(due);
		long long computed = at(CLOCK_THREAD_CPUTIME_ID), waited = 0;
		compute(50000);
		if (i % 100 == 30)
			compute(COMPUTES);
		if (i % 100 == 59)
			sem_post(&go);
		if (__atomic_exchange_n(&held, 0, __ATOMIC_SEQ_CST)) {
			waited = at(CLOCK_MONOTONIC);
			pthread_mutex_lock(&mutex);
			waited = at(CLOCK_MONOTONIC) - waited;
			pthread_mutex_unlock(&mutex);
		}
		computed = at(CLOCK_THREAD_CPUTIME_ID) - computed;
		long long took = at(CLOCK_MONOTONIC) - due;
		/* Into the buffer of stdout, which holds them all. */
		printf("%s[%lld, %lld, %lld, %lld]", i ? ", " : "", due, took, waited, computed);
		long long now = at(CLOCK_MONOTONIC);
		do
			due += PERIOD;
		while (due < now + TOO_LITTLE);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1000;
	pthread_t threads[2];
	char *buffer = malloc((size_t)n * 100 + 1000);
	setvbuf(stdout, buffer, _IOFBF, (size_t)n * 100 + 1000);
	sem_init(&go, 0, 0);
	pthread_create(&threads[0], NULL, holder, NULL);
	pthread_create(&threads[1], NULL, periodic, &n);
	pthread_setname_np(threads[0], "holder");
	pthread_setname_np(threads[1], "rt-loop");
	pthread_join(threads[1], NULL);
	__atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
	sem_post(&go);
	pthread_join(threads[0], NULL);
	printf("]}\n");
	return fflush(stdout) != 0;
}
