// A thread holds a lock in a known chain of four functions, while another wants its CPU; a third waits for the lock in a
// chain of its own. Prints its threads.
#include "chains.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int go, held, stop;
static int holder, waiter;

WAY(hold, while (go && !stop) {})

// Who calls code without frames, as the C library's, can be missing in a chain: that is this one.
static __attribute__((noinline)) void take(void) {
	pthread_mutex_lock(&lock);
	after++;
}
WAY(want, take())

static void *hold_it(void *unused) {
	first_cpu();
	holder = tid();
	while (!stop) {
		while (!go && !stop) usleep(200);
		pthread_mutex_lock(&lock);
		held = 1;
		hold_one();
		held = 0;
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

static void *rival(void *unused) {
	first_cpu();
	while (!stop) {}
	return unused;
}

static void *want_it(void *unused) {
	waiter = tid();
	for (int i = 0; i < 50; i++) {
		while (!held) {
			go = 1;
			usleep(200);
		}
		want_one();
		pthread_mutex_unlock(&lock);
	}
	stop = 1;
	return unused;
}

int main(void) {
	pthread_t threads[3];
	pthread_create(&threads[0], 0, hold_it, 0);
	pthread_create(&threads[1], 0, rival, 0);
	pthread_create(&threads[2], 0, want_it, 0);
	while (!stop) {
		// As long as both have a turn or two.
		usleep(12000);
		go = 0;
	}
	for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
	printf("{\"holder\": %d, \"waiter\": %d}\n", holder, waiter);
	return 0;
}
