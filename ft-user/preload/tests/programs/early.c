// Locks before `main`: before any constructor, in a constructor, and in a destructor behind it.
#include "program.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int times;

static void lock_once(void)
{
	struct timespec past = {0};
	CHECK(0, pthread_mutex_lock(&mutex));
	CHECK(EBUSY, pthread_mutex_trylock(&mutex));
	CHECK(ETIMEDOUT, pthread_cond_timedwait(&condition, &mutex, &past));
	CHECK(0, pthread_mutex_unlock(&mutex));
	times++;
}

// Comes before the constructors of all libraries.
__attribute__((section(".preinit_array"), used)) static void (*first)(void) = lock_once;
__attribute__((constructor)) static void constructor(void) { lock_once(); }
__attribute__((destructor)) static void destructor(void) { lock_once(); }

int main(void)
{
	CHECK(2, times);
	name("mutex", &mutex);
	name_thread("main");
	lock_once();
	return finish();
}
