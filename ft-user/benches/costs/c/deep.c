/* Work at the end of a known chain of calls that keep frame pointers, as programs in Rust do not by default. */

#include <linux/bpf.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

struct work {
    int in, out;
    uint64_t passes;
};

typedef uint64_t step(const struct work *);

/* Passes a byte to and fro. */
static uint64_t ping(const struct work *w) {
    uint64_t done = 0;
    char byte = 1;
    while (done < w->passes && syscall(SYS_write, w->out, &byte, 1) == 1 && syscall(SYS_read, w->in, &byte, 1) == 1)
        done++;
    return done;
}

/* Passes each byte back, up to the end of the pipe. */
static uint64_t echo(const struct work *w) {
    uint64_t done = 0;
    char byte;
    while (syscall(SYS_read, w->in, &byte, 1) == 1 && syscall(SYS_write, w->out, &byte, 1) == 1)
        done++;
    return done;
}

/* Runs. */
static uint64_t spin(const struct work *w) {
    uint64_t x = 88172645463325252u;
    for (uint64_t i = 0; i < w->passes; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return x;
}

/* Has the kernel run the BPF program `in`. */
static uint64_t run(const struct work *w) {
    uint64_t done = 0;
    union bpf_attr attr = {.test = {.prog_fd = w->in}};
    while (done < w->passes && syscall(SYS_bpf, BPF_PROG_TEST_RUN, &attr, sizeof attr) == 0)
        done++;
    return done;
}

static __attribute__((noinline)) uint64_t deep(int depth, step *last, const struct work *w) {
    uint64_t told = depth == 0 ? last(w) : deep(depth - 1, last, w);
    /* It is no jump. */
    __asm__ volatile("" : "+r"(told));
    return told;
}

uint64_t ft_costs_ping(int depth, int in, int out, uint64_t passes) {
    const struct work w = {in, out, passes};
    return deep(depth, ping, &w);
}

uint64_t ft_costs_echo(int depth, int in, int out) {
    const struct work w = {in, out, 0};
    return deep(depth, echo, &w);
}

uint64_t ft_costs_spin(int depth, uint64_t passes) {
    const struct work w = {-1, -1, passes};
    return deep(depth, spin, &w);
}

uint64_t ft_costs_run(int depth, int program, uint64_t passes) {
    const struct work w = {program, -1, passes};
    return deep(depth, run, &w);
}
