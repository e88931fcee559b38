// What unwinds a thread through a condition wait: its cancellation, and an exception of a signal handler.
#include <csignal>
#include <cxxabi.h>
#include "program.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

struct Kept {
    const char *name;
    ~Kept() { printf("%s dropped\n", name); }
};

[[gnu::noinline, gnu::noipa]] static void wait_for_ever(const char *name) {
    Kept kept = { name };
    pthread_mutex_lock(&mutex);
    for (;;) pthread_cond_wait(&condition, &mutex);
}

// The mutex is the thread's again, however it left the wait.
static void unlock() { printf("unlock: %d\n", pthread_mutex_unlock(&mutex)); }

static volatile pid_t waiting;

static void *cancelled(void *) {
    waiting = gettid();
    try {
        wait_for_ever("cancelled");
    } catch (abi::__forced_unwind &) {
        puts("forced");
        unlock();
        throw;
    }
    return nullptr;
}

static void on_signal(int) { throw 7; }

static void *strike(void *thread) {
    wait_until_blocked(getpid(), &condition, sizeof condition);
    pthread_kill(*static_cast<pthread_t *>(thread), SIGUSR1);
    return nullptr;
}

int main() {
    pthread_t thread, own = pthread_self();
    void *result;
    pthread_create(&thread, nullptr, cancelled, nullptr);
    while (!waiting) sched_yield();
    wait_until_blocked(waiting, &condition, sizeof condition);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("cancelled: %d\n", result == PTHREAD_CANCELED);

    struct sigaction handling = {};
    handling.sa_handler = on_signal;
    handling.sa_flags = SA_NODEFER;
    sigaction(SIGUSR1, &handling, nullptr);
    pthread_create(&thread, nullptr, strike, &own);
    try {
        wait_for_ever("thrown through");
    } catch (int thrown) {
        printf("caught %d\n", thrown);
    }
    pthread_join(thread, nullptr);
    fflush(stdout);
}
