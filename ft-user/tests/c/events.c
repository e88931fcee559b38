/* C11 and C++17: every count and type of argument, for tests/c_header.rs. */
#include <feather_trace.h>
#include <stdbool.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C"
#endif
int library_event(int value);

enum color { RED, GREEN };

static int six(int a, int b, int c, int d, int e, int f) {
    FT_EVENT("c.six", "", a, b, c, d, e, f);
    return a + b + c + d + e + f;
}

static int called = 0;

int main(void) {
    const char *null = NULL;
    char buffer[8] = "array";
    const unsigned char raw[3] = { 0, 255, 7 };
    enum color color = GREEN;
    if (ft_init() != 0 || ft_enable("c.*") == 0 || ft_enable("async.*") == 0 || ft_enable(NULL) != 0) return 1;
    ft_thread_init();
    FT_EVENT("c.none", "");
    for (int i = 0; i < 3; ++i) FT_EVENT("c.one", "{0}", i);
    FT_EVENT("c.types", "", (signed char)-1, (unsigned short)65535, 1.5f, (bool)1, (void *)16, color);
    FT_EVENT("c.wide", "", -5LL, ~0ULL, 2.25);
    six(1, 2, 3, 4, 5, 6);
    FT_EVENT("c.text", "", "literal", buffer, null, ft_bytes(raw, 3), ft_text("cut", 2), 77);
    FT_EVENT("other.off", "", ++called);
    FT_BEGIN("c.scope", "", 9);
    FT_END("c.scope");
    FT_TASK_NEW(7);
    FT_TASK_SWITCH((void *)7);
    FT_TASK_WAKE(7ULL);
    FT_TASK_SWITCH(0);
    FT_TASK_END(7);
    FT_TASK_DROP(8);
    library_event(41);
    ft_disable("c.*");
    ft_disable("async.*");
    FT_EVENT("c.none", "");
    puts(called ? "evaluated" : "ready");
    fflush(stdout);
    return getchar() == EOF ? 0 : 1;
}
