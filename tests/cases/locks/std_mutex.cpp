// Three sessions wait for the std::mutex of a store that a compactor keeps while it sleeps and sorts.
#define RUN_MS 1600
#include "../common.h"

#include <algorithm>
#include <mutex>
#include <vector>

struct Store {
    std::mutex lock;
    std::vector<int> rows = std::vector<int>(20000);

    NOINLINE void compact() {
        std::lock_guard<std::mutex> guard(lock);
        for (int &row : rows) row = rand();
        std::sort(rows.begin(), rows.end());
        sleep_us(5000);
    }
    size_t size() {
        std::lock_guard<std::mutex> guard(lock);
        return rows.size();
    }
};
static Store store;

static void compactor(long) {
    while (going()) {
        sleep_us(24000);
        store.compact();
    }
}

static void session(long) {
    while (going()) {
        struct wait w = wait_begins();
        store.size();
        wait_ended(w);
        sleep_us(450);
    }
}

int main() {
    start("compactor", compactor, 0);
    for (long i = 0; i < 3; i++) start("session-%ld", session, i);
    finish();
    truth("session-", "mutex", "compactor", "compact");
}
