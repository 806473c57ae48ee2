"""A virtual mote: MicroPython in a thread of the rack (hardware/virtual), its line a TCP port on loopback.

The module ``virtual`` is the thread's JavaScript (hardware/virtual/mote.mjs). Bytes pass to it as hex and times as
floats: other objects leave proxies behind, and whole numbers are cut to 32 bits on the way. It has no radio of its own:
frames go over the host link to the host, which simulates the channel. Its clock may run faster than real time.
"""

import gc
from binascii import hexlify, unhexlify

import virtual

NAME = "virtual"
HAS_RADIO = False

_send = virtual.send
_now_us = virtual.now_us


def boots():
    """Return the number of earlier starts of the mote."""
    return virtual.boots


def now_us():
    """Return the µs since this start, of a monotonic clock."""
    return int(_now_us())


def memory():
    """Return (bytes allocated, bytes free) of the heap, with garbage: it is collected only when no Python runs."""
    return gc.mem_alloc(), gc.mem_free()


def write(data):
    """Send bytes to the hosts on the line; without a host they are lost, as on any line."""
    _send(hexlify(data).decode())


def make_radio(mote, address, settings):
    """Return None: the mote has no radio, and its frames go over the host link."""
    return None


def reset():
    """Restart the mote as after power-on, on the same port. Does not return."""
    virtual.reset()
    raise SystemExit


def run(mote):
    """Register the functions to call for received bytes and after a time, and return."""

    def feed(text):
        mote.feed(unhexlify(text))

    def step():
        wait_us = mote.step()
        return None if wait_us is None else float(wait_us)

    virtual.serve(feed, step)
