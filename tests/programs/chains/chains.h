// What the programs with known chains share. Build with frame pointers.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>

// A chain of four functions of which the innermost does `last`. Something is left to do after each call, which so is no jump.
// And the innermost has a frame: a compiler makes none for a function that calls nothing, and a chain then lacks who called
// it.
static volatile int after;
static void *volatile frame;
#define WAY(name, last) \
	static __attribute__((noinline)) void name##_four(void) { \
		frame = __builtin_frame_address(0); \
		last; \
		after++; \
	} \
	static __attribute__((noinline)) void name##_three(void) { name##_four(); after++; } \
	static __attribute__((noinline)) void name##_two(void) { name##_three(); after++; } \
	static __attribute__((noinline)) void name##_one(void) { name##_two(); after++; }

// A system call from this very function: the C library's own have no frame, and would hide it.
static inline __attribute__((always_inline)) long call(long number, long a, long b, long c) {
	long result;
	register long d __asm__("r10") = 0;
	__asm__ volatile("syscall" : "=a"(result) : "0"(number), "D"(a), "S"(b), "d"(c), "r"(d)
			 : "rcx", "r11", "memory");
	return result;
}

static inline int tid(void) { return (int)syscall(SYS_gettid); }

// Threads that have called it take one CPU from each other.
static inline void first_cpu(void) {
	cpu_set_t set, all;
	sched_getaffinity(0, sizeof all, &all);
	int cpu = 0;
	while (!CPU_ISSET(cpu, &all)) cpu++;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof set, &set);
}
