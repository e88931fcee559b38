// Asks for the time for a second, and does nothing else.

#include <stdio.h>
#include <time.h>

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(void) {
    const long long end = now_ns() + 1000000000LL;
    long asked = 0;
    while (now_ns() < end) asked++;
    printf("{\"asked\": %ld}\n", asked);
    return 0;
}
