// Waits with an end that is none: refused as without the library, which looks first whether the lock is free.
#include "program.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, inheriting;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t semaphore;

static int error_of(int result)
{
	return result == 0 ? 0 : errno;
}

int main(void)
{
	struct timespec late = in_ms(CLOCK_REALTIME, 100000), odd = {late.tv_sec, 1000000000}, early = {-1, 0};
	pthread_mutexattr_t attributes;
	name("mutex", &mutex), name("inheriting", &inheriting), name("rwlock", &rwlock);
	name("semaphore", &semaphore);
	name_thread("main");
	sem_init(&semaphore, 0, 5);
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&inheriting, &attributes);

	CHECK(EINVAL, pthread_mutex_clocklock(&mutex, CLOCK_PROCESS_CPUTIME_ID, &late));
	CHECK(EINVAL, pthread_mutex_clocklock(&mutex, 99, &late));
	// Of these it takes what is free without a look at the time.
	CHECK(0, pthread_mutex_timedlock(&mutex, &odd));
	CHECK(0, pthread_mutex_unlock(&mutex));
	CHECK(0, pthread_mutex_timedlock(&mutex, &early));
	CHECK(0, pthread_mutex_unlock(&mutex));
	CHECK(0, pthread_mutex_timedlock(&inheriting, &late));
	CHECK(0, pthread_mutex_unlock(&inheriting));

	CHECK(EINVAL, pthread_rwlock_timedrdlock(&rwlock, &odd));
	CHECK(EINVAL, pthread_rwlock_timedwrlock(&rwlock, &odd));
	CHECK(EINVAL, pthread_rwlock_clockrdlock(&rwlock, 99, &late));
	CHECK(EINVAL, pthread_rwlock_clockwrlock(&rwlock, 99, &late));
	CHECK(0, pthread_rwlock_timedwrlock(&rwlock, &late));
	CHECK(0, pthread_rwlock_unlock(&rwlock));

	CHECK(EINVAL, error_of(sem_timedwait(&semaphore, &odd)));
	CHECK(EINVAL, error_of(sem_clockwait(&semaphore, 99, &late)));
	CHECK(0, sem_timedwait(&semaphore, &late));
	return finish();
}
