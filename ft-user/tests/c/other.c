/* A library with a thread-local of its own. */
static __thread int value;

int NAME(void) { return ++value; }
