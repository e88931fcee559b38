// A C++ program that can be traced; see hello.c.
//
//     c++ -std=c++17 hello.cpp $(pkg-config --cflags --libs feather_trace) -o hello
#include <feather_trace.h>
#include <iostream>
#include <string>

template <class T> T sum(const std::string &name, T first, T last) {
    FT_EVENT("hello.sum", "{name}: {first} to {last}", name, first, last);
    T total = 0;
    for (T value = first; value <= last; ++value) total += value;
    return total;
}

int main() {
    ft_init();
    const auto whole = sum("whole", 1, 100);
    const auto real = sum("real", 0.5, 99.5);
    FT_EVENT("hello.done", "{0} has {whole} and {real}", "hello.cpp", whole, real);
    std::cout << whole << ' ' << real << '\n';
}
