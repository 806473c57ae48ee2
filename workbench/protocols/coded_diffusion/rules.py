"""The rules of coded diffusion on plain numbers: the node calls them, and its fast twin the same functions.

This file runs on a mote too (MicroPython's subset of Python).
"""

import math

from workbench.protocols.subscriptions import SECOND_US


def collecting_us(collecting_time_ms):
    """The collecting time ΔTC, in whole µs."""
    return int(collecting_time_ms * 1000)


def request_after_us(collecting_us):
    """How long after its last innovative packet a node asks for more.

    A neighbor that collects still sends unasked: on the paper's grid asking after 2 ΔTC costs 1.4 %, after 4 nothing.
    """
    return 4 * collecting_us


def keep_us(max_requests, collecting_us, request_after_us):
    """How long a node keeps a decoded event for neighbors that ask: its own timer, and then all their requests."""
    return collecting_us + (max_requests + 1) * request_after_us if max_requests else 0


def forget_after_us(forget_after_s, generation_size, collecting_us, keep_us):
    """How long an event is remembered that nothing is heard of.

    2 m ΔTC at least, as neighbors may still collect, and longer than what is decoded is kept.
    """
    return max(int(forget_after_s * SECOND_US), 2 * generation_size * collecting_us, 2 * keep_us)


def packets_to_send(forwarding_factor, fresh):
    """k = ceil(FF * ip): the packets that a node sends after ``fresh`` innovative ones."""
    # 0.07 * 100 is a little more than 7 in floating point.
    return math.ceil(forwarding_factor * fresh - 1e-9)


def is_quiet(now, heard_us, forget_after_us):
    """Whether an event last heard of at ``heard_us`` may be forgotten."""
    return now - heard_us >= forget_after_us


def is_full(known, max_known, generations, max_events):
    """Whether a node that would have so many decoding matrices has no room for one more id."""
    return known >= max_known or generations > max_events
