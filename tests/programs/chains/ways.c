// Known chains of four functions: one sleeps, one waits and one wakes it, two spin on one CPU and take it from each other.
// Prints its threads.
#include "chains.h"

static struct timespec nap = {0, 2000000};
WAY(sleep, call(SYS_nanosleep, (long)&nap, 0, 0))

// What the waiter waits to change, and how often it is to.
static volatile int word;
static int rounds = 50;
enum { FUTEX_WAIT_PRIVATE = 128, FUTEX_WAKE_PRIVATE = 129 };
WAY(wait, call(SYS_futex, (long)&word, FUTEX_WAIT_PRIVATE, word))
WAY(wake, call(SYS_futex, (long)&word, FUTEX_WAKE_PRIVATE, 1))

static volatile int stop;
WAY(spin, while (!stop))

static int waiter, waker, spinners[2];
static volatile int waiting;

static void *wait_for_it(void *unused) {
	waiter = tid();
	for (int i = 0; i < rounds; i++) {
		int before = word;
		waiting = 1;
		while (word == before) wait_one();
	}
	return unused;
}

static void *wake_it(void *unused) {
	waker = tid();
	for (int i = 0; i < rounds; i++) {
		while (!waiting) usleep(100);
		usleep(3000);
		waiting = 0;
		word++;
		wake_one();
	}
	return unused;
}

static void *spin(void *id) {
	first_cpu();
	*(int *)id = tid();
	spin_one();
	return NULL;
}

// A thread's time on a CPU so far.
static long spent_ms(pthread_t thread) {
	clockid_t clock;
	struct timespec time;
	if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
	return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

int main(void) {
	for (int i = 0; i < rounds; i++) sleep_one();
	pthread_t threads[4];
	pthread_create(&threads[0], NULL, wait_for_it, NULL);
	pthread_create(&threads[1], NULL, wake_it, NULL);
	pthread_create(&threads[2], NULL, spin, &spinners[0]);
	pthread_create(&threads[3], NULL, spin, &spinners[1]);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	// Each timer strikes one of the spinners.
	first_cpu();
	for (int i = 0; i < 2 * rounds; i++) usleep(10000);
	// However little of a CPU they get: as long as samples are enough.
	while (spent_ms(threads[2]) + spent_ms(threads[3]) < 300) usleep(10000);
	stop = 1;
	pthread_join(threads[2], NULL);
	pthread_join(threads[3], NULL);
	printf("{\"sleeper\": %d, \"waiter\": %d, \"waker\": %d, \"spinners\": [%d, %d], \"rounds\": %d}\n",
	       getpid(), waiter, waker, spinners[0], spinners[1], rounds);
	return 0;
}
