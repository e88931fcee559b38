// Two processes hand a turn to each other by semaphores in memory that they share. Each waits for it until the other one, which
// the kernel tells that it sleeps, posts. Prints the waits.
#include "waits.h"
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static struct shared {
	sem_t turns[2];
	int pids[2];
	struct wait waits[];
} *shared;
static int rounds;

// What one of them does: in the rounds of its parity it waits, in the others it posts.
static void play(int me)
{
	__atomic_store_n(&shared->pids[me], getpid(), __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&shared->pids[!me], __ATOMIC_SEQ_CST)) pause_us(100);
	for (int i = 0; i < rounds; i++) {
		struct wait *wait = &shared->waits[i];
		sem_t *turn = &shared->turns[i % 2];
		if (i % 2 == me) {
			about_to_wait(wait);
			sem_wait(turn);
			waited(wait);
		} else {
			about_to_wake(wait, shared->pids[!me]);
			sem_post(turn);
			woke(wait);
		}
	}
}

int main(int argc, char **argv)
{
	rounds = argc > 1 ? atoi(argv[1]) : 1;
	size_t bytes = sizeof *shared + rounds * sizeof *shared->waits;
	shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED) return 1;
	for (int i = 0; i < 2; i++) sem_init(&shared->turns[i], 1, 0);
	for (int i = 0; i < rounds; i++) {
		shared->waits[i].what = "semaphore";
		// In what glibc has there the value comes first.
		shared->waits[i].address = (uintptr_t)&shared->turns[i % 2];
	}
	// The child looks at its parent, which some machines forbid otherwise.
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	pid_t child = fork();
	if (child < 0) return 2;
	play(child == 0);
	if (child == 0) _exit(0);
	waitpid(child, NULL, 0);
	print_waits(shared->waits, rounds);
	return 0;
}
