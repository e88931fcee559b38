// Threads that are cancelled in waits, and clean up.
#include "program.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static int cleaned, refused;

static void clean(void *locked)
{
	cleaned++;
	if (locked)
		CHECK(0, pthread_mutex_unlock(locked));
}

static void *in_condition(void *tid)
{
	CHECK(0, pthread_mutex_lock(&mutex));
	pthread_cleanup_push(clean, &mutex);
	*(_Atomic pid_t *)tid = gettid();
	for (;;)
		pthread_cond_wait(&condition, &mutex);
	pthread_cleanup_pop(0);
}

static void *in_semaphore(void *tid)
{
	pthread_cleanup_push(clean, NULL);
	*(_Atomic pid_t *)tid = gettid();
	for (;;)
		sem_wait(&semaphore);
	pthread_cleanup_pop(0);
}

// The semaphore is never empty, so the wait never blocks, and is a cancellation point all the same.
static void *in_full_semaphore(void *tid)
{
	pthread_cleanup_push(clean, NULL);
	sem_t full;
	sem_init(&full, 0, 1);
	*(_Atomic pid_t *)tid = gettid();
	for (;;)
		sem_wait(&full), sem_post(&full);
	pthread_cleanup_pop(0);
}

// What is refused is refused before the thread is cancelled.
static void *in_refused_wait(void *tid)
{
	struct timespec none = {0, 1000000000};
	pthread_cleanup_push(clean, NULL);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cancel(pthread_self());
	*(_Atomic pid_t *)tid = gettid();
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	CHECK(-1, sem_timedwait(&semaphore, &none));
	CHECK(EINVAL, errno);
	refused++;
	pthread_testcancel();
	pthread_cleanup_pop(0);
	return NULL;
}

// Cancels a thread, once it is blocked in `wait` if there is one.
static void cancel(void *(*function)(void *), const void *wait, size_t bytes)
{
	_Atomic pid_t tid = 0;
	pthread_t thread;
	void *result;
	pthread_create(&thread, NULL, function, &tid);
	while (!tid)
		sched_yield();
	if (wait)
		wait_until_blocked(tid, wait, bytes);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	CHECK(1, result == PTHREAD_CANCELED);
}

int main(void)
{
	name("mutex", &mutex);
	name_thread("main");
	sem_init(&semaphore, 0, 0);
	cancel(in_condition, &condition, sizeof condition);
	cancel(in_semaphore, &semaphore, sizeof semaphore);
	cancel(in_full_semaphore, NULL, 0);
	cancel(in_refused_wait, NULL, 0);
	CHECK(4, cleaned);
	CHECK(1, refused);
	CHECK(0, pthread_mutex_lock(&mutex));
	CHECK(0, pthread_mutex_unlock(&mutex));
	return finish();
}
