/*
 * Functions in which clang leaves sleds, called when a line asks for it: `call N`, answered by `called`.
 */
#include <stdio.h>

static volatile long sink;

__attribute__((noinline)) void skip_blank(void) { sink++; }

__attribute__((noinline)) void parse_word(void) {
    skip_blank();
    sink++;
}

__attribute__((noinline)) void parse_line(void) {
    parse_word();
    parse_word();
    sink++;
}

int main(void) {
    char line[64];
    long n;
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin) && sscanf(line, "call %ld", &n) == 1) {
        for (long i = 0; i < n; i++) parse_line();
        puts("called");
    }
    return 0;
}
