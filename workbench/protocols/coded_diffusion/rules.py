"""Rules of coded diffusion as functions of plain numbers, which the node and its fast twin share.

This file runs on a mote too (MicroPython's subset of Python).
"""

import math

from workbench.protocols.subscriptions import SECOND_US


def collecting_us(collecting_time_ms):
    """Return the collecting time ΔTC in whole µs."""
    return int(collecting_time_ms * 1000)


def request_after_us(collecting_us):
    """Return how long after its last innovative packet a node sends a request (µs).

    A neighbor that is still collecting sends without a request. On the paper's grid, requests after 2 ΔTC cost 1.4 % of
    the frames, after 4 ΔTC nothing.
    """
    return 4 * collecting_us


def keep_us(max_requests, collecting_us, request_after_us):
    """Return how long a node stores a decoded event (µs): for its own timer, then for all requests of neighbors."""
    return collecting_us + (max_requests + 1) * request_after_us if max_requests else 0


def forget_after_us(forget_after_s, generation_size, collecting_us, keep_us):
    """Return how long a node remembers an event after the last frame of it (µs).

    It is at least 2 m ΔTC, as neighbors may still be collecting, and twice the time that a decoded event is stored.
    """
    return max(int(forget_after_s * SECOND_US), 2 * generation_size * collecting_us, 2 * keep_us)


def packets_to_send(forwarding_factor, fresh):
    """Return k = ceil(FF * ip), the number of packets that a node sends after ``fresh`` innovative ones."""
    # Subtract a little, as 0.07 * 100 is more than 7 in floating point.
    return math.ceil(forwarding_factor * fresh - 1e-9)


def is_quiet(now, heard_us, forget_after_us):
    """Return whether an event whose last frame was heard or sent at ``heard_us`` may be forgotten."""
    return now - heard_us >= forget_after_us


def is_full(known, max_known, generations, max_events):
    """Return whether a node has no room for another event.

    ``known``: ids that it remembers; ``generations``: decoding matrices that it would have with the event.
    """
    return known >= max_known or generations > max_events
