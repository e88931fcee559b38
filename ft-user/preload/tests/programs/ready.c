// Threads that prepare for deadlines: from the first lock on, none takes the pages of its ring one by one.
#include "program.h"
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

// Two events each: 312 pages of a ring.
#define PAIRS 20000
// What is touched for the first time besides: code, stacks, the C library's data.
#define FEW 64

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long pairs;

static long faults(void)
{
	struct rusage usage;
	CHECK(0, getrusage(RUSAGE_THREAD, &usage));
	return usage.ru_minflt;
}

static void lock_often(const char *who)
{
	long before = faults();
	for (int i = 0; i < PAIRS; i++) {
		CHECK(0, pthread_mutex_lock(&mutex));
		pairs++;
		CHECK(0, pthread_mutex_unlock(&mutex));
	}
	long taken = faults() - before;
	if (taken > FEW) {
		fprintf(stderr, "%s has taken %ld page faults\n", who, taken);
		_exit(1);
	}
}

struct work {
	const char *who;
	void (*prepare)(void);
	pthread_t thread;
	_Atomic int is_done;
};

// It keeps its ring, so that the next one has one of its own.
static void *worker(void *argument)
{
	struct work *work = argument;
	if (work->prepare)
		work->prepare();
	lock_often(work->who);
	work->is_done = 1;
	for (;;)
		pause();
	return NULL;
}

// Either may be forbidden; the thread has said what it is about to be.
static void by_scheduler(void)
{
	struct sched_param priority = {.sched_priority = 1};
	sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &priority);
}

static void by_thread(void)
{
	struct sched_param priority = {.sched_priority = 1};
	pthread_setschedparam(pthread_self(), SCHED_RR, &priority);
}

// Whether it may be created.
static int begin(struct work *work, const pthread_attr_t *attributes)
{
	int result = pthread_create(&work->thread, attributes, worker, work);
	CHECK(1, result == 0 || (result == EPERM && attributes));
	while (result == 0 && !work->is_done)
		usleep(1000);
	return result == 0;
}

static void *gives_back(void *argument)
{
	return argument;
}

static void *exits(void *argument)
{
	pthread_exit(argument);
}

// Some have too little stack for a ring ahead.
static void create_some(void)
{
	pthread_t threads[8];
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	for (long i = 0; i < 8; i++) {
		CHECK(0, pthread_attr_setstacksize(&attributes, (i % 2 ? 32 : 256) << 10));
		void *(*function)(void *) = i / 4 ? exits : gives_back;
		CHECK(0, pthread_create(&threads[i], &attributes, function, (void *)i));
	}
	for (long i = 0; i < 8; i++) {
		void *result;
		CHECK(0, pthread_join(threads[i], &result));
		CHECK(i, (long)result);
	}
}

int main(void)
{
	struct sched_param priority = {.sched_priority = 1};
	struct work works[] = {
		{.who = "one that has called sched_setscheduler", .prepare = by_scheduler},
		{.who = "one that has called pthread_setschedparam", .prepare = by_thread},
		{.who = "one that was created for real time"},
		{.who = "one that was created where memory is locked"},
	};
	pthread_attr_t real_time;
	int begun[4];

	name("mutex", &mutex);
	name_thread("main");
	pthread_attr_init(&real_time);
	pthread_attr_setinheritsched(&real_time, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&real_time, SCHED_FIFO);
	pthread_attr_setschedparam(&real_time, &priority);
	for (int i = 0; i < 3; i++)
		begun[i] = begin(&works[i], i == 2 ? &real_time : NULL);

	// The stacks of the threads to come are locked, too.
	int is_locked = mlockall(MCL_CURRENT | MCL_FUTURE) == 0;
	if (is_locked)
		lock_often("the main thread");
	begun[3] = is_locked && begin(&works[3], NULL);
	for (int i = 0; i < 4; i++) {
		void *result;
		if (!begun[i])
			continue;
		CHECK(0, pthread_cancel(works[i].thread));
		CHECK(0, pthread_join(works[i].thread, &result));
		CHECK(1, result == PTHREAD_CANCELED);
	}
	create_some();
	printf("pairs %#lx\n", pairs);
	return finish();
}
