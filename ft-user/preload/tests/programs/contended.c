// A thread waits for a mutex, for both sides of a reader-writer lock, and for a spin lock.
#include "program.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static _Atomic pid_t tid;
static _Atomic int may_go;

static void *waiter(void *unused)
{
	name_thread("waiter");
	tid = gettid();
	CHECK(0, pthread_mutex_lock(&mutex));
	CHECK(0, pthread_mutex_unlock(&mutex));
	KEEPS_ERRNO(pthread_rwlock_rdlock(&rwlock));
	CHECK(0, pthread_rwlock_unlock(&rwlock));
	while (!may_go)
		usleep(100);
	CHECK(0, pthread_rwlock_wrlock(&rwlock));
	CHECK(0, pthread_rwlock_unlock(&rwlock));
	tid = 0;
	// From here on it only spins.
	CHECK(0, pthread_spin_lock(&spin));
	CHECK(0, pthread_spin_unlock(&spin));
	return unused;
}

int main(void)
{
	pthread_t thread;
	clockid_t cpu_time;
	struct timespec past = {0}, before, now;
	name("mutex", &mutex), name("rwlock", &rwlock), name("spin", (void *)&spin);
	name_thread("main");
	pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
	CHECK(0, pthread_mutex_lock(&mutex));
	CHECK(0, pthread_rwlock_wrlock(&rwlock));
	CHECK(EDEADLK, pthread_rwlock_rdlock(&rwlock));
	CHECK(0, pthread_spin_trylock(&spin));
	CHECK(EBUSY, pthread_spin_trylock(&spin));
	pthread_create(&thread, NULL, waiter, NULL);
	while (!tid)
		sched_yield();
	wait_until_blocked(tid, &mutex, sizeof mutex);
	CHECK(0, pthread_mutex_unlock(&mutex));
	wait_until_blocked(tid, &rwlock, sizeof rwlock);
	CHECK(0, pthread_rwlock_unlock(&rwlock));
	CHECK(0, pthread_rwlock_timedrdlock(&rwlock, &past));
	CHECK(0, pthread_rwlock_tryrdlock(&rwlock));
	CHECK(EBUSY, pthread_rwlock_trywrlock(&rwlock));
	CHECK(ETIMEDOUT, pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &past));
	may_go = 1;
	wait_until_blocked(tid, &rwlock, sizeof rwlock);
	CHECK(0, pthread_rwlock_unlock(&rwlock));
	CHECK(0, pthread_rwlock_unlock(&rwlock));
	while (tid)
		usleep(100);
	pthread_getcpuclockid(thread, &cpu_time);
	clock_gettime(cpu_time, &before);
	do
		clock_gettime(cpu_time, &now);
	while ((now.tv_sec - before.tv_sec) * 1000000000 + now.tv_nsec - before.tv_nsec < 5000000);
	CHECK(0, pthread_spin_unlock(&spin));
	pthread_join(thread, NULL);
	return finish();
}
