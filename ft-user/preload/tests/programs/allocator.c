// A program with an allocator of its own, which takes a mutex for each block.
#include "program.h"
#include <stddef.h>
#include <stdint.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Alignas(16) char heap[64 << 20];
static size_t used;

void *malloc(size_t bytes)
{
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
