// A customer asks for one figure after another and waits for the std::future of each; an evaluator, which sleeps, keeps the promises.
#include "../common.h"

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>

static std::mutex lock;
static std::condition_variable posted;
static std::deque<std::promise<int>> asked;
static bool over;

NOINLINE static int evaluate() {
    sleep_us(5500);
    return rand();
}

static void evaluator(long) {
    for (;;) {
        std::unique_lock<std::mutex> guard(lock);
        posted.wait(guard, [] { return over || !asked.empty(); });
        if (asked.empty()) return;
        std::promise<int> promise = std::move(asked.front());
        asked.pop_front();
        guard.unlock();
        promise.set_value(evaluate());
    }
}

static void customer(long) {
    while (going()) {
        std::promise<int> promise;
        std::future<int> figure = promise.get_future();
        {
            std::lock_guard<std::mutex> guard(lock);
            asked.push_back(std::move(promise));
        }
        posted.notify_one();
        struct wait w = wait_begins();
        figure.get();
        wait_ended(w);
        burn_us(1500);
    }
    std::lock_guard<std::mutex> guard(lock);
    over = true;
    posted.notify_one();
}

int main() {
    start("evaluator", evaluator, 0);
    start("customer", customer, 0);
    finish();
    truth("customer", "future", "evaluator", "evaluate");
}
