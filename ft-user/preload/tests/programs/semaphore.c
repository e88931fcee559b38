// A semaphore used as a lock, one that a signal handler posts, and waits that end without it.
#include "program.h"
#include <signal.h>

static sem_t lock, signal_came;

static void handler(int number)
{
	(void)number;
	CHECK(0, sem_post(&signal_came));
}

static void *sender(void *main_thread)
{
	wait_until_blocked(getpid(), &signal_came, sizeof signal_came);
	pthread_kill(*(pthread_t *)main_thread, SIGUSR1);
	return NULL;
}

int main(void)
{
	struct timespec soon = in_ms(CLOCK_REALTIME, 2), later = in_ms(CLOCK_MONOTONIC, 2);
	pthread_t thread, self = pthread_self();
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	name("lock", &lock), name("signal_came", &signal_came);
	name_thread("main");
	sem_init(&lock, 0, 1);
	sem_init(&signal_came, 0, 0);
	KEEPS_ERRNO(sem_wait(&lock));
	CHECK(-1, sem_trywait(&lock));
	CHECK(EAGAIN, errno);
	CHECK(-1, sem_timedwait(&lock, &soon));
	CHECK(ETIMEDOUT, errno);
	CHECK(-1, sem_clockwait(&lock, CLOCK_MONOTONIC, &later));
	CHECK(ETIMEDOUT, errno);
	KEEPS_ERRNO(sem_post(&lock));
	KEEPS_ERRNO(sem_trywait(&lock));

	sigaction(SIGUSR1, &action, NULL);
	pthread_create(&thread, NULL, sender, &self);
	KEEPS_ERRNO(sem_wait(&signal_came));
	pthread_join(thread, NULL);
	return finish();
}
