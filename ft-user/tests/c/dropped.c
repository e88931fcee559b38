// Switches its sites after it has given up rights: "user", another user, or not dumpable; "root", a root directory without /proc;
// "mdwe", not dumpable and never a right to execute what it may write. Prints what ft_enable and ft_disable returned, and errno.
#define _GNU_SOURCE
#include "feather_trace.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif

#define CHECK(condition) ((condition) ? (void)0 : (perror(#condition), _exit(1)))

static __attribute__((noinline)) void event(unsigned long n)
{
	FT_EVENT("dropped.event", "", n);
}

// Its file in /proc is not its own any more.
static void drop(void)
{
	if (geteuid() == 0)
		CHECK(setgid(65534) == 0 && setuid(65534) == 0);
	CHECK(prctl(PR_SET_DUMPABLE, 0) == 0);
}

static void report(const char *what, size_t sites)
{
	printf("%s %zu %s\n", what, sites, errno ? strerrorname_np(errno) : "0");
}

int main(int count, char **arguments)
{
	CHECK(count == 3 && ft_init() == 0);
	report("enable", ft_enable("dropped.*"));
	event(1);
	if (!strcmp(arguments[1], "root"))
		CHECK(chroot(arguments[2]) == 0 && chdir("/") == 0);
	else
		drop();
	if (!strcmp(arguments[1], "mdwe") && prctl(PR_SET_MDWE, 1, 0, 0, 0)) {
		puts("unsupported");
		return 0;
	}
	report("disable", ft_disable("dropped.*"));
	event(2);
	report("enable", ft_enable("dropped.*"));
	event(3);
	report("none", ft_disable("no.such"));
	puts("ready");
	fflush(stdout);
	getchar();
	return 0;
}
