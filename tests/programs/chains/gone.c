// Naps in a known chain: once; or with `gone END PATH` until there is a file END, after it has moved PATH in its own place, or
// has removed itself where PATH is empty.
#include "chains.h"

static inline __attribute__((always_inline)) long nap_call(const struct timespec *nap) {
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "0"((long)SYS_nanosleep), "D"(nap), "S"(0) : "rcx", "r11", "memory");
	return result;
}

static struct timespec nap = {0, 2000000};
WAY(nap, nap_call(&nap))

int main(int argc, char **argv) {
	if (argc < 3) {
		nap_one();
		return 0;
	}
	int failed = argv[2][0] ? rename(argv[2], argv[0]) : unlink(argv[0]);
	if (failed) return 1;
	do nap_one();
	while (access(argv[1], F_OK));
	printf("{\"napper\": %d}\n", getpid());
	return 0;
}
