// Two locks in two orders, which never meet: what could be a deadlock, and is none.
#include <pthread.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;

static void both(pthread_mutex_t *outer, pthread_mutex_t *inner)
{
	pthread_mutex_lock(outer);
	pthread_mutex_lock(inner);
	pthread_mutex_unlock(inner);
	pthread_mutex_unlock(outer);
}

static void *other(void *unused)
{
	both(&second, &first);
	return unused;
}

int main(void)
{
	pthread_t thread;
	both(&first, &second);
	pthread_create(&thread, 0, other, 0);
	pthread_join(thread, 0);
	return 0;
}
