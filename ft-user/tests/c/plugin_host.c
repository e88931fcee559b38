/* Loads the libraries NAME=PATH one after the other, starts each and runs through its site; knows no tracer. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* POSIX lets a symbol's address be that of a function, ISO C does not. */
union symbol {
    void *address;
    void (*start)(void);
    void (*run)(uint64_t);
};

static union symbol find(void *library, const char *name, const char *suffix) {
    char text[64];
    union symbol symbol;
    snprintf(text, sizeof text, "%s%s", name, suffix);
    symbol.address = dlsym(library, text);
    return symbol;
}

int main(int argc, char **argv) {
    int i;
    for (i = 1; i < argc; i++) {
        char *path = strchr(argv[i], '=');
        void *library;
        if (!path)
            return 2;
        *path++ = 0;
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        find(library, argv[i], "_start").start();
        find(library, argv[i], "_run").run((uint64_t)i);
    }
    return 0;
}
