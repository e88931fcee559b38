/* A function that stays for SECONDS, once a line was read, and calls one of another file 1000 times a second.
 *
 * nested SECONDS; with -DINNER the other file, a library */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone, used))

int inner(void);

#ifdef INNER
KEPT int inner(void)
{
	__asm__ volatile("");
	return usleep(1000);
}
#else
KEPT int outer(long seconds)
{
	int sum = 0;
	for (long i = 0; i < seconds * 1000; i++)
		sum += inner();
	return sum;
}

int main(int argc, char **argv)
{
	long seconds = argc > 1 ? atol(argv[1]) : 1;
	/* Until those are there who probe it. */
	getchar();
	puts("entered");
	fflush(stdout);
	return outer(seconds) != 0;
}
#endif
