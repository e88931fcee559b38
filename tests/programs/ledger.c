// Two threads that transfer between accounts under nested locks.
#include <pthread.h>
#include <semaphore.h>

static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
static sem_t started;
static volatile long balance;

__attribute__((noinline)) void transfer(void)
{
	pthread_mutex_lock(&outer);
	pthread_mutex_lock(&inner); // the line that the test looks for
	balance++;
	pthread_mutex_unlock(&inner);
	pthread_mutex_unlock(&outer);
}

static void *worker(void *unused)
{
	sem_post(&started);
	for (int i = 0; i < 1000; i++)
		transfer();
	return unused;
}

int main(void)
{
	pthread_t threads[2];
	sem_init(&started, 0, 0);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, worker, NULL);
	for (int i = 0; i < 2; i++)
		sem_wait(&started);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return balance == 2000 ? 7 : 1;
}
