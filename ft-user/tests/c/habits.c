// Programs that do what programs do beside a tracer. Arguments: which, and, for `unloads`, the path of a library. Each ends by itself,
// with status 0 if all is as it would be without the tracer.
#define _GNU_SOURCE
#include "feather_trace.h"
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition) ((condition) ? (void)0 : (perror(#condition), _exit(1)))

enum { FORKS = 20, CROWD = 70, KEYS = 40, ARENA = 512 << 20 };

static volatile int over;

/* The allocator of the whole program: one lock, and memory that is never used again. */
static pthread_mutex_t heap = PTHREAD_MUTEX_INITIALIZER;
static char arena[ARENA] __attribute__((aligned(4096)));
static size_t used;
static void (*within_malloc)(void), (*behind_malloc)(void);

void *malloc(size_t bytes)
{
	pthread_mutex_lock(&heap);
	size_t at = used;
	used += (bytes + 15) / 16 * 16;
	if (used > ARENA) abort();
	if (within_malloc) within_malloc();
	pthread_mutex_unlock(&heap);
	if (behind_malloc) behind_malloc();
	return arena + at;
}

void free(void *unused)
{
	(void)unused;
}

void *calloc(size_t count, size_t bytes)
{
	return memset(malloc(count * bytes), 0, count * bytes);
}

void *realloc(void *old, size_t bytes)
{
	char *new = malloc(bytes);
	/* What is copied too much lies before the new place. */
	if (old) memmove(new, old, (char *)old + bytes > new ? (size_t)(new - (char *)old) : bytes);
	return new;
}

void *memalign(size_t alignment, size_t bytes)
{
	return (void *)(((uintptr_t)malloc(bytes + alignment) + alignment - 1) / alignment * alignment);
}

int posix_memalign(void **place, size_t alignment, size_t bytes)
{
	*place = memalign(alignment, bytes);
	return 0;
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
	return memalign(alignment, bytes);
}

static void start(void)
{
	CHECK(ft_init() == 0 && ft_enable("habit.*") > 0);
	FT_EVENT("habit.main", "");
}

static pthread_t spawned(void *(*body)(void *))
{
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, body, NULL) == 0);
	return thread;
}

static void forks(int count)
{
	for (int n = 0; n < count; n++) {
		pid_t child = fork();
		if (child == 0) {
			alarm(120);
			FT_EVENT("habit.child", "");
			_exit(0);
		}
		int status = 1;
		CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	}
}

static void *switches(void *unused)
{
	while (!over) {
		ft_enable("habit.other");
		ft_disable("habit.other");
		FT_EVENT("habit.other", "");
	}
	return unused;
}

/* A collector of garbage stops all other threads by a signal, while it has the lock that its fork handler takes. */
static pthread_mutex_t world = PTHREAD_MUTEX_INITIALIZER;
static pthread_t mutators[CROWD];
static int mutator_count;
static sem_t stopped, go, gone, done, end;

static void await(sem_t *semaphore)
{
	while (sem_wait(semaphore) != 0) {}
}

static void stop_here(int signal)
{
	(void)signal;
	int error = errno;
	sem_post(&stopped);
	await(&go);
	sem_post(&gone);
	errno = error;
}

static void take_world(void)
{
	pthread_mutex_lock(&world);
}

static void give_world(void)
{
	pthread_mutex_unlock(&world);
}

static void *collects(void *unused)
{
	while (!over) {
		pthread_mutex_lock(&world);
		for (int n = 0; n < mutator_count; n++) pthread_kill(mutators[n], SIGUSR1);
		for (int n = 0; n < mutator_count; n++) await(&stopped);
		for (int n = 0; n < mutator_count; n++) sem_post(&go);
		for (int n = 0; n < mutator_count; n++) await(&gone);
		pthread_mutex_unlock(&world);
	}
	return unused;
}

static void start_with_collector(void)
{
	sem_t *all[] = { &stopped, &go, &gone, &done, &end };
	for (size_t n = 0; n < sizeof all / sizeof *all; n++) CHECK(sem_init(all[n], 0, 0) == 0);
	CHECK(signal(SIGUSR1, stop_here) != SIG_ERR);
	CHECK(pthread_atfork(take_world, give_world, give_world) == 0);
	start();
}

static void collector(void)
{
	start_with_collector();
	mutators[mutator_count++] = pthread_self();
	pthread_t thread = spawned(collects);
	forks(FORKS);
	over = 1;
	pthread_join(thread, NULL);
}

static void *forks_in_crowd(void *unused)
{
	forks(3);
	sem_post(&done);
	await(&end);
	return unused;
}

/* More threads fork at once than there are places for. */
static void crowd(void)
{
	start_with_collector();
	while (mutator_count < CROWD) mutators[mutator_count++] = spawned(forks_in_crowd);
	pthread_t thread = spawned(collects);
	for (int n = 0; n < CROWD; n++) await(&done);
	over = 1;
	pthread_join(thread, NULL);
	for (int n = 0; n < CROWD; n++) sem_post(&end);
	for (int n = 0; n < CROWD; n++) pthread_join(mutators[n], NULL);
	FT_EVENT("habit.main", "");
}

/* Signals are blocked, and taken by sigwait. */
static void waits_for_signals(void)
{
	int signals[] = { SIGTRAP, SIGILL, SIGBUS, SIGFPE, SIGSEGV, SIGSYS, SIGTERM };
	start();
	for (size_t n = 0; n < sizeof signals / sizeof *signals; n++) {
		sigset_t all, one;
		int taken = 0;
		CHECK(sigfillset(&all) == 0 && pthread_sigmask(SIG_BLOCK, &all, NULL) == 0);
		CHECK(kill(getpid(), signals[n]) == 0);
		forks(1);
		sigemptyset(&one);
		sigaddset(&one, signals[n]);
		CHECK(sigwait(&one, &taken) == 0 && taken == signals[n]);
	}
}

/* Fork handlers before ours that block signals, as libraries do whose locks a handler takes, and write events. */
static sigset_t before_fork;

static void block_all(void)
{
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before_fork);
}

static void unblock(void)
{
	FT_EVENT("habit.handler", "");
	pthread_sigmask(SIG_SETMASK, &before_fork, NULL);
}

static void masks(void)
{
	CHECK(pthread_atfork(block_all, unblock, unblock) == 0);
	start();
	pid_t child = fork();
	sigset_t now;
	int blocked = 0, status = 1;
	CHECK(pthread_sigmask(SIG_SETMASK, NULL, &now) == 0);
	for (int signal = 1; signal < 32; signal++) blocked += sigismember(&now, signal);
	if (child == 0) _exit(blocked != 0);
	CHECK(blocked == 0 && waitpid(child, &status, 0) == child && status == 0);
}

/* An allocator whose fork handlers come before ours, for they were set later. */
static void take_heap(void)
{
	pthread_mutex_lock(&heap);
}

static void give_heap(void)
{
	pthread_mutex_unlock(&heap);
}

static void locks_its_heap(void)
{
	start();
	CHECK(pthread_atfork(take_heap, give_heap, give_heap) == 0);
	pthread_t thread = spawned(switches);
	forks(FORKS);
	over = 1;
	pthread_join(thread, NULL);
}

/* A collector that sees writes by their faults. */
static void open_heap(int signal)
{
	(void)signal;
	CHECK(mprotect(arena, ARENA, PROT_READ | PROT_WRITE) == 0);
}

static void *one_event(void *unused)
{
	FT_EVENT("habit.other", "");
	return unused;
}

static void protects_its_heap(void)
{
	CHECK(signal(SIGSEGV, open_heap) != SIG_ERR);
	for (int n = 0; n < 6; n++) {
		CHECK(mprotect(arena, ARENA, PROT_READ) == 0);
		switch (n) {
		case 0: start(); break;
		case 1: ft_enable("habit.other"); break;
		case 2: ft_disable("*"); break;
		case 3: ft_enable("*"); break;
		case 4: pthread_join(spawned(one_event), NULL); break;
		default: forks(1);
		}
	}
}

/* Events in the allocator, where so many keys are taken that to set a further one allocates: the allocator is not asked again. */
enum { THREADS_OF_KEYS = 1000 };
static __thread int depth;
static volatile int deepest;

static void event_in_malloc(void)
{
	depth++;
	if (depth > deepest) deepest = depth;
	if (depth < 3) FT_EVENT("habit.malloc", "");
	depth--;
}

static void *allocates(void *unused)
{
	within_malloc = event_in_malloc;
	free(malloc(10));
	within_malloc = NULL;
	return unused;
}

static void has_keys(void)
{
	pthread_key_t key;
	pthread_mutexattr_t recursive;
	/* What the allocator does within itself is to be seen as depth, and not to hang. */
	CHECK(pthread_mutexattr_init(&recursive) == 0 && pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE) == 0);
	CHECK(pthread_mutex_init(&heap, &recursive) == 0);
	for (int n = 0; n < KEYS; n++) CHECK(pthread_key_create(&key, NULL) == 0);
	CHECK(ft_init() == 0 && ft_enable("habit.*") > 0);
	pthread_join(spawned(allocates), NULL);
	CHECK(deepest == 1);
	/* Threads that end without the key's destructor: their rings come back. */
	for (int n = 0; n < THREADS_OF_KEYS; n++) pthread_join(spawned(one_event), NULL);
}

/* Fork handlers before ours that run a program. */
static void run_program(void)
{
	pid_t child = vfork();
	if (child == 0) {
		FT_EVENT("habit.vforked", "");
		_exit(0);
	}
	CHECK(child > 0 && waitpid(child, NULL, 0) == child);
}

static void run_within(void)
{
	FT_EVENT("habit.handler", "");
	run_program();
}

static void vforks_in_handler(void)
{
	CHECK(pthread_atfork(run_within, NULL, NULL) == 0);
	start();
	forks(FORKS);
}

static void vforks_in_child(void)
{
	CHECK(pthread_atfork(NULL, NULL, run_program) == 0);
	start();
	forks(FORKS);
}

/* A library that makes its thread anew in the child, and waits until that is up. */
static void *works(void *unused)
{
	FT_EVENT("habit.worker", "");
	return unused;
}

static void make_worker(void)
{
	pthread_join(spawned(works), NULL);
}

static void works_in_child(void)
{
	CHECK(pthread_atfork(NULL, NULL, make_worker) == 0);
	start();
	forks(FORKS);
}

/* Tracing starts while a thread forks. Where the C library makes pthread_atfork wait for that, so does tracing. */
static volatile int is_started;

static void *starts(void *unused)
{
	start();
	is_started = 1;
	return unused;
}

static void await_start(void)
{
	if (is_started) return;
	spawned(starts);
	for (int n = 0; n < 1000 && !is_started; n++) usleep(10000);
}

static void starts_in_fork(void)
{
	CHECK(pthread_atfork(await_start, NULL, NULL) == 0);
	forks(2);
}

/* A fork handler that gives its fork up. */
static jmp_buf out;
static volatile int refuses;

static void refuse(void)
{
	if (refuses) longjmp(out, 1);
}

__attribute__((noinline)) static void may_fork(void)
{
	if (setjmp(out) == 0) forks(1);
}

static void jumps(void)
{
	CHECK(pthread_atfork(refuse, NULL, NULL) == 0);
	start();
	refuses = 1;
	may_fork();
	refuses = 0;
	FT_EVENT("habit.refused", "");
	may_fork();
	FT_EVENT("habit.other", "");
}

/* A child is forked while another thread has the linker's lock, and starts tracing as each worker of its program does. */
static sem_t has_lock, has_forked;

static int stays(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)info, (void)size, (void)data;
	sem_post(&has_lock);
	while (sem_wait(&has_forked) != 0)
		;
	return 1;
}

static void *asks_for_objects(void *unused)
{
	dl_iterate_phdr(stays, NULL);
	return unused;
}

static void starts_in_child(void)
{
	CHECK(sem_init(&has_lock, 0, 0) == 0 && sem_init(&has_forked, 0, 0) == 0);
	start();
	pthread_t thread = spawned(asks_for_objects);
	while (sem_wait(&has_lock) != 0)
		;
	pid_t child = fork();
	if (child == 0) {
		alarm(20);
		int started = ft_init();
		FT_EVENT("habit.child", "");
		_exit(started);
	}
	int status;
	CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	CHECK(sem_post(&has_forked) == 0 && pthread_join(thread, NULL) == 0);
}

/* A fork handler that switches sites off in the child. */
static void off_in_child(void)
{
	ft_disable("*");
}

static void switches_in_child(void)
{
	CHECK(pthread_atfork(NULL, NULL, off_in_child) == 0);
	start();
	forks(1);
	FT_EVENT("habit.main", "");
}

/* Libraries come and go beside a thread that switches sites. */
static void unloads(const char *library)
{
	start();
	pthread_t thread = spawned(switches);
	for (int n = 0; n < 100; n++) {
		void *handle = dlopen(library, RTLD_NOW);
		CHECK(handle && dlclose(handle) == 0);
	}
	over = 1;
	pthread_join(thread, NULL);
}

/* The same with an allocator that asks the loader whose its caller is. */
static void ask_loader(void)
{
	Dl_info info;
	CHECK(dladdr(__builtin_return_address(0), &info) != 0);
}

static void asks_loader(const char *library)
{
	start();
	behind_malloc = ask_loader;
	unloads(library);
}

/* A thread has less and less of its stack left where it switches sites, and goes on elsewhere when that overflows. */
static __thread sigjmp_buf elsewhere;
static volatile size_t overflown;

static void leaves(int signal)
{
	(void)signal;
	siglongjmp(elsewhere, 1);
}

static __attribute__((noinline)) void with_room(char *lowest, size_t room)
{
	size_t rest = (size_t)((char *)__builtin_frame_address(0) - lowest) - room;
	volatile char *taken = __builtin_alloca(rest);
	taken[rest - 1] = 1;
	ft_enable("habit.*");
}

static void *switches_on_little(void *room)
{
	static char other[1 << 16];
	stack_t stack = { .ss_sp = other, .ss_size = sizeof other };
	pthread_attr_t own;
	void *lowest;
	size_t bytes;
	CHECK(sigaltstack(&stack, NULL) == 0);
	CHECK(pthread_getattr_np(pthread_self(), &own) == 0 && pthread_attr_getstack(&own, &lowest, &bytes) == 0);
	if (sigsetjmp(elsewhere, 1) == 0) with_room(lowest, (size_t)room);
	else overflown++;
	return NULL;
}

static void overflows(void)
{
	struct sigaction action = { .sa_handler = leaves, .sa_flags = SA_ONSTACK };
	pthread_attr_t small;
	alarm(60);
	start();
	CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
	CHECK(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 256 << 10) == 0);
	for (size_t room = 30000; room >= 1000; room -= 250) {
		pthread_t thread;
		CHECK(pthread_create(&thread, &small, switches_on_little, (void *)room) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
		/* It waits for ever where that thread has kept the lock. */
		CHECK(ft_enable("habit.*") > 0);
	}
	CHECK(overflown > 20);
}

int main(int count, char **arguments)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} habits[] = {
		{ "collector", collector }, { "crowd", crowd }, { "waits-for-signals", waits_for_signals }, { "masks", masks },
		{ "locks-its-heap", locks_its_heap }, { "protects-its-heap", protects_its_heap }, { "has-keys", has_keys },
		{ "vforks-in-handler", vforks_in_handler }, { "switches-in-child", switches_in_child },
		{ "vforks-in-child", vforks_in_child }, { "works-in-child", works_in_child },
		{ "starts-in-fork", starts_in_fork }, { "jumps", jumps },
		{ "starts-in-child", starts_in_child }, { "overflows", overflows },
	};
	alarm(240);
	CHECK(count >= 2);
	for (size_t n = 0; n < sizeof habits / sizeof *habits; n++) {
		if (strcmp(habits[n].name, arguments[1]) == 0) {
			habits[n].run();
			return 0;
		}
	}
	CHECK(count == 3);
	(strcmp(arguments[1], "unloads") == 0 ? unloads : asks_loader)(arguments[2]);
	return 0;
}
