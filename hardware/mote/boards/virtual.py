"""A virtual mote: MicroPython in a thread of the rack (hardware/virtual); its line is a TCP port on loopback.

The module ``virtual`` is JavaScript of this thread (hardware/virtual/mote.mjs). Bytes are passed between Python and
JavaScript as hex digits, and times as floats: other objects would leave proxies behind, and integers would be cut to 32
bits. The mote has no radio of its own: frames go over the host link to the host, which simulates the channel. The
mote's clock may run faster than real time.
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
    """Return the time since the mote's last start in µs, from a monotonic clock."""
    return int(_now_us())


def memory():
    """Return (bytes allocated, bytes free) of the heap; the allocated bytes include garbage.

    Garbage is collected only when no Python code runs.
    """
    return gc.mem_alloc(), gc.mem_free()


def write(data):
    """Send bytes to the hosts on the line; they are lost if no host is connected, as on a serial line."""
    _send(hexlify(data).decode())


def make_radio(mote, address, settings):
    """Return None: the mote has no radio, and its frames go over the host link."""
    return None


def reset():
    """Restart the mote as after power-on, on the same port. Does not return."""
    virtual.reset()
    raise SystemExit


def run(mote):
    """Register two functions in JavaScript, one for received bytes and one for the mote's next step, and return.

    JavaScript calls the functions whenever bytes arrive or a step is due.
    """

    def feed(text):
        mote.feed(unhexlify(text))

    def step():
        wait_us = mote.step()
        return None if wait_us is None else float(wait_us)

    virtual.serve(feed, step)
