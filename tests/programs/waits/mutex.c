// One thread holds a mutex until the kernel says that another one sleeps for it. Prints the waits.
#include "waits.h"
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct wait *waits;
static int rounds;
// Of how many rounds the mutex was taken, and how many are over.
static int held, over;

static int at(int *count)
{
	return __atomic_load_n(count, __ATOMIC_SEQ_CST);
}

static void *want(void *unused)
{
	for (int i = 0; i < rounds; i++) {
		while (at(&held) <= i) pause_us(100);
		about_to_wait(&waits[i]);
		pthread_mutex_lock(&lock);
		waited(&waits[i]);
		pthread_mutex_unlock(&lock);
		__atomic_store_n(&over, i + 1, __ATOMIC_SEQ_CST);
	}
	return unused;
}

int main(int argc, char **argv)
{
	rounds = argc > 1 ? atoi(argv[1]) : 1;
	waits = calloc(rounds, sizeof *waits);
	pthread_t waiter;
	pthread_create(&waiter, NULL, want, NULL);
	for (int i = 0; i < rounds; i++) {
		waits[i].what = "lock";
		waits[i].address = (uintptr_t)&lock;
		pthread_mutex_lock(&lock);
		__atomic_store_n(&held, i + 1, __ATOMIC_SEQ_CST);
		about_to_wake(&waits[i], getpid());
		pthread_mutex_unlock(&lock);
		woke(&waits[i]);
		while (at(&over) <= i) pause_us(100);
	}
	pthread_join(waiter, NULL);
	print_waits(waits, rounds);
	return 0;
}
