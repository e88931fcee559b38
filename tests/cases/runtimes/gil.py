#!/usr/bin/env python3
# A thread that answers each 3 ms waits for the interpreter's lock, which a thread that sums squares keeps.
import sys
import threading
import time

lost = unsure = 0
end = time.monotonic() + 2


def name(text):
    with open("/proc/thread-self/comm", "w") as comm:
        comm.write(text)


def ready():
    with open("/proc/thread-self/schedstat") as file:
        return int(file.read().split()[1])


def sum_squares():
    name("squares")
    total = 0
    while time.monotonic() < end:
        for number in range(1000):
            total += number * number


def answer():
    global lost, unsure
    name("answer")
    while time.monotonic() < end:
        before = ready()
        due = time.monotonic_ns() + 3_000_000
        time.sleep(0.003)
        # The sleep is over at its time; what is more was a wait for the lock, and at the end one for a CPU.
        late = time.monotonic_ns() - due
        if late >= 20_000:
            lost += late
            unsure += max(0, ready() - before)


threads = [threading.Thread(target=body) for body in (sum_squares, answer)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(
    f"TRUTH who=answer what=gil behind=squares where=sum_squares lost_ms={lost / 1e6:.1f} unsure_ms={unsure / 1e6:.1f}",
    file=sys.stderr,
)
