/* Functions with sites, for a look at their machine code: tests/disassembly.rs. C11 and C++17. */
#include <feather_trace.h>

#ifdef __cplusplus
extern "C" {
#endif

long six_parameters(long a, long b, long c, long d, long e, long f) {
    FT_EVENT("hot.six_parameters", "", a, b, c, d, e, f);
    return a + b + c + d + e + f;
}

unsigned long six_in_a_loop(const unsigned *values, unsigned long count, unsigned long seed) {
    unsigned long sum = seed;
    for (unsigned long i = 0; i < count; ++i) {
        FT_EVENT("hot.six_in_a_loop", "", values[i], sum, seed, i, count, values);
        sum = sum * 31 ^ values[i];
    }
    return sum;
}

int text_parameters(const char *path, const void *body, unsigned long size) {
    FT_EVENT("hot.text_parameters", "", path, ft_bytes(body, size), size);
    return 1;
}

#ifdef __cplusplus
}
#endif
