/* A library with so many functions: MORE has two besides, and more text than fits where that of the other is. */
__attribute__((noinline)) int plug_call(void);

#ifdef MORE
__attribute__((noinline)) int plug_six(int x) { return 6 * x; }
__attribute__((noinline)) int plug_seven(int x) {
    __asm__ volatile(".skip 20000, 0x90");
    return 7 * x;
}
int plug_call(void) { return plug_six(7) + plug_seven(0); }
#else
int plug_call(void) { return 42; }
#endif
