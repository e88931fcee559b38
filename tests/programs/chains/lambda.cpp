// A thread that is a lambda waits for a condition, which nobody makes true. Prints it.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

enum { ROUNDS = 100 };

static std::mutex mutex;
static std::condition_variable changed;
static bool is_true;
static long waiter;

// Something is left to do after each call, which so is no jump.
__attribute__((noinline)) static void wait_for_reply() {
	std::unique_lock<std::mutex> held(mutex);
	changed.wait_for(held, std::chrono::milliseconds(2), [] { return is_true; });
	asm volatile("");
}

__attribute__((noinline)) static void handle() {
	wait_for_reply();
	asm volatile("");
}

int main() {
	std::thread thread([] {
		waiter = syscall(SYS_gettid);
		for (int i = 0; i < ROUNDS; i++) {
			handle();
			asm volatile("");
		}
	});
	thread.join();
	printf("{\"waiter\": %ld, \"rounds\": %d}\n", waiter, ROUNDS);
}
