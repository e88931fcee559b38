// Forks in a program whose library has fork handlers of its own, set before tracing begins. Arguments: what the handlers do, and how
// many forks. Prints how many children went wrong.
#define _GNU_SOURCE
#include "feather_trace.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition) ((condition) ? (void)0 : (perror(#condition), _exit(1)))

static enum { EVENTS, FAULTS, MUTEX } what;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char *page;
static volatile sig_atomic_t over;

static void fault(void)
{
	CHECK(mprotect(page, 4096, PROT_NONE) == 0);
	*(volatile char *)page = 1;
}

static void repair(int signal)
{
	(void)signal;
	CHECK(mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
}

static void before(void)
{
	if (what == EVENTS) FT_EVENT("handler.before", "");
	if (what == FAULTS) fault();
	if (what == MUTEX) pthread_mutex_lock(&mutex);
}

static void in_parent(void)
{
	if (what == EVENTS) FT_EVENT("handler.parent", "");
	if (what == FAULTS) fault();
	if (what == MUTEX) pthread_mutex_unlock(&mutex);
}

static void in_child(void)
{
	if (what == EVENTS) FT_EVENT("handler.child", "");
	if (what == FAULTS) fault();
	if (what == MUTEX) pthread_mutex_unlock(&mutex);
}

__attribute__((constructor)) static void early(void)
{
	CHECK(pthread_atfork(before, in_parent, in_child) == 0);
}

static void *switches(void *unused)
{
	while (!over) {
		pthread_mutex_lock(&mutex);
		ft_enable("handler.other");
		ft_disable("handler.other");
		FT_EVENT("handler.other", "");
		pthread_mutex_unlock(&mutex);
	}
	return unused;
}

int main(int count, char **arguments)
{
	pthread_t thread;
	long bad = 0;
	CHECK(count == 3);
	what = !strcmp(arguments[1], "events") ? EVENTS : !strcmp(arguments[1], "faults") ? FAULTS : MUTEX;
	alarm(300);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED && signal(SIGSEGV, repair) != SIG_ERR);
	CHECK(ft_init() == 0 && ft_enable("handler.*") > 0);
	FT_EVENT("handler.main", "");
	if (what == MUTEX) CHECK(pthread_create(&thread, NULL, switches, NULL) == 0);
	for (long n = 0; n < atol(arguments[2]); n++) {
		pid_t child = fork();
		if (child == 0) {
			alarm(120);
			FT_EVENT("handler.after", "");
			_exit(0);
		}
		int status = 1;
		CHECK(child > 0 && waitpid(child, &status, 0) == child);
		bad += status != 0;
		FT_EVENT("handler.main", "");
	}
	over = 1;
	if (what == MUTEX) pthread_join(thread, NULL);
	printf("%ld\n", bad);
	return 0;
}
