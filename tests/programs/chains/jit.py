# As jit.js, for as much time of a CPU.
import json
import time


def jitted_inner(n):
    x = 1
    for i in range(n):
        x = (x * 31 + i) % 1000003
    return x


def jitted_outer(n):
    total = 0
    for _ in range(200):
        total += jitted_inner(n)
    return total


end = time.process_time() + 1
total = 0
while time.process_time() < end:
    total += jitted_outer(200)
print(json.dumps({"sum": total}))
