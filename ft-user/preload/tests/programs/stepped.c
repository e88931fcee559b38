// Calls of the library's functions that are interrupted at each instruction; `tests/unwind.rs` steps through them.
#include "../../../tests/c/stepped.h"
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t taken = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static sem_t semaphore;
static const struct timespec past = { 1, 0 };

// What the handler does must not be what it interrupts.
static void inner(void)
{
	pthread_mutex_lock(&other);
	pthread_mutex_unlock(&other);
}

static void after(void) {}

APART static void mutexes(void)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	if (pthread_mutex_trylock(&mutex) == 0)
		pthread_mutex_unlock(&mutex);
}

// Waits, and is told that the time is over.
APART static void contended(void)
{
	if (pthread_mutex_timedlock(&taken, &past) == 0)
		abort();
}

APART static void rwlocks(void)
{
	pthread_rwlock_rdlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
	pthread_rwlock_wrlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
}

APART static void spins(void)
{
	pthread_spin_lock(&spin);
	pthread_spin_unlock(&spin);
}

APART static void semaphores(void)
{
	sem_post(&semaphore);
	sem_wait(&semaphore);
}

APART static void conditions(void)
{
	pthread_mutex_lock(&mutex);
	pthread_cond_timedwait(&condition, &mutex, &past);
	pthread_mutex_unlock(&mutex);
}

// The last two sleep.
static void (*const kinds[])(void) = { mutexes, rwlocks, spins, semaphores, contended, conditions };
enum { KINDS = sizeof kinds / sizeof kinds[0], AWAKE = KINDS - 2 };

APART static void outer(int number)
{
	kinds[number]();
}

int main(int argc, char **argv)
{
	pthread_mutex_lock(&taken);
	pthread_spin_init(&spin, 0);
	sem_init(&semaphore, 0, 0);
	return busy(argc, argv, AWAKE) ? 0 : stepped(argc, argv, KINDS, after);
}
