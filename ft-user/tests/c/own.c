/*
 * A program with functions of its own in place of those of libc that recording calls. All its functions are recorded, by more
 * events than a ring has room for, and by a thread without one.
 */
#include <feather_trace.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile long sink;

static inline __attribute__((always_inline)) long kernel(long number, long a) {
    __asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(0), "d"(0) : "rcx", "r11", "memory");
    return number;
}

void *memcpy(void *restrict to, const void *restrict from, size_t bytes) {
    sink++;
    for (size_t i = 0; i < bytes; i++) ((volatile char *)to)[i] = ((const char *)from)[i];
    return to;
}

void *memset(void *to, int byte, size_t bytes) {
    sink++;
    for (size_t i = 0; i < bytes; i++) ((volatile char *)to)[i] = (char)byte;
    return to;
}

size_t strnlen(const char *text, size_t most) {
    size_t length = 0;
    while (length < most && ((const volatile char *)text)[length]) length++;
    return length;
}

pid_t gettid(void) { return (pid_t)kernel(SYS_gettid, 0); }

/* Its first name is another one. */
static int which_cpu(void) {
    unsigned cpu = 0;
    kernel(SYS_getcpu, (long)&cpu);
    return (int)cpu;
}

int sched_getcpu(void) __attribute__((alias("which_cpu")));

__attribute__((noinline)) void leaf(void) { sink++; }

static void *calls(void *number) {
    for (long i = 0; i < (long)number; i++) leaf();
    return NULL;
}

int main(void) {
    pthread_t thread;
    if (ft_init() != 0) return 2;
    size_t on = ft_enable("fn.*");
    char copy[64];
    memcpy(copy, "copied", 7);
    calls((void *)100000);
    pthread_create(&thread, NULL, calls, (void *)100000);
    pthread_join(thread, NULL);
    memset(copy, 0, (size_t)sink % 64);
    printf("%d %d %d %d\n", on > 0, ft_enable("fn.leaf") > 0, ft_enable("fn.mem*") > 0, ft_enable("fn.*cpu") > 0);
    return 0;
}
