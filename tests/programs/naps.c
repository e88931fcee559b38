// A program that is there for a second, and sleeps so often that somebody looks at it.
#include <time.h>

int main(void)
{
	const struct timespec nap = {.tv_nsec = 2000000};
	for (int i = 0; i < 500; i++)
		nanosleep(&nap, NULL);
	return 0;
}
