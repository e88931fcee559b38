// A stack that overflows over and over, which a handler on another stack catches: no lock is left taken.
#include "program.h"
#include <setjmp.h>
#include <signal.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_spinlock_t spin;
static sigjmp_buf back;
static char other_stack[1 << 16];
static volatile int sink;

static void handler(int number)
{
	(void)number;
	siglongjmp(back, 1);
}

__attribute__((noinline)) static int deeper(int depth, int step)
{
	volatile char room[step];
	room[0] = (char)depth;
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	pthread_spin_lock(&spin);
	pthread_spin_unlock(&spin);
	sink = depth < 1000000 ? deeper(depth + 1, step) + room[0] : 0;
	return sink;
}

static void *worker(void *unused)
{
	stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
	CHECK(0, sigaltstack(&stack, NULL));
	for (volatile int i = 0; i < 50; i++) {
		if (!sigsetjmp(back, 1))
			deeper(0, 40 + 8 * i);
		CHECK(0, pthread_mutex_trylock(&mutex));
		CHECK(0, pthread_mutex_unlock(&mutex));
		CHECK(0, pthread_spin_trylock(&spin));
		CHECK(0, pthread_spin_unlock(&spin));
	}
	return unused;
}

int main(void)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
	pthread_t thread;
	pthread_attr_t small;
	name("mutex", &mutex);
	name_thread("main");
	pthread_spin_init(&spin, 0);
	sigaction(SIGSEGV, &action, NULL);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 1 << 17);
	CHECK(0, pthread_create(&thread, &small, worker, NULL));
	pthread_join(thread, NULL);
	return finish();
}
