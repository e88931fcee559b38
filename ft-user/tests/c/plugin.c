/* A library with a site, to be loaded while its host runs: `-DPLUGIN=first`. With -DSTARTS it starts tracing. */
#include <feather_trace.h>

#define NAME_(plugin, suffix) plugin##suffix
#define NAME(plugin, suffix) NAME_(plugin, suffix)
#define TEXT_(plugin) #plugin
#define TEXT(plugin) TEXT_(plugin)

void NAME(PLUGIN, _start)(void) {
#ifdef STARTS
    ft_init();
#endif
}

void NAME(PLUGIN, _run)(uint64_t value) {
    FT_EVENT("plugin.run", "", ft_text(TEXT(PLUGIN), sizeof(TEXT(PLUGIN)) - 1), value);
    FT_EVENT("quiet.run", "", value);
}
