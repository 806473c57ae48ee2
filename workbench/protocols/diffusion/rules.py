"""Rules of TinyDiffusion as functions of plain numbers, which the node and its fast twin share.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.protocols.contract import NOBODY
from workbench.protocols.subscriptions import SECOND_US

LONGEST_EXPIRATION_S = 0xFFFF  # the largest value of an interest's field
FOREVER_US = 1 << 62
# If a sink hears no neighbor forward its interest, it sends it again after the first time plus a random part of the
# second. Without the random part, sinks whose interests collide once would collide each time.
REPEAT_AFTER_US = SECOND_US // 2
REPEAT_WITHIN_US = SECOND_US
# Copies of a data message on several gradients meet again within this time, or never.
COPIES_MEET_US = SECOND_US
# A data frame that was not acknowledged is sent again at a random time within RETRY_WITHIN_US, as frames that collided
# would collide again, at most MAX_RETRIES times per message. At most MAX_WAITING frames wait; others are sent at once.
RETRY_WITHIN_US = SECOND_US
MAX_RETRIES = 3
MAX_WAITING = 4


def next_round(round_):
    """Return the round of an interest's next refresh, counted modulo 256 (A15)."""
    return (round_ + 1) & 0xFF


def is_stale(round_, known_round):
    """Return whether a round is older than the known one, by the shorter distance modulo 256 (A15)."""
    return (round_ - known_round) & 0xFF >= 128


def known_for_us(refresh_s, gradient_lifetime_s):
    """Return how long an interest's round is remembered after it was heard (µs): two refreshes.

    The time is shorter than 128 rounds, as rounds further apart cannot be compared modulo 256.
    """
    return int((2 * refresh_s if refresh_s else gradient_lifetime_s) * SECOND_US)


def is_path_of_round(reinforced_by, reinforced_in, sequence, round_):
    """Return whether a gradient's reinforcement belongs to this round of the interest ``sequence``.

    ``reinforced_by``: the reinforcement's number, below 0 without a reinforcement; ``reinforced_in``: its round. A
    node numbers all its messages, so a reinforcement of an interest has a higher number than the interest.
    """
    return reinforced_by > sequence and reinforced_in == round_


def lifetime_s(refresh_s, gradient_lifetime_s):
    """Return the longest lifetime of a gradient (s); without refreshes, the largest value of the message's field."""
    return int(gradient_lifetime_s) if refresh_s else LONGEST_EXPIRATION_S


def expiration_s(now, ends_us, longest_s):
    """Return the lifetime of an interest's gradients (s), from 1 to ``longest_s``.

    ``ends_us``: when the subscription ends.
    """
    return max(1, min(longest_s, (ends_us - now + SECOND_US - 1) // SECOND_US))


def hops_taken(first_ttl, ttl):
    """Return the number of hops of a message that was first sent with ``first_ttl`` and arrives with ``ttl``."""
    return first_ttl - ttl + 1


def gradient_to_replace(gradients, count, sink, is_reinforced):
    """Return the index of the gradient that a new one towards ``sink`` replaces in a full list of ``count`` (A17).

    ``NOBODY`` means that the new gradient is dropped. A sink's only gradient stays while another sink has several.
    ``is_reinforced``: whether the new gradient comes from a reinforcement.
    """
    if not is_reinforced:
        for i in range(count):
            if gradients[i].sink == sink:
                return NOBODY
    for i in range(count - 1, -1, -1):
        other_sink = gradients[i].sink
        if other_sink == sink:
            return i
        for j in range(i):
            if gradients[j].sink == other_sink:
                return i
    # If the list left out a reinforced gradient, the reinforced path would end here or turn back on itself.
    return count - 1 if is_reinforced else NOBODY


def may_reinforce(messages, reinforce_after, started, max_reinforcements):
    """Return whether to reinforce the path to a source that has sent ``messages`` new messages.

    ``reinforce_after``: the number of messages that are needed, 0 for never; ``started``: how many reinforcements were
    started in this round.
    """
    return 0 < reinforce_after <= messages and started < max_reinforcements


def is_better_hop(count, heads, neighbor, best_count, best_heads, best):
    """Return whether data should go to a neighbor rather than to the ``best`` so far (``NOBODY``: not chosen yet).

    ``count``: number of sinks whose next hop the neighbor may be; ``heads``: number of these sinks whose first gradient
    leads to it. Of equal neighbors the one with the lowest address is better.
    """
    if best == NOBODY or count != best_count:
        return best == NOBODY or count > best_count
    return heads > best_heads if heads != best_heads else neighbor < best


def has_circled(ttl, first_ttl):
    """Return whether a copy of a known message has passed this node before: a circle has at least three hops."""
    return ttl <= first_ttl - 3


def may_retry(retries):
    """Return whether a message that was sent again ``retries`` times may be sent again."""
    return retries < MAX_RETRIES


def may_explore(is_full, oldest_us, now):
    """Return whether data may use more gradients than the first: only if the node recognizes all returning copies.

    ``is_full``: whether the duplicate list is full; ``oldest_us``: when the oldest message in it came.
    """
    return not is_full or now - oldest_us >= COPIES_MEET_US


def is_black(was_black, inbound, outbound, blacklist_loss, blacklist_hysteresis):
    """Return whether a neighbor whose link has these delivery ratios belongs on the black list (A27)."""
    loss = 1.0 - inbound * outbound
    return loss >= blacklist_loss - blacklist_hysteresis if was_black else loss > blacklist_loss
