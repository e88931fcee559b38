/* Loads the library NAME=PATH, has a thread run through its site, and unloads it before the thread ends and another process is forked; so
 * some times. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

union symbol {
    void *address;
    void (*start)(void);
    void (*run)(uint64_t);
};

static union symbol run;
static pthread_barrier_t barrier;

static void *work(void *unused) {
    run.run(1);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return unused;
}

int main(int argc, char **argv) {
    int i;
    char *path = argc == 2 ? strchr(argv[1], '=') : NULL;
    if (!path)
        return 2;
    *path++ = 0;
    pthread_barrier_init(&barrier, NULL, 2);
    for (i = 0; i < 20; i++) {
        char name[64];
        union symbol start;
        pthread_t thread;
        int status = 1;
        pid_t child;
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        snprintf(name, sizeof name, "%s_start", argv[1]);
        start.address = dlsym(library, name);
        start.start();
        snprintf(name, sizeof name, "%s_run", argv[1]);
        run.address = dlsym(library, name);
        pthread_create(&thread, NULL, work, NULL);
        pthread_barrier_wait(&barrier);
        dlclose(library);
        pthread_barrier_wait(&barrier);
        pthread_join(thread, NULL);
        child = fork();
        if (child == 0)
            _exit(0);
        if (waitpid(child, &status, 0) != child || status != 0)
            return 3;
    }
    puts("done");
    return 0;
}
