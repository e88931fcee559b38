// Condition waits: woken, timed out on both clocks, and refused.
#include "program.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int ready;

static void *waker(void *unused)
{
	CHECK(0, pthread_mutex_lock(&mutex));
	ready = 1;
	CHECK(0, pthread_cond_signal(&condition));
	CHECK(0, pthread_mutex_unlock(&mutex));
	return unused;
}

int main(void)
{
	pthread_t thread;
	struct timespec soon = in_ms(CLOCK_REALTIME, 2), later = in_ms(CLOCK_MONOTONIC, 2);
	struct timespec never = {.tv_nsec = -1};
	name("mutex", &mutex), name("checking", &checking), name("condition", &condition);
	name_thread("main");
	CHECK(0, pthread_mutex_lock(&mutex));
	pthread_create(&thread, NULL, waker, NULL);
	while (!ready)
		KEEPS_ERRNO(pthread_cond_wait(&condition, &mutex));
	CHECK(ETIMEDOUT, pthread_cond_timedwait(&condition, &mutex, &soon));
	CHECK(ETIMEDOUT, pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &later));
	CHECK(EINVAL, pthread_cond_timedwait(&condition, &mutex, &never));
	CHECK(0, pthread_mutex_unlock(&mutex));
	CHECK(EPERM, pthread_cond_wait(&condition, &checking));
	pthread_join(thread, NULL);
	return finish();
}
