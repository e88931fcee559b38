// Children: one of vfork that takes the first lock of its thread; one that finds errno as it was; one that cannot be recorded.
#include "program.h"
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void hold(void)
{
	CHECK(0, pthread_mutex_lock(&mutex));
	CHECK(0, pthread_mutex_unlock(&mutex));
}

static void *worker(void *unused)
{
	int status;
	pid_t child = vfork();
	if (child == 0) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
		_exit(7);
	}
	CHECK(child, waitpid(child, &status, 0));
	CHECK(7, WEXITSTATUS(status));
	name_thread("worker");
	hold();
	hold();
	return unused;
}

int main(void)
{
	struct rlimit few = {64, 64};
	pthread_t thread;
	int status;
	name("mutex", &mutex);
	name_thread("main");
	pthread_create(&thread, NULL, worker, NULL);
	pthread_join(thread, NULL);
	for (int round = 0; round < 2; round++) {
		errno = 4711;
		pid_t child = fork();
		CHECK(4711, errno);
		if (child == 0) {
			hold();
			_exit(7);
		}
		CHECK(child, waitpid(child, &status, 0));
		CHECK(7, WEXITSTATUS(status));
		// The second one has no descriptor.
		setrlimit(RLIMIT_NOFILE, &few);
		while (open("/dev/null", O_RDONLY) >= 0)
			;
	}
	return finish();
}
