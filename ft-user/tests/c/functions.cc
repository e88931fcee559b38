// Functions that exceptions leave, compiled with -finstrument-functions: gcc tells of their ends, clang does not.
// Prints what is true: function, calls.
#include <chrono>
#include <cstdio>
#include <stdexcept>

#ifndef PLAIN
#define PLAIN __attribute__((no_instrument_function))
#endif

namespace {
long calls_of_fails, calls_of_passes, calls_of_tries, calls_of_after;

PLAIN void spin(long ns) {
    auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < std::chrono::nanoseconds(ns)) {
    }
}
} // namespace

namespace shop {
__attribute__((noinline)) void fails(int n) {
    calls_of_fails++;
    spin(2000);
    if (n % 2 == 0) throw std::runtime_error("out of stock");
}

__attribute__((noinline)) void passes(int n) {
    calls_of_passes++;
    spin(2000);
    fails(n);
    spin(2000);
}

__attribute__((noinline)) void after() {
    calls_of_after++;
    spin(2000);
}

__attribute__((noinline)) void tries(int n) {
    calls_of_tries++;
    for (int i = 0; i < n; i++) {
        try {
            passes(i);
        } catch (const std::runtime_error &) {
            after();
        }
    }
}
} // namespace shop

PLAIN int main() {
    for (int i = 0; i < 20; i++) shop::tries(10);
    std::printf("fails %ld\npasses %ld\ntries %ld\nafter %ld\n", calls_of_fails, calls_of_passes, calls_of_tries,
                calls_of_after);
}
