/* A program that does not know of tracing until it loads LIBRARY, behind so many others with thread-locals that the C library has to make
 * room for these: a thread from before writes its first event then, in a signal handler, which may not allocate. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

static atomic_int in_handler, allocated, handled;
static void (*event)(uint64_t);

void *malloc(size_t bytes) { allocated += in_handler; return __libc_malloc(bytes); }
void *calloc(size_t n, size_t bytes) { allocated += in_handler; return __libc_calloc(n, bytes); }
void *realloc(void *at, size_t bytes) { allocated += in_handler; return __libc_realloc(at, bytes); }

static void handler(int signal)
{
	in_handler = 1;
	event((uint64_t)signal);
	in_handler = 0;
	handled = 1;
}

static void *waits(void *unused)
{
	for (;;) pause();
	return unused;
}

static void *loaded(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	if (library == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	return library;
}

int main(int count, char **libraries)
{
	pthread_t thread;
	void (*start)(void);
	if (pthread_create(&thread, NULL, waits, NULL) != 0) return 2;
	for (int n = 1; n < count - 1; n++) loaded(libraries[n]);
	void *library = loaded(libraries[count - 1]);
	*(void **)&start = dlsym(library, "first_start");
	*(void **)&event = dlsym(library, "first_run");
	start();
	size_t (*enable)(const char *);
	*(void **)&enable = dlsym(library, "ft_enable");
	if (enable("plugin.run") == 0) return 3;
	signal(SIGUSR1, handler);
	pthread_kill(thread, SIGUSR1);
	while (!handled) usleep(1000);
	printf("%d\n", allocated);
	return 0;
}
