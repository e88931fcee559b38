/* Loads the libraries NAME=PATH one after the other, starts each and runs through its site; knows no tracer. At each
 * argument `-` it says `ready`, and runs through all sites again for each line that it reads, up to `next`. */
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

static void say(const char *word) {
    puts(word);
    fflush(stdout);
}

int main(int argc, char **argv) {
    union symbol runs[64];
    int i, loaded = 0;
    for (i = 1; i < argc && i < 64; i++) {
        char *path = strchr(argv[i], '=');
        char line[64];
        void *library;
        if (strcmp(argv[i], "-") == 0) {
            say("ready");
            while (fgets(line, sizeof line, stdin) && strcmp(line, "next\n") != 0) {
                int n;
                for (n = 0; n < loaded; n++)
                    runs[n].run(100 + (uint64_t)n);
                say("ran");
            }
            continue;
        }
        if (!path)
            return 2;
        *path++ = 0;
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        find(library, argv[i], "_start").start();
        runs[loaded] = find(library, argv[i], "_run");
        runs[loaded++].run((uint64_t)i);
    }
    return 0;
}
