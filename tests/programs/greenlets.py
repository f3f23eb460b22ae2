# SPDX-License-Identifier: MIT
"""greenlet copies stacks: what ran at the same addresses meanwhile must not be seen in what comes back."""
import sys
import threading


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


print(fib(12))
import greenlet  # in the midst of calls that are being recorded


def deep(n, function):
    """n C calls deep: through map and max."""
    return function() if n == 0 else max(map(lambda one: deep(n - 1, function), [n]))


log = []


def ping():
    for i in range(300):
        log.append(deep(i % 9, lambda: other.switch(i)))
    return len(log)


def pong(value):
    while True:
        value = deep(value % 7, lambda: first.switch(value * 2))


first, other = greenlet.greenlet(ping), greenlet.greenlet(pong)
print(first.switch(), sum(log))


def work():
    def inner(number):
        return deep(number % 11, lambda: greenlet.getcurrent().parent.switch(number)) + number

    several = [greenlet.greenlet(inner) for _ in range(50)]
    print(sum(one.switch(number) for number, one in enumerate(several)),
          sum(one.switch(5) for one in several))


for _ in range(3):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
try:
    greenlet.greenlet(lambda: deep(5, lambda: 1 // 0)).switch()
except ZeroDivisionError as error:
    print(error)
sys.exit(4)
