"""The driver of a board whose line is the terminal of MicroPython's prompt, as on a Pico. Copied as its driver."""

import gc
import os
import select
import sys
import time

NAME = "serial-radio"
HAS_RADIO = False


def boots():
    """Return the number of earlier starts, which the file boot_count stores."""
    try:
        with open("boot_count") as file:
            count = int(file.read())
    except (OSError, ValueError):
        count = 0
    with open("boot_count", "w") as file:
        file.write(str(count + 1))
    return count


def now_us():
    """Return the time of a monotonic clock in µs."""
    return time.ticks_us()


def memory():
    """Return (bytes allocated, bytes free) of the heap."""
    return gc.mem_alloc(), gc.mem_free()


def write(data):
    """Write bytes to the line."""
    sys.stdout.buffer.write(data)


def make_radio(mote, address, settings):
    """Return None: the host is the radio."""
    return None


def reset():
    """Restart the board."""
    import machine

    machine.reset()


def run(mote):
    """Serve the line for ever. As on a board, Ctrl-C is disabled."""
    os.system("stty raw -echo -isig")
    poller = select.poll()
    poller.register(sys.stdin, select.POLLIN)
    while True:
        wait_us = mote.step()
        wait_ms = 1000 if wait_us is None else min(1000, wait_us // 1000)
        if poller.poll(wait_ms):
            mote.feed(sys.stdin.buffer.read(1))
