// A thread holds the lock of a file while the kernel fetches what it writes, a page that is not there until another one brings
// it (userfaultfd(2)). Meanwhile a third writes to the file, in a chain of four functions, and waits for that lock. Prints its
// threads and how often.
#include "chains.h"
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

enum { ROUNDS = 50, PAGE = 4096 };

static int file;
static char *absent;
static volatile int holder, waiter;

// How many times each has been asked to write, and has done so.
static int asked_holder, asked_waiter, held, stored;

static int at(int *count) { return __atomic_load_n(count, __ATOMIC_SEQ_CST); }
static void set(int *count, int n) { __atomic_store_n(count, n, __ATOMIC_SEQ_CST); }

WAY(store, call(SYS_pwrite64, file, (long)"x", 1))

static void *hold_it(void *unused) {
	holder = tid();
	for (int i = 0; i < ROUNDS; i++) {
		while (at(&asked_holder) <= i) usleep(100);
		if (pwrite(file, absent + i * PAGE, PAGE, 0) != PAGE) abort();
		set(&held, i + 1);
	}
	return unused;
}

static void *want_it(void *unused) {
	waiter = tid();
	for (int i = 0; i < ROUNDS; i++) {
		while (at(&asked_waiter) <= i) usleep(100);
		store_one();
		set(&stored, i + 1);
	}
	return unused;
}

// Returns when a thread sleeps in its write: the call is told of a thread that is off the CPU.
static void asleep(int thread) {
	char path[64];
	snprintf(path, sizeof path, "/proc/self/task/%d/syscall", thread);
	for (long call = -1; call != SYS_pwrite64; usleep(200)) {
		FILE *told = fopen(path, "r");
		if (told == NULL || fscanf(told, "%ld", &call) != 1) call = -1;
		if (told != NULL) fclose(told);
	}
}

int main(void) {
	char path[] = "/tmp/ft-chains-XXXXXX";
	file = mkstemp(path);
	unlink(path);
	absent = mmap(NULL, ROUNDS * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fault = syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register all = {
		.range = {(unsigned long)absent, ROUNDS * PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
	if (file < 0 || fault < 0 || ioctl(fault, UFFDIO_API, &api) != 0 || ioctl(fault, UFFDIO_REGISTER, &all) != 0) {
		perror("userfaultfd");
		return 1;
	}
	pthread_t threads[2];
	pthread_create(&threads[0], NULL, hold_it, NULL);
	pthread_create(&threads[1], NULL, want_it, NULL);
	while (!holder || !waiter) usleep(100);
	for (int i = 0; i < ROUNDS; i++) {
		set(&asked_holder, i + 1);
		asleep(holder);
		set(&asked_waiter, i + 1);
		asleep(waiter);
		usleep(2000);
		struct uffdio_zeropage page = {.range = {(unsigned long)absent + i * PAGE, PAGE}};
		if (ioctl(fault, UFFDIO_ZEROPAGE, &page) != 0) return 2;
		while (at(&held) <= i || at(&stored) <= i) usleep(100);
	}
	for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
	printf("{\"holder\": %d, \"waiter\": %d, \"rounds\": %d}\n", holder, waiter, ROUNDS);
	return 0;
}
