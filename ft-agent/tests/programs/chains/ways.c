// Known chains of four functions: one sleeps, one waits and one wakes it, two spin on one CPU and take it from each other.
// Prints its threads.
#include "chains.h"

// A system call from this very function: the C library's own have no frame, and would hide it.
static inline __attribute__((always_inline)) long call(long number, long a, long b, long c) {
	long result;
	register long d __asm__("r10") = 0;
	__asm__ volatile("syscall" : "=a"(result) : "0"(number), "D"(a), "S"(b), "d"(c), "r"(d)
			 : "rcx", "r11", "memory");
	return result;
}

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

int main(void) {
	for (int i = 0; i < rounds; i++) sleep_one();
	pthread_t threads[4];
	pthread_create(&threads[0], NULL, wait_for_it, NULL);
	pthread_create(&threads[1], NULL, wake_it, NULL);
	pthread_create(&threads[2], NULL, spin, &spinners[0]);
	pthread_create(&threads[3], NULL, spin, &spinners[1]);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	sleep(1);
	stop = 1;
	pthread_join(threads[2], NULL);
	pthread_join(threads[3], NULL);
	printf("{\"sleeper\": %d, \"waiter\": %d, \"waker\": %d, \"spinners\": [%d, %d], \"rounds\": %d}\n",
	       getpid(), waiter, waker, spinners[0], spinners[1], rounds);
	return 0;
}
