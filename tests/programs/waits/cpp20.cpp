// What C++20 has to wait for: one thread waits, the other one ends that when the kernel says that it sleeps. Prints the waits.
#include "waits.h"
#include <atomic>
#include <barrier>
#include <latch>
#include <semaphore>
#include <shared_mutex>
#include <thread>
#include <vector>

// One wait; `wait` is called by a thread of its own, `wake` by this one.
template <class Wait, class Wake> static void one(struct wait &about, const char *what, Wait wait, Wake wake)
{
	about.what = what;
	std::thread waiter([&] {
		about_to_wait(&about);
		wait();
		waited(&about);
	});
	about_to_wake(&about, getpid());
	wake();
	woke(&about);
	waiter.join();
}

int main(int argc, char **argv)
{
	const int rounds = argc > 1 ? std::atoi(argv[1]) : 1;
	std::vector<struct wait> waits(7 * rounds);
	auto next = waits.begin();
	for (int i = 0; i < rounds; i++) {
		std::atomic<int> word = 0;
		one(*next++, "atomic", [&] { word.wait(0); }, [&] { word = 1; word.notify_one(); });
		// Not of the size of a futex: the library has another one for it.
		std::atomic<long> wide = 0;
		one(*next++, "wide atomic", [&] { wide.wait(0); }, [&] { wide = 1; wide.notify_all(); });
		std::counting_semaphore<8> semaphore(0);
		one(*next++, "semaphore", [&] { semaphore.acquire(); }, [&] { semaphore.release(); });
		std::latch latch(1);
		one(*next++, "latch", [&] { latch.wait(); }, [&] { latch.count_down(); });
		std::barrier barrier(2);
		one(*next++, "barrier", [&] { barrier.arrive_and_wait(); }, [&] { (void)barrier.arrive(); });
		std::shared_mutex mutex;
		mutex.lock_shared();
		one(*next++, "writer", [&] { mutex.lock(); mutex.unlock(); }, [&] { mutex.unlock_shared(); });
		mutex.lock();
		one(*next++, "reader", [&] { mutex.lock_shared(); mutex.unlock_shared(); }, [&] { mutex.unlock(); });
	}
	print_waits(waits.data(), waits.size());
}
