/* Loads a library of ours into a namespace of its own, where it must not be traced: its keys are numbered as this program's are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

int main(int count, char **library)
{
	static int mine;
	pthread_key_t key;
	void *plugin = count == 2 ? dlmopen(LM_ID_NEWLM, library[1], RTLD_NOW) : NULL;
	if (plugin == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	if (pthread_key_create(&key, NULL) != 0 || pthread_setspecific(key, &mine) != 0)
		return 3;
	int (*init)(void);
	void (*run)(uint64_t);
	size_t (*enable)(const char *);
	*(void **)&init = dlsym(plugin, "ft_init");
	*(void **)&enable = dlsym(plugin, "ft_enable");
	*(void **)&run = dlsym(plugin, "first_run");
	printf("%d", init());
	printf(" %zu", enable("plugin.run"));
	run(1);
	printf(" %d\n", pthread_getspecific(key) == &mine);
	return 0;
}
