// A child that forks off while the parent holds a lock and another thread uses one; then the child runs
// another program.
#include "program.h"
#include <sys/wait.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, busy = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int over;

static void *worker(void *unused)
{
	while (!over) {
		CHECK(0, pthread_mutex_lock(&busy));
		CHECK(0, pthread_mutex_unlock(&busy));
		usleep(10);
	}
	return unused;
}

int main(void)
{
	pthread_t thread;
	int status, told[2], go[2];
	char byte = 0;
	name("mutex", &mutex), name("busy", &busy);
	name_thread("main");
	pthread_create(&thread, NULL, worker, NULL);
	for (int i = 0; i < 20; i++) {
		pid_t child = fork();
		if (child == 0) {
			CHECK(0, pthread_mutex_lock(&mutex));
			CHECK(0, pthread_mutex_unlock(&mutex));
			_exit(7);
		}
		CHECK(child, waitpid(child, &status, 0));
		CHECK(7, WEXITSTATUS(status));
	}
	CHECK(0, system("exit 0"));

	CHECK(0, pthread_mutex_lock(&mutex));
	CHECK(0, pipe(told) | pipe(go));
	pid_t child = fork();
	if (child == 0) {
		// The lock is held in the child too, as it was in the parent.
		CHECK(EBUSY, pthread_mutex_trylock(&mutex));
		CHECK(0, pthread_mutex_unlock(&mutex));
		CHECK(0, pthread_mutex_lock(&mutex));
		CHECK(0, pthread_mutex_unlock(&mutex));
		name_thread("child");
		CHECK(1, write(told[1], &byte, 1));
		CHECK(1, read(go[0], &byte, 1));
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	CHECK(0, pthread_mutex_unlock(&mutex));
	CHECK(1, read(told[0], &byte, 1));
	finish();
	CHECK(1, write(go[1], &byte, 1));
	CHECK(child, waitpid(child, &status, 0));
	CHECK(0, status);
	over = 1;
	pthread_join(thread, NULL);
	return 0;
}
