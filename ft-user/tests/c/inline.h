/* Sites in an inline function and in a template, of which the linker keeps one copy each. */
#include <feather_trace.h>

inline int in_both(int value) {
    FT_EVENT("c.inline", "", value);
    return value;
}

template <class T> T in_template(T value) {
    FT_EVENT("c.template", "", value, std::string("of a temporary"));
    return value;
}

int second();
