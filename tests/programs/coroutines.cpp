/* Coroutines of C++20 on one thread, of which only their executor tells: two wake each other, one is destroyed while it waits,
 * one while it is queued, one before it has run, and one throws. */
#include <chrono>
#include <coroutine>
#include <deque>
#include <exception>
#include <feather_trace.h>

enum { TURNS = 20 };

struct Coroutine {
    struct promise_type {
        Coroutine get_return_object() {
            return { std::coroutine_handle<promise_type>::from_promise(*this) };
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { failed = std::current_exception(); }
        std::exception_ptr failed;
    };
    std::coroutine_handle<promise_type> handle;
};

static std::deque<std::coroutine_handle<>> queue;

static void wake(Coroutine &of) {
    FT_TASK_WAKE(of.handle.address());
    queue.push_back(of.handle);
}

static void step(int id, int turn) { FT_EVENT("coroutines.step", "{0} in turn {1}", id, turn); }

static Coroutine turns(int id, Coroutine *next) {
    for (int turn = 0; turn < TURNS; ++turn) {
        step(id, turn);
        /* The first turn of each is its executor's. */
        if (turn > 0 && next) wake(*next);
        co_await std::suspend_always {};
    }
}

static Coroutine throws(int id) {
    step(id, 0);
    co_await std::suspend_always {};
    step(id, 1);
    throw id;
}

static void resume(std::coroutine_handle<> of) {
    FT_TASK_SWITCH(of.address());
    of.resume();
    if (of.done()) FT_TASK_END(of.address());
    FT_TASK_SWITCH(0);
}

static void destroy(Coroutine &of) {
    FT_TASK_DROP(of.handle.address());
    of.handle.destroy();
}

int main() {
    ft_init();
    ft_enable("async.*");
    ft_enable("coroutines.*");
    Coroutine of[6];
    of[0] = turns(0, &of[1]);
    of[1] = turns(1, &of[0]);
    of[2] = turns(2, nullptr);
    of[3] = turns(3, nullptr);
    of[4] = throws(4);
    of[5] = turns(5, nullptr);
    for (auto &one : of) FT_TASK_NEW(one.handle.address());
    /* Those two wake each other from here on. */
    for (int i : { 0, 1 }) resume(of[i].handle);
    wake(of[0]);
    while (!queue.empty()) {
        auto next = queue.front();
        queue.pop_front();
        resume(next);
    }
    /* The other one has come to its end with nobody to wake it. */
    resume(of[1].handle);
    /* Destroyed while it waits, and while it is queued; before it has run at all. */
    resume(of[2].handle);
    destroy(of[2]);
    resume(of[3].handle);
    FT_TASK_WAKE(of[3].handle.address());
    /* It is queued for a time that the clock shows. */
    auto woken = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - woken < std::chrono::microseconds(1)) {}
    destroy(of[3]);
    destroy(of[5]);
    for (int turn = 0; turn < 2; ++turn) resume(of[4].handle);
    return of[4].handle.promise().failed ? 0 : 1;
}
