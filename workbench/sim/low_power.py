"""Low-power listening: radios that sleep, wake up regularly, and are reached by repeated copies of a frame.

Model, after ContikiMAC (A. Dunkels, The ContikiMAC Radio Duty Cycling Protocol, SICS T2011:13)
    wake-ups      Every node wakes up each ``Radio.wake_interval_ms``, at a phase of its own, for two checks of the
                  channel (CHECKS_US). It stays awake only if a frame is in the air.
    strobe        A sender repeats copies of a frame, GAP_US apart. A node that wakes up during a strobe receives the
                  next whole copy, and then sleeps. It has one chance for each transmission: a copy is lost by the same
                  rules as a frame is without low-power listening.
    broadcast     The strobe takes a whole interval, so that every neighbor wakes up once. Its receivers handle the
                  frame when the strobe ends, as the channel is busy for them until then.
    unicast       The strobe ends with the acknowledgement of the first copy after the receiver's wake-up; without an
                  acknowledgement it takes a whole interval too.
    phase lock    A sender whose frame was acknowledged knows the receiver's phase. It sends its next frame to that
                  neighbor just before a wake-up, so that one or two copies are enough. If none of these copies is
                  acknowledged, the strobe ends early. The sender forgets the phase if all retransmissions fail, or
                  if it fails itself.
    back-off      Nodes sense the carrier as with csma. A busy channel is likely to stay busy for a whole wake-up
                  interval, so further back-offs are multiples of an eighth of this interval.

Simplifications: clocks do not drift; a node keeps its phase through a failure; strobes disturb other frames throughout,
also in the gaps between copies.

Both engines call these functions. Times are integers in µs; `next_wake` and `copy_end` also take arrays of them.
"""

from __future__ import annotations

from typing import Any

GAP_US = 400  # between two copies; an acknowledgement begins in it
# Time awake at a wake-up that finds the channel free: two checks, each 192 µs for the receiver to start (12 symbols;
# CC2420, data sheet SWRS041) and 192 µs of listening. With 8 wake-ups a second that is .61 % of the time; the report
# states .6 %.
CHECKS_US = 2 * (192 + 192)
# IEEE 802.15.4-2006, 7.4.2 and 7.5.1.4, at 2.4 GHz: 16 µs per symbol.
UNIT_BACKOFF_US = 320
TURNAROUND_US = 192


def next_wake(phase_us: Any, interval_us: int, time_us: Any) -> Any:
    """Return the time in µs of a node's first wake-up at or after ``time_us``.

    The node first wakes up at ``phase_us``, which is less than ``interval_us``, and then every ``interval_us``.
    """
    return time_us + (phase_us - time_us) % interval_us


def copy_end(start_us: Any, wake_us: Any, airtime_us: Any) -> Any:
    """Return the time in µs at which a node that wakes up at ``wake_us`` has received a whole copy of a strobe's frame.

    This is the end of the first copy that begins at or after ``wake_us``. The copies, each of ``airtime_us``, are sent
    from ``start_us`` on, with pauses of GAP_US.
    """
    period_us = airtime_us + GAP_US
    return start_us - (start_us - wake_us) // period_us * period_us + airtime_us


def strobe_end(start_us: int, airtime_us: int, interval_us: int) -> int:
    """Return the end in µs of a strobe (repeated copies of a frame) that must reach every neighbor.

    ``start_us``: the beginning of the strobe. ``airtime_us``: the airtime of one copy. ``interval_us``: the interval of
    wake-ups.
    """
    return copy_end(start_us, start_us + interval_us, airtime_us)


def check_time(time_us: int, slots: int, backoffs: int, interval_us: int, phase_us: int) -> int:
    """Return the time in µs at which a node checks the channel, after a back-off that begins at ``time_us``.

    ``slots``: the random length of the back-off. ``backoffs``: how often the channel was busy for this frame so far.
    ``interval_us``: the interval of wake-ups. ``phase_us``: the time of the receiver's first wake-up, or -1 if the
    sender has not learned it.
    """
    if backoffs:
        time_us += slots * (interval_us >> 3)
    if phase_us < 0:
        return time_us if backoffs else time_us + slots * UNIT_BACKOFF_US
    lead_us = TURNAROUND_US + (slots & 7) * UNIT_BACKOFF_US
    return next_wake(phase_us, interval_us, time_us + lead_us) - lead_us


def checks_us(phase_us: int, interval_us: int, time_us: int) -> int:
    """Return how long, in µs, a node checks the channel in [0, ``time_us``) if it hears no frame.

    The node first wakes up at ``phase_us``, then every ``interval_us``. Each wake-up takes CHECKS_US.
    """
    passed_us = time_us - phase_us
    if passed_us <= 0:
        return 0
    return passed_us // interval_us * CHECKS_US + min(passed_us % interval_us, CHECKS_US)


def checks_between_us(phase_us: int, interval_us: int, start_us: int, end_us: int) -> int:
    """Return how long, in µs, a node checks the channel in [``start_us``, ``end_us``) if it hears no frame.

    The node first wakes up at ``phase_us``, then every ``interval_us``. The result is 0 for a radio that never sleeps
    (an interval of 0).
    """
    if interval_us == 0:
        return 0
    return checks_us(phase_us, interval_us, end_us) - checks_us(phase_us, interval_us, start_us)
