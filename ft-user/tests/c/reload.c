/* Loads libraries, one after the other, each copied to where the one before was: `reload PLACE LIBRARY…`. */
#include <dlfcn.h>
#include <feather_trace.h>
#include <stdio.h>
#include <stdlib.h>

static int load(const char *library, const char *place) {
    char copy[4096];
    /* As a linker does: what is new has the old one's inode, where the file system gives it out again. */
    snprintf(copy, sizeof copy, "cp --remove-destination %s %s", library, place);
    if (system(copy) != 0) return -1;
    void *handle = dlopen(place, RTLD_NOW);
    if (!handle) return -1;
    int on = (int)ft_enable("fn.plug_*");
    int (*plug)(void);
    *(void **)&plug = dlsym(handle, "plug_call");
    if (plug() != 42) return -1;
    ft_disable("fn.plug_*");
    dlclose(handle);
    return on;
}

int main(int argc, char **argv) {
    if (argc < 3 || ft_init() != 0) return 2;
    for (int i = 2; i < argc; i++) printf("%d ", load(argv[i], argv[1]));
    puts("");
    return 0;
}
