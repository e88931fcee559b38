// A daemon with a database: closes what it has inherited in one of three ways, opens its files, has threads that lock, and forks.
// Argument: "closefrom", "close_range", or "dup2", which puts one file under every number.
#include "program.h"
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { FILES = 8, BYTES = 16 << 20 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *locks(void *unused)
{
	for (int i = 0; i < 1000; i++) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
	return unused;
}

static void run_threads(void)
{
	pthread_t thread;
	for (int i = 0; i < 4; i++) {
		CHECK(0, pthread_create(&thread, NULL, locks, NULL));
		CHECK(0, pthread_join(thread, NULL));
	}
}

int main(int count, char **arguments)
{
	CHECK(2, count);
	int files[FILES];
	if (!strcmp(arguments[1], "closefrom"))
		closefrom(3);
	if (!strcmp(arguments[1], "close_range"))
		CHECK(0, close_range(3, ~0U, 0));
	for (int i = 0; i < FILES; i++) {
		char name[16];
		snprintf(name, sizeof name, "base%d", i);
		files[i] = open(name, O_RDWR | O_CREAT, 0666);
		CHECK(1, files[i] > 2);
		// One is too short for what our rings would be at.
		CHECK(0, ftruncate(files[i], i ? BYTES : 4096));
	}
	struct rlimit limit;
	CHECK(0, getrlimit(RLIMIT_NOFILE, &limit));
	int last = limit.rlim_cur < 8192 ? limit.rlim_cur : 8192;
	if (!strcmp(arguments[1], "dup2")) {
		for (int fd = files[FILES - 1] + 1; fd < last; fd++)
			CHECK(fd, dup2(files[fd % FILES], fd));
	}
	run_threads();
	for (int generation = 0; generation < 2; generation++) {
		pid_t child = fork();
		if (child) {
			int status;
			CHECK(child, waitpid(child, &status, 0));
			CHECK(0, status);
			break;
		}
		// Each number is still that of the file that was opened.
		run_threads();
		for (int i = 0; i < FILES; i++) {
			char text[64];
			int bytes = snprintf(text, sizeof text, "generation %d, file %d\n", generation, i);
			CHECK(bytes, pwrite(files[i], text, bytes, 512 * generation));
		}
		if (!strcmp(arguments[1], "dup2")) {
			for (int fd = files[FILES - 1] + 1; fd < last; fd++)
				CHECK(4, pwrite(fd, &fd, 4, 2048));
		}
	}
	return 0;
}
