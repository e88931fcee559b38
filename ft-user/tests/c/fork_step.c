// A handler forks at each instruction of an event, and both processes go on with it. The program steps itself: its first process is
// the tracer. Arguments: the kind of event, how many instructions lie between two signals, and
// whether the thread has no ring (1), or its children get no memfd (2). Prints how many signals came.
#define _GNU_SOURCE
#include "feather_trace.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition) ((condition) ? (void)0 : (perror(#condition), _exit(1)))

static volatile unsigned long round_number;
static volatile sig_atomic_t bad, in_child, without_memfd;

static __attribute__((noinline)) void event(int kind)
{
	unsigned long n = round_number;
	switch (kind) {
	case 2: FT_EVENT("step.two", "", n, n); break;
	case 5: FT_EVENT("step.five", "", n, n, n, n, n); break;
	default: FT_EVENT("step.text", "", n, (const char *)"a text of some words"); break;
	}
}

static void passes(int number)
{
	(void)number;
}

static void forks(int number)
{
	(void)number;
	struct rlimit before, limit;
	getrlimit(RLIMIT_NOFILE, &before);
	limit = before;
	if (without_memfd)
		limit.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &limit);
	pid_t child = fork();
	setrlimit(RLIMIT_NOFILE, &before);
	if (child == 0) {
		// Nobody traces it: it passes over the breakpoint at the end.
		signal(SIGTRAP, passes);
		in_child = 1;
		return;
	}
	int status = 1;
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	if (status)
		fprintf(stderr, "a child ended with status %#x\n", status);
	bad += status != 0;
}

static void *holds_a_ring(void *unused)
{
	event(2);
	pause();
	return unused;
}

static void stepped(int kind, int without_ring)
{
	CHECK(ft_init() == 0 && ft_enable("step.*") > 0);
	if (without_ring) {
		pthread_t thread;
		pthread_create(&thread, NULL, holds_a_ring, NULL);
		usleep(100000);
	}
	struct sigaction action = {.sa_handler = forks};
	sigaction(SIGUSR1, &action, NULL);
	event(kind), event(kind);
	CHECK(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0);
	raise(SIGSTOP);
	for (round_number = 1;; round_number++) {
		__asm__ volatile("int3");
		event(kind);
		__asm__ volatile("int3");
		if (in_child) {
			FT_EVENT("step.after", "");
			_exit(0);
		}
		if (bad)
			_exit(1);
	}
}

// Goes on until the next stop by a step or a breakpoint; 0 at the end of the process. Signals of its children are left out.
static int stopped(pid_t pid, enum __ptrace_request request, int signal)
{
	for (int status;; signal = 0) {
		CHECK(ptrace(request, pid, 0, signal) == 0);
		CHECK(waitpid(pid, &status, 0) == pid);
		if (!WIFSTOPPED(status))
			return 0;
		if (WSTOPSIG(status) == SIGTRAP)
			return 1;
		if (WSTOPSIG(status) != SIGCHLD) {
			fprintf(stderr, "the parent got signal %d\n", WSTOPSIG(status));
			return 0;
		}
	}
}

// Whether it stopped at one, and not by a step.
static int at_breakpoint(pid_t pid)
{
	siginfo_t stop;
	CHECK(ptrace(PTRACE_GETSIGINFO, pid, 0, &stop) == 0);
	return stop.si_code == SI_KERNEL;
}

int main(int count, char **arguments)
{
	CHECK(count == 4);
	int kind = atoi(arguments[1]), stride = atoi(arguments[2]), without = atoi(arguments[3]);
	without_memfd = without == 2;
	pid_t pid = fork();
	if (pid == 0)
		stepped(kind, without == 1);
	int status;
	CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
	for (long at = 0;; at += stride) {
		// To the begin of the event, then so many instructions into it.
		CHECK(stopped(pid, PTRACE_CONT, 0));
		int over = 0;
		for (long step = 0; step < at && !over; step++) {
			CHECK(stopped(pid, PTRACE_SINGLESTEP, 0));
			over = at_breakpoint(pid);
		}
		if (over) {
			printf("%ld\n", at / stride);
			kill(pid, SIGKILL);
			return 0;
		}
		// The handler runs, and then the rest of the event, to its end.
		if (!stopped(pid, PTRACE_CONT, SIGUSR1)) {
			fprintf(stderr, "it died, or its child did, at instruction %ld\n", at);
			return 1;
		}
	}
}
