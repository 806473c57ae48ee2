"""Rules of coded diffusion as functions of plain numbers, which the node and its version for the fast engine share.

This file runs on a mote too (MicroPython's subset of Python).
"""

import math

from workbench.protocols.subscriptions import SECOND_US


def collecting_us(collecting_time_ms):
    """Convert the setting ``collecting_time_ms`` to whole µs, rounded down."""
    return int(collecting_time_ms * 1000)


def request_after_us(collecting_us):
    """Return how long after its last innovative packet a node sends a request (µs).

    A neighbor that is still collecting packets sends coded packets without a request. On the paper's grid, 1.4 % of
    all frames are due to requests if nodes wait for twice the collecting time, and none if they wait for four times.
    """
    return 4 * collecting_us


def keep_us(max_requests, collecting_us, request_after_us):
    """Return how long a node stores an event after decoding it (µs); 0 if nodes send no requests.

    The result is the longest time until the node's own send timer fires, plus the time in which neighbors may request
    packets. If nodes send no requests, the node stores the event only until its send timer fires.
    """
    return collecting_us + (max_requests + 1) * request_after_us if max_requests else 0


def forget_after_us(forget_after_s, generation_size, collecting_us, keep_us):
    """Return how long a node remembers an event's id after the event's last frame (µs).

    It is the longest of three times: the setting ``forget_after_s``; twice the time in which neighbors may still
    collect packets (``generation_size`` times ``collecting_us``); and twice ``keep_us``. Nodes store a decoded event
    for ``keep_us`` to answer requests.
    """
    return max(int(forget_after_s * SECOND_US), 2 * generation_size * collecting_us, 2 * keep_us)


def packets_to_send(forwarding_factor, fresh):
    """Return how many packets a node sends after ``fresh`` innovative ones: factor times ``fresh``, rounded up."""
    # Subtract a little, as 0.07 * 100 is more than 7 in floating point.
    return math.ceil(forwarding_factor * fresh - 1e-9)


def is_quiet(now, heard_us, forget_after_us):
    """Return whether the last frame of an event is old enough for a node to forget the event.

    ``heard_us``: when the node last received or sent a frame of the event (µs); ``forget_after_us``: the smallest age
    of that frame (µs) at which the event may be forgotten.
    """
    return now - heard_us >= forget_after_us


def is_full(known, max_known, generations, max_events):
    """Return whether a node has no room for another event.

    ``known``: number of events whose ids the node remembers, without the new event; ``generations``: number of decoding
    matrices, with the new event's; ``max_known``, ``max_events``: the largest numbers of ids and of matrices.
    """
    return known >= max_known or generations > max_events
