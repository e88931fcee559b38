// A thread that waits shortly again and again, for its partner on the same CPU, and then long; and later long alone. Its eight
// functions have 2 KiB of stack.
#include "chains.h"

#define ROUNDS 50
#define SHORT_WAITS 64

static int there[2], back[2];
static volatile int deep;

static void exchange(int from, int to) {
	char one = 0;
	while (read(from, &one, 1) != 1) {}
	while (write(to, &one, 1) != 1) {}
}

static void *partner(void *unused) {
	first_cpu();
	for (int i = 0; i < ROUNDS * SHORT_WAITS; i++) exchange(there[0], back[1]);
	return unused;
}

static inline __attribute__((always_inline)) void work(void) {
	struct timespec nap = {.tv_nsec = 2000000};
	char one = 0;
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < SHORT_WAITS; i++) {
			if (write(there[1], &one, 1) != 1 || read(back[0], &one, 1) != 1) _exit(1);
		}
		call(SYS_nanosleep, (long)&nap, 0, 0);
	}
	for (int round = 0; round < ROUNDS; round++) call(SYS_nanosleep, (long)&nap, 0, 0);
}

#define STEP(name, next) \
	static __attribute__((noinline)) void name(void) { \
		volatile char room[256]; \
		room[0] = 1; \
		next(); \
		deep += room[0]; \
	}
STEP(step_eight, work)
STEP(step_seven, step_eight)
STEP(step_six, step_seven)
STEP(step_five, step_six)
STEP(step_four, step_five)
STEP(step_three, step_four)
STEP(step_two, step_three)
STEP(step_one, step_two)

int main(void) {
	pthread_t thread;
	if (pipe(there) != 0 || pipe(back) != 0) return 1;
	first_cpu();
	pthread_create(&thread, NULL, partner, NULL);
	step_one();
	pthread_join(thread, NULL);
	printf("{\"sleeper\": %d, \"rounds\": %d}\n", getpid(), ROUNDS);
	return 0;
}
