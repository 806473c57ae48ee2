"""A virtual mote: MicroPython in a thread of the rack (hardware/virtual), its line a TCP port on loopback.

The module ``virtual`` is the thread's JavaScript (hardware/virtual/mote.mjs). Bytes pass to it as hex and times as
floats: other objects leave proxies behind, and whole numbers are cut to 32 bits on the way. It has no radio of its own:
frames go over the host link, to whoever plays the ether. It has a clock of its own, which may run faster than time.
"""

import gc
from binascii import hexlify, unhexlify

import virtual

NAME = "virtual"
HAS_RADIO = False

_send = virtual.send
_now_us = virtual.now_us


def boots():
    """How often it began before."""
    return virtual.boots


def now_us():
    """A clock that never goes back: µs since this start."""
    return int(_now_us())


def memory():
    """(bytes allocated, bytes free) of the heap, garbage included: it is collected when no Python runs."""
    return gc.mem_alloc(), gc.mem_free()


def write(data):
    """Bytes to the hosts on the line; gone if nobody listens, as on any line."""
    _send(hexlify(data).decode())


def make_radio(mote, address, settings):
    """Never asked for: without a radio of its own frames go over the host link."""
    return None


def reset():
    """Begin again from power-on, on the same port. Does not return."""
    virtual.reset()
    raise SystemExit


def run(mote):
    """Say what to call when bytes come and when time has passed; returns."""

    def feed(text):
        mote.feed(unhexlify(text))

    def step():
        wait_us = mote.step()
        return None if wait_us is None else float(wait_us)

    virtual.serve(feed, step)
