/* A site in a shared library of its own. */
#include <feather_trace.h>

#ifdef __cplusplus
extern "C"
#endif
int library_event(int value) {
    FT_EVENT("c.library", "", value, value + 1);
    return value;
}
