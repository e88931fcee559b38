/* Numbers as arguments, which have their text as a name; and formats of which a C compiler does not see that they do not fit. */
#include <feather_trace.h>

int main(void) {
    int fd = 9;
    if (ft_init() != 0) return 1;
    FT_EVENT("format.state", "state {0} of fd {1}", 1, fd);
    FT_EVENT("format.six", "{0} {1} {2} {3} {4} {5}", 1, 2, 3, 4, 5.5, "six");
    FT_EVENT("format.rust", "{fd:#06x}|{0:>4}|{1:<4}|{:+}", fd, 7);
    FT_EVENT("format.missing", "of {none}", fd, 7);
    FT_EVENT("format.open", "of {fd", fd);
    return 0;
}
