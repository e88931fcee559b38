#!/usr/bin/env python3
# A waiter needs a lock once, in the midst of its work; the holder computes while it has it, and waits for nothing.
import sys
import threading
import time

lock = threading.Lock()
lost = 0.0


def compute(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


def holder():
    with lock:
        compute(0.9)
    time.sleep(0.2)


def waiter():
    global lost
    time.sleep(0.1)
    since = time.monotonic()
    with lock:
        lost = 1e3 * (time.monotonic() - since)
    time.sleep(0.2)


for body in (holder, waiter):
    threading.Thread(target=body, daemon=True).start()
time.sleep(1.4)
print(f"TRUTH who=python3 what=semaphore behind=python3 lost_ms={lost:.1f}", file=sys.stderr)
