#!/usr/bin/env python3
# A consumer waits at a queue.Queue for a producer that has one item each 200 ms: nobody has lost anything.
import queue
import sys
import threading
import time

items = queue.Queue()


def consumer():
    while items.get() is not None:
        pass


def producer():
    for item in range(7):
        time.sleep(0.2)
        items.put(item)
    items.put(None)


threads = [threading.Thread(target=body) for body in (consumer, producer)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("TRUTH idle who=python3 where=futex|queue|get|consumer", file=sys.stderr)
