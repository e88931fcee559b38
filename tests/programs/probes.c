/* Calls functions a known number of times, some within each other, some that never return, and says when.
 *
 * probes ROUNDS */

#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone, used))
#define DEEP 9
/* The kernel follows 64 calls into each other. */
#define DEEPEST 80

static jmp_buf back;
static long long inside[2];

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* A mark as <sys/sdt.h> makes it, without a semaphore and without arguments. */
#define MARK(name)                                                        \
	__asm__ volatile("990: nop\n"                                     \
			 ".pushsection .note.stapsdt,\"\",\"note\"\n"     \
			 ".balign 4\n"                                    \
			 ".4byte 992f-991f, 994f-993f, 3\n"               \
			 "991: .asciz \"stapsdt\"\n"                      \
			 "992: .balign 4\n"                               \
			 "993: .8byte 990b, 0, 0\n"                       \
			 ".asciz \"ft\"\n.asciz \"" name "\"\n.asciz \"\"\n" \
			 "994: .balign 4\n"                               \
			 ".popsection\n")

KEPT int leaf(int n)
{
	__asm__ volatile("");
	return n + 1;
}

KEPT int outer(int n)
{
	inside[0] = now();
	int sum = leaf(n) + leaf(n) + leaf(n);
	usleep(100);
	inside[1] = now();
	return sum;
}

KEPT int deep(int n)
{
	int sum = n > 1 ? deep(n - 1) + 1 : 1;
	__asm__ volatile("");
	return sum;
}

KEPT void leap(void)
{
	longjmp(back, 1);
}

KEPT void leaper(void)
{
	leap();
	__asm__ volatile("");
}

/* A last call that is a jump. */
int tail(void);
int tailed(void);
__asm__(".text\n"
	".globl tail, tailed\n"
	".type tail, @function\n"
	"tail: push %rbp\n"
	"pop %rbp\n"
	"jmp tailed\n"
	".size tail, .-tail\n"
	".type tailed, @function\n"
	"tailed: push %rbp\n"
	"pop %rbp\n"
	"ret\n"
	".size tailed, .-tailed\n");

/* What is marked within what is marked, in another thread. */
static void *marks(void *rounds)
{
	for (long i = 0; i < *(long *)rounds; i++) {
		for (int n = 0; n < 2; n++)
			MARK("begin");
		for (int n = 0; n < 2; n++)
			MARK("end");
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 50;
	pthread_t thread;
	pthread_create(&thread, NULL, marks, &rounds);
	printf("{\"deep\":%d,\"followed\":64,\"deepest\":%d,\"outer\":[", DEEP, DEEPEST);
	for (volatile long i = 0; i < rounds; i++) {
		long long before = now();
		outer(i);
		long long after = now();
		printf("%s[%lld,%lld,%lld,%lld]", i ? "," : "", before, inside[0], inside[1], after);
		deep(DEEP);
		tail();
		if (!setjmp(back))
			leaper();
	}
	pthread_join(thread, NULL);
	deep(DEEPEST);
	printf("]}\n");
	return 0;
}
