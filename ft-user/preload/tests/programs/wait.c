// Waits for what nobody holds: a barrier, and an initialisation that another thread does.
#include "program.h"

static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT, other_once = PTHREAD_ONCE_INIT;
static pid_t waiter_tid;
static int started, initialised;

static void initialise(void)
{
	__atomic_store_n(&started, 1, __ATOMIC_RELEASE);
	// Until the other thread waits for this one.
	while (!__atomic_load_n(&waiter_tid, __ATOMIC_ACQUIRE))
		sched_yield();
	wait_until_blocked(waiter_tid, &once, sizeof once);
	initialised++;
}

static void count(void)
{
	initialised++;
}

static void *waiter(void *unused)
{
	name_thread("waiter");
	while (!__atomic_load_n(&started, __ATOMIC_ACQUIRE))
		sched_yield();
	__atomic_store_n(&waiter_tid, gettid(), __ATOMIC_RELEASE);
	KEEPS_ERRNO(pthread_once(&once, initialise));
	CHECK(1, initialised);
	int result = pthread_barrier_wait(&barrier);
	CHECK(1, result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
	return unused;
}

int main(void)
{
	pthread_t thread;
	name("barrier", &barrier), name("once", &once), name("other_once", &other_once);
	name_thread("main");
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, waiter, NULL);
	// Who initialises waits for nobody, and who finds it done neither.
	CHECK(0, pthread_once(&once, initialise));
	CHECK(0, pthread_once(&once, initialise));
	int result = pthread_barrier_wait(&barrier);
	CHECK(1, result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
	pthread_join(thread, NULL);
	CHECK(0, pthread_once(&other_once, count));
	CHECK(2, initialised);
	return finish();
}
