"""Decisions of TinyDiffusion as functions of plain numbers, shared by the node and its version for the fast engine.

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
# If copies of a data message on several gradients meet again at a node, they do so within this time.
COPIES_MEET_US = SECOND_US
# A data frame that was not acknowledged is sent again at a random time within RETRY_WITHIN_US, as frames that collided
# would collide again, at most MAX_RETRIES times per message. At most MAX_WAITING frames wait; others are sent at once.
RETRY_WITHIN_US = SECOND_US
MAX_RETRIES = 3
MAX_WAITING = 4


def next_round(round_):
    """Return the round that follows ``round_``, modulo 256; each refresh of an interest begins a new round."""
    return (round_ + 1) & 0xFF


def is_older_round(round_, known_round):
    """Return whether ``round_`` of an interest is older than ``known_round``.

    Rounds are compared modulo 256: ``round_`` is older if it precedes ``known_round`` by 1 to 128. See A15 in the
    docstring of `workbench.protocols.diffusion`.
    """
    return (round_ - known_round) & 0xFF >= 128


def known_for_us(refresh_s, gradient_lifetime_s):
    """Return how long after hearing an interest a node remembers the interest's round (µs).

    The time is two refreshes or, without refreshes, the lifetime of a gradient. This is shorter than 128 rounds,
    the largest distance at which rounds modulo 256 can be compared.
    """
    return int((2 * refresh_s if refresh_s else gradient_lifetime_s) * SECOND_US)


def is_path_of_round(reinforced_by, reinforced_in, sequence, round_):
    """Return whether a gradient was reinforced in round ``round_`` of an interest.

    ``sequence``: the interest's sequence number; ``reinforced_by``: sequence number of the reinforcement that set the
    gradient, below 0 without one; ``reinforced_in``: the reinforcement's round. The reinforcement must also have a
    higher sequence number than the interest, as a sink numbers all its messages in one sequence.
    """
    return reinforced_by > sequence and reinforced_in == round_


def lifetime_s(refresh_s, gradient_lifetime_s):
    """Return the longest lifetime of a gradient (s): ``gradient_lifetime_s``, or 65535 without refreshes.

    ``refresh_s``: time between refreshes of an interest (s), 0 for no refreshes. 65535 is the largest value of an
    interest's expiration field.
    """
    return int(gradient_lifetime_s) if refresh_s else LONGEST_EXPIRATION_S


def expiration_s(now, expires_us, lifetime_s):
    """Return the lifetime of an interest's gradients (s): the time until its subscription ends, rounded up.

    The result is at least 1 and at most ``lifetime_s``. ``now``, ``expires_us``: the current time and the end of the
    subscription (µs).
    """
    return max(1, min(lifetime_s, (expires_us - now + SECOND_US - 1) // SECOND_US))


def hops_taken(first_ttl, ttl):
    """Return the number of hops that a message has taken.

    ``first_ttl``: the ttl with which its source sent the message; ``ttl``: the ttl with which the message arrived. Each
    relay lowers the ttl by 1.
    """
    return first_ttl - ttl + 1


def gradient_to_replace(gradients, count, sink, is_reinforced):
    """Return the index of the gradient that a new gradient for ``sink`` replaces.

    The result is ``NOBODY`` if the new gradient is to be dropped instead. ``gradients``: a full list, with ``count``
    elements. A sink's only gradient is kept while another sink has several. ``is_reinforced``: whether a reinforcement
    sets the new gradient. See A17 in interest_cache.py.
    """
    if not is_reinforced:
        for index in range(count):
            if gradients[index].sink == sink:
                return NOBODY
    for index in range(count - 1, -1, -1):
        other_sink = gradients[index].sink
        if other_sink == sink:
            return index
        for other_index in range(index):
            if gradients[other_index].sink == other_sink:
                return index
    # If the list left out a reinforced gradient, the reinforced path would end here or turn back on itself.
    return count - 1 if is_reinforced else NOBODY


def may_reinforce(messages, reinforce_after, reinforcements, max_reinforcements):
    """Return whether a sink may reinforce the path to a source from which it has received ``messages`` new messages.

    ``reinforce_after``: how many messages the sink waits for, 0 to reinforce no path; ``reinforcements``: how many
    reinforcements the sink has sent in this round of its interest.
    """
    return 0 < reinforce_after <= messages and reinforcements < max_reinforcements


def is_better_hop(count, heads, neighbor, best_count, best_heads, best):
    """Return whether ``neighbor`` is a better next hop for data than ``best``, the best one so far or ``NOBODY``.

    ``count``: number of sinks for which ``neighbor`` may be the next hop; ``heads``: number of these sinks whose first
    gradient leads to the neighbor; ``best_count``, ``best_heads``: these two numbers for ``best``. The larger count is
    better, then more heads, then the lower address.
    """
    if best == NOBODY or count != best_count:
        return best == NOBODY or count > best_count
    return heads > best_heads if heads != best_heads else neighbor < best


def has_circled(ttl, first_ttl):
    """Return whether a copy of a known message has come back to this node in a circle.

    A circle has at least three hops. So the ttl of such a copy is at least 3 below ``first_ttl``, the ttl of the first
    copy.
    """
    return ttl <= first_ttl - 3


def may_retry(retries):
    """Return whether a node that has already repeated a message ``retries`` times may repeat it once more."""
    return retries < MAX_RETRIES


def may_explore(is_full, received_us, now):
    """Return whether a node may send data along more gradients than a sink's first one.

    Copies may then return to the node, so it must remember messages long enough to recognize them. ``is_full``: whether
    its duplicate list is full; ``received_us``: when the oldest message in that list arrived (µs).
    """
    return not is_full or now - received_us >= COPIES_MEET_US


def is_black(was_black, inbound, outbound, blacklist_loss, blacklist_hysteresis):
    """Return whether a neighbor belongs on the black list, by the two delivery ratios of the link to the neighbor.

    ``was_black``: whether the neighbor is on the list now. A neighbor is put on the list if the two-way loss is above
    ``blacklist_loss``. It is taken off if the loss is below ``blacklist_loss`` - ``blacklist_hysteresis``. See A27 in
    the docstring of `workbench.protocols.diffusion`.
    """
    loss = 1.0 - inbound * outbound
    return loss >= blacklist_loss - blacklist_hysteresis if was_black else loss > blacklist_loss
