// Forks while other threads do what a child must not wait for. Arguments: what they do, and how many forks. Each child writes an event
// and ends; one that hangs is killed by its alarm.
#define _GNU_SOURCE
#include "feather_trace.h"
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition) ((condition) ? (void)0 : (perror(#condition), _exit(1)))

static volatile int over;

static __attribute__((noinline)) void event(unsigned long n)
{
	FT_EVENT("beside.event", "", n);
}

static void *loads(void *unused)
{
	while (!over) {
		void *library = dlopen("libutil.so.1", RTLD_NOW), *other = dlopen("libanl.so.1", RTLD_NOW);
		if (other)
			dlclose(other);
		if (library)
			dlclose(library);
	}
	return unused;
}

static void *allocates(void *unused)
{
	while (!over) {
		void *blocks[64];
		for (int i = 0; i < 64; i++)
			blocks[i] = malloc(64 << (i % 12));
		for (int i = 0; i < 64; i++)
			free(blocks[i]);
	}
	return unused;
}

static void *switches(void *unused)
{
	while (!over) {
		ft_enable("beside.other");
		ft_disable("beside.other");
		FT_EVENT("beside.other", "");
	}
	return unused;
}

static void *writes(void *unused)
{
	event(0);
	return unused;
}

// Threads that claim rings, and end.
static void *starts(void *unused)
{
	while (!over) {
		pthread_t threads[4];
		for (int i = 0; i < 4; i++)
			CHECK(pthread_create(&threads[i], NULL, writes, NULL) == 0);
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
	}
	return unused;
}

static void *executes(void *unused)
{
	execl("/bin/true", "true", NULL);
	return unused;
}

// A child with a thread that executes a program while another one forks.
static _Noreturn void beside_exec(void)
{
	pthread_t thread;
	alarm(120);
	CHECK(pthread_create(&thread, NULL, executes, NULL) == 0);
	// Not without end: the other thread may get no CPU for long.
	for (int i = 0; i < 100; i++) {
		if (fork() == 0) {
			alarm(120);
			event(2);
			_exit(0);
		}
	}
	for (;;)
		pause();
}

static volatile int sent;

static void forks(int signal)
{
	(void)signal;
	pid_t child = fork();
	if (child == 0) {
		alarm(120);
		event(3);
		_exit(0);
	}
	sent++;
	int status = 1;
	CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static pthread_t first;

static void *signals(void *unused)
{
	while (!over) {
		pthread_kill(first, SIGUSR1);
		usleep(200);
	}
	return unused;
}

int main(int count, char **arguments)
{
	CHECK(count == 3);
	const char *beside = arguments[1];
	long children = atol(arguments[2]), bad = 0;
	void *(*other)(void *) = NULL;
	if (!strcmp(beside, "dlopen")) other = loads;
	if (!strcmp(beside, "malloc")) other = allocates;
	if (!strcmp(beside, "enable")) other = switches;
	if (!strcmp(beside, "claims")) other = starts;
	if (!strcmp(beside, "handler")) other = signals;
	CHECK(ft_init() == 0 && ft_enable("beside.event") > 0);
	CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
	event(0);
	pthread_t threads[2];
	first = pthread_self();
	signal(SIGUSR1, forks);
	for (int i = 0; other && i < (other == signals ? 1 : 2); i++)
		CHECK(pthread_create(&threads[i], NULL, other, NULL) == 0);
	while (other == signals && sent < children)
		event(1);
	for (long n = other == signals ? children : 0; n < children; n++) {
		pid_t child;
		if (!strcmp(beside, "vfork")) {
			child = vfork();
			if (child == 0) {
				event(1);
				_exit(0);
			}
		} else if (!strcmp(beside, "clone")) {
			// Runs no fork handlers.
			child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
			if (child == 0) {
				event(1);
				_exit(0);
			}
		} else {
			child = fork();
			if (child == 0 && !strcmp(beside, "exec"))
				beside_exec();
			if (child == 0) {
				alarm(120);
				event(1);
				_exit(0);
			}
		}
		int status;
		CHECK(child > 0 && waitpid(child, &status, 0) == child);
		bad += status != 0;
		// Those whose parents have executed: each is ours then, and they may be many.
		while (!strcmp(beside, "exec") && waitpid(-1, &status, WNOHANG) > 0)
			bad += status != 0;
	}
	int status;
	while (!strcmp(beside, "exec") && wait(&status) > 0)
		bad += status != 0;
	over = 1;
	for (int i = 0; other && i < (other == signals ? 1 : 2); i++)
		pthread_join(threads[i], NULL);
	event(9);
	printf("%ld\n", bad);
	return 0;
}
