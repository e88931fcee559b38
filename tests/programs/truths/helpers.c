/* Three functions, of which one writes an event with a number and a text at each of its 1,000 calls. */
#include <feather_trace.h>

#define RECORDED __attribute__((noinline))

static RECORDED void leaf(int i, const char *text) { FT_EVENT("truth.leaf", "{i} {text}", i, text); }

static RECORDED void branch(void) {
    for (int i = 0; i < 1000; ++i) leaf(i, "text");
}

int main(void) {
    if (ft_init() != 0) return 1;
    branch();
    return 0;
}
