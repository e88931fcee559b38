// Threads that come and go, a storm of signals whose handler posts, and the library opened and closed.
#include "program.h"
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t posted;
// A timer's signals go to any thread: handlers run side by side.
static atomic_int posts;
static int count;

static void handler(int number)
{
	int before = errno;
	(void)number;
	sem_post(&posted);
	posts++;
	errno = before;
}

static void *worker(void *unused)
{
	for (int i = 0; i < 100; i++) {
		CHECK(0, pthread_mutex_lock(&mutex));
		count++;
		CHECK(0, pthread_mutex_unlock(&mutex));
	}
	return unused;
}

int main(void)
{
	pthread_t threads[8];
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	struct itimerval timer = {{0, 100}, {0, 100}}, off = {{0, 0}, {0, 0}};
	const char *library = getenv("LD_PRELOAD");
	int value;

	name("mutex", &mutex), name("posted", &posted);
	name_thread("main");
	sem_init(&posted, 0, 0);
	if (library) {
		void *handle = dlopen(library, RTLD_NOW);
		CHECK(1, handle != NULL);
		CHECK(0, dlclose(handle));
	}
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	for (int i = 0; i < 50; i++) {
		for (int j = 0; j < 8; j++)
			CHECK(0, pthread_create(&threads[j], NULL, worker, NULL));
		for (int j = 0; j < 8; j++)
			CHECK(0, pthread_join(threads[j], NULL));
	}
	setitimer(ITIMER_REAL, &off, NULL);
	CHECK(50 * 8 * 100, count);
	sem_getvalue(&posted, &value);
	CHECK(posts, value);
	printf("posts %#x\n", value);
	return finish();
}
