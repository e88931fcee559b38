#include "inline.h"
#include <cstdio>

int main() {
    if (ft_init() != 0 || ft_enable("c.*") == 0) return 1;
    in_both(1);
    second();
    in_template(2);
    in_template(2.5);
    std::puts("ready");
    std::fflush(stdout);
    return std::getchar() == EOF ? 0 : 1;
}
