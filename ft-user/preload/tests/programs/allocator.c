// A program with an allocator of its own, which takes a lock of each kind for each block, the first before anything is initialised.
#include "program.h"
#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Alignas(16) char heap[64 << 20];
static size_t used;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static sem_t semaphore;

static void start(void)
{
	sem_init(&semaphore, 0, 4096);
	pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
}

void *malloc(size_t bytes)
{
	CHECK(0, pthread_once(&once, start));
	CHECK(0, sem_wait(&semaphore));
	CHECK(0, sem_post(&semaphore));
	CHECK(0, pthread_rwlock_rdlock(&rwlock));
	CHECK(0, pthread_rwlock_unlock(&rwlock));
	CHECK(0, pthread_spin_lock(&spin));
	CHECK(0, pthread_spin_unlock(&spin));
	CHECK(0, pthread_mutex_lock(&mutex));
	size_t *block = (size_t *)(heap + used);
	used += (bytes + 31) & ~(size_t)15;
	if (used > sizeof heap)
		abort();
	CHECK(0, pthread_mutex_unlock(&mutex));
	*block = bytes;
	return (char *)block + 16;
}

void free(void *block)
{
	CHECK(0, pthread_mutex_lock(&mutex));
	(void)block;
	CHECK(0, pthread_mutex_unlock(&mutex));
}

void *calloc(size_t n, size_t bytes) { return malloc(n * bytes); }

void *realloc(void *old, size_t bytes)
{
	void *new = malloc(bytes);
	size_t had = old ? *(size_t *)((char *)old - 16) : 0;
	return old ? memcpy(new, old, had < bytes ? had : bytes) : new;
}

static void *worker(void *unused)
{
	for (int i = 0; i < 1000; i++) {
		// Volatile: a compiler may leave out a block that nobody uses.
		void *volatile block = malloc(i);
		free(block);
	}
	return unused;
}

int main(void)
{
	pthread_t threads[4];
	name("mutex", &mutex);
	name_thread("main");
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, worker, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return finish();
}
