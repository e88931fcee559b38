// Nesting, attempts, limits, and the types of mutexes.
#include "program.h"

static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t robust, inheriting;

static __attribute__((noinline)) void nested(void)
{
	KEEPS_ERRNO(pthread_mutex_lock(&outer));
	CHECK(0, pthread_mutex_trylock(&inner));
	CHECK(0, pthread_mutex_unlock(&inner));
	KEEPS_ERRNO(pthread_mutex_unlock(&outer));
}

static void *other(void *unused)
{
	struct timespec soon = in_ms(CLOCK_REALTIME, 2), later = in_ms(CLOCK_MONOTONIC, 2);
	name_thread("other");
	CHECK(EBUSY, pthread_mutex_trylock(&outer));
	CHECK(ETIMEDOUT, pthread_mutex_timedlock(&outer, &soon));
	CHECK(ETIMEDOUT, pthread_mutex_clocklock(&outer, CLOCK_MONOTONIC, &later));
	CHECK(EPERM, pthread_mutex_unlock(&checking));
	return unused;
}

static void *dies_with_it(void *unused)
{
	CHECK(0, pthread_mutex_lock(&robust));
	return unused;
}

static void *waits_in_vain(void *unused)
{
	struct timespec soon = in_ms(CLOCK_REALTIME, 2);
	name_thread("vain");
	CHECK(ETIMEDOUT, pthread_mutex_timedlock(&robust, &soon));
	return unused;
}

// Whoever asks again for one that is not recoverable gets the same answer, whatever its type.
static void not_recoverable(int type, int protocol)
{
	pthread_mutexattr_t attributes;
	pthread_t thread;
	struct timespec soon = in_ms(CLOCK_REALTIME, 1000);

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_settype(&attributes, type);
	pthread_mutexattr_setprotocol(&attributes, protocol);
	pthread_mutex_init(&robust, &attributes);
	pthread_create(&thread, NULL, dies_with_it, NULL);
	pthread_join(thread, NULL);
	CHECK(EOWNERDEAD, pthread_mutex_lock(&robust));
	CHECK(0, pthread_mutex_unlock(&robust));
	for (int i = 0; i < 3; i++) {
		CHECK(ENOTRECOVERABLE, pthread_mutex_timedlock(&robust, &soon));
		CHECK(ENOTRECOVERABLE, pthread_mutex_lock(&robust));
	}
}

int main(void)
{
	pthread_t thread;
	pthread_mutexattr_t attributes;
	struct timespec past = {0};

	name("outer", &outer), name("inner", &inner), name("recursive", &recursive);
	name("checking", &checking), name("robust", &robust), name("inheriting", &inheriting);
	name("function", nested);
	name_thread("main");
	nested();

	CHECK(0, pthread_mutex_lock(&recursive));
	CHECK(0, pthread_mutex_lock(&recursive));
	CHECK(0, pthread_mutex_trylock(&recursive));
	CHECK(0, pthread_mutex_unlock(&recursive));
	CHECK(0, pthread_mutex_unlock(&recursive));
	CHECK(0, pthread_mutex_unlock(&recursive));

	CHECK(0, pthread_mutex_lock(&checking));
	CHECK(EDEADLK, pthread_mutex_lock(&checking));
	CHECK(0, pthread_mutex_timedlock(&outer, &past));
	pthread_create(&thread, NULL, other, NULL);
	pthread_join(thread, NULL);
	CHECK(0, pthread_mutex_unlock(&outer));
	CHECK(0, pthread_mutex_unlock(&checking));

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&robust, &attributes);
	CHECK(0, pthread_mutex_lock(&robust));
	pthread_create(&thread, NULL, waits_in_vain, NULL);
	pthread_join(thread, NULL);
	CHECK(0, pthread_mutex_unlock(&robust));
	pthread_create(&thread, NULL, dies_with_it, NULL);
	pthread_join(thread, NULL);
	CHECK(EOWNERDEAD, pthread_mutex_lock(&robust));
	CHECK(0, pthread_mutex_consistent(&robust));
	CHECK(0, pthread_mutex_unlock(&robust));
	pthread_create(&thread, NULL, dies_with_it, NULL);
	pthread_join(thread, NULL);
	CHECK(EOWNERDEAD, pthread_mutex_trylock(&robust));
	CHECK(0, pthread_mutex_unlock(&robust));
	CHECK(ENOTRECOVERABLE, pthread_mutex_lock(&robust));
	for (int protocol = PTHREAD_PRIO_NONE; protocol <= PTHREAD_PRIO_INHERIT; protocol++) {
		not_recoverable(PTHREAD_MUTEX_NORMAL, protocol);
		not_recoverable(PTHREAD_MUTEX_RECURSIVE, protocol);
		not_recoverable(PTHREAD_MUTEX_ERRORCHECK, protocol);
	}

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&inheriting, &attributes);
	CHECK(0, pthread_mutex_lock(&inheriting));
	CHECK(0, pthread_mutex_unlock(&inheriting));
	return finish();
}
