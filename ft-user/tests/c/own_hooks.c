/* A program with hooks of its own, which count. */
#include <feather_trace.h>
#include <stdio.h>

#define PLAIN __attribute__((no_instrument_function))

static int begins, ends;

PLAIN void __cyg_profile_func_enter(void *function, void *caller);
PLAIN void __cyg_profile_func_exit(void *function, void *caller);

void __cyg_profile_func_enter(void *function, void *caller) {
    (void)function, (void)caller;
    begins++;
}

void __cyg_profile_func_exit(void *function, void *caller) {
    (void)function, (void)caller;
    ends++;
}

static void leaf(void) {
    FT_EVENT("own.leaf", "");
}

int main(void) {
    ft_init();
    leaf();
    leaf();
    leaf();
    printf("%d begins, %d ends\n", begins, ends);
    return 0;
}
