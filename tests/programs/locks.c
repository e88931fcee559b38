// Every lock of <pthread.h> and <semaphore.h> that can be traced, by a program that knows nothing of it: nested, taken
// again by their holder, tried, waited for in vain, released by another thread; and what it executes in the end.
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t again = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP, array[3];
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static sem_t slots, filled;
static volatile long balance;
static int queued;

static struct timespec in_ms(int ms)
{
	struct timespec at;
	clock_gettime(CLOCK_REALTIME, &at);
	at.tv_nsec += ms * 1000000L;
	at.tv_sec += at.tv_nsec / 1000000000L;
	at.tv_nsec %= 1000000000L;
	return at;
}

static void pause_us(int us)
{
	struct timespec time = {.tv_nsec = us * 1000L};
	nanosleep(&time, NULL);
}

__attribute__((noinline)) void transfer(void)
{
	pthread_mutex_lock(&outer);
	pthread_mutex_lock(&inner);
	balance++;
	pthread_mutex_unlock(&inner);
	pthread_mutex_unlock(&outer);
}

__attribute__((noinline)) int descend(int depth)
{
	pthread_mutex_lock(&again);
	int sum = depth ? descend(depth - 1) + 1 : 0;
	pthread_mutex_unlock(&again);
	return sum;
}

// One fills what the other one empties: each posts what the other one waits for.
static void *producer(void *unused)
{
	for (int i = 0; i < 20; i++) {
		sem_wait(&slots);
		if (i % 5 == 0)
			pause_us(300);
		sem_post(&filled);
	}
	return unused;
}

static void *consumer(void *unused)
{
	for (int i = 0; i < 20; i++) {
		sem_wait(&filled);
		sem_post(&slots);
	}
	return unused;
}

static void *worker(void *number)
{
	for (int i = 0; i < 60; i++) {
		transfer();
		descend(i % 4);
		if (i % 10 == 0) {
			pthread_rwlock_wrlock(&table);
			pause_us(50);
			pthread_rwlock_unlock(&table);
		} else {
			pthread_rwlock_rdlock(&table);
			pthread_rwlock_unlock(&table);
		}
		pthread_spin_lock(&spin);
		balance += (long)number;
		pthread_spin_unlock(&spin);
		pthread_mutex_t *one = &array[i % 3];
		pthread_mutex_lock(one);
		if (i % 20 == 0)
			pause_us(100);
		pthread_mutex_unlock(one);
	}
	return NULL;
}

static void *waiter(void *unused)
{
	pthread_mutex_lock(&inner);
	while (!queued)
		pthread_cond_wait(&arrived, &inner);
	pthread_mutex_unlock(&inner);
	return unused;
}

// Finds taken what the main thread holds.
static void *refused(void *unused)
{
	struct timespec soon = in_ms(1);
	pthread_mutex_trylock(&outer);
	pthread_mutex_timedlock(&outer, &soon);
	pthread_rwlock_tryrdlock(&table);
	pthread_rwlock_timedwrlock(&table, &soon);
	sem_trywait(&filled);
	soon = in_ms(1);
	sem_timedwait(&filled, &soon);
	return unused;
}

static void run(pthread_t *threads, int count, void *(*work[])(void *))
{
	for (long i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, work[i], (void *)i);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	pthread_t threads[4];
	pthread_mutex_t *heap = malloc(sizeof *heap);
	if (argc > 1 && !strcmp(argv[1], "last")) {
		transfer();
		return 0;
	}
	pthread_mutex_init(heap, NULL);
	for (int i = 0; i < 3; i++)
		pthread_mutex_init(&array[i], NULL);
	pthread_spin_init(&spin, 0);
	sem_init(&slots, 0, 2);
	sem_init(&filled, 0, 0);
	run(threads, 4, (void *(*[])(void *)){worker, worker, producer, consumer});

	pthread_create(&threads[0], NULL, waiter, NULL);
	pause_us(2000);
	pthread_mutex_lock(&inner);
	queued = 1;
	pthread_cond_signal(&arrived);
	struct timespec soon = in_ms(1);
	while (pthread_cond_timedwait(&arrived, &inner, &soon) == 0)
		;
	pthread_mutex_unlock(&inner);
	pthread_join(threads[0], NULL);

	pthread_mutex_lock(&outer);
	pthread_rwlock_wrlock(&table);
	run(threads, 1, (void *(*[])(void *)){refused});
	pthread_rwlock_unlock(&table);
	pthread_mutex_unlock(&outer);
	// The other way round, with nobody there.
	pthread_mutex_lock(&inner);
	pthread_mutex_lock(heap);
	pthread_mutex_lock(&outer);
	pthread_mutex_unlock(&outer);
	pthread_mutex_unlock(heap);
	pthread_mutex_unlock(&inner);

	pid_t child = fork();
	if (child == 0) {
		transfer();
		_exit(0);
	}
	waitpid(child, NULL, 0);
	// Holds it for good: the process goes on as another program.
	pthread_mutex_lock(heap);
	execv(argv[0], (char *[]){argv[0], "last", NULL});
	return 1;
}
