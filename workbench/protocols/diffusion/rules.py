"""The rules of diffusion on plain numbers: the node calls them, and its fast twin the same functions.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.protocols.contract import NOBODY
from workbench.protocols.subscriptions import SECOND_US

LONGEST_EXPIRATION_S = 0xFFFF  # the most that an interest's field holds
FOREVER_US = 1 << 62
# A sink whose interest nobody passes on sends it again so much later, and up to so much more by chance: sinks whose
# interests collide once would collide each time.
REPEAT_AFTER_US = SECOND_US // 2
REPEAT_WITHIN_US = SECOND_US
# Copies of a data message that several gradients carry meet again within this time, or they never do.
COPIES_MEET_US = SECOND_US
# The radio has given a data frame up: the node sends the message again within this time, at random, as frames that were
# lost to each other would be lost again. It does so this often for a message. At most so many frames wait for that;
# further ones are sent again at once.
RETRY_WITHIN_US = SECOND_US
MAX_RETRIES = 3
MAX_WAITING = 4


def next_round(round_):
    """The round of an interest's next refresh; they are counted modulo 256 (A15)."""
    return (round_ + 1) & 0xFF


def is_stale(round_, known):
    """Whether a round is older than the one that is known, by the shorter way around (A15)."""
    return (round_ - known) & 0xFF >= 128


def known_for_us(refresh_s, gradient_lifetime_s):
    """How long an interest's round is known after it was heard: two refreshes, and never as long as 128 rounds take.

    Rounds are compared by the shorter way around, which says nothing about one from before a long outage.
    """
    return int((2 * refresh_s if refresh_s else gradient_lifetime_s) * SECOND_US)


def is_path_of_round(wave, wave_round, sequence, round_):
    """Whether a gradient's reinforcement (number and round; below 0: none) is of this round of interest ``sequence``.

    A node numbers what it sends: a reinforcement of an interest has a higher number than the interest.
    """
    return wave > sequence and wave_round == round_


def lifetime_s(refresh_s, gradient_lifetime_s):
    """The longest that a gradient may live (s): one that is never refreshed as long as its field can say."""
    return int(gradient_lifetime_s) if refresh_s else LONGEST_EXPIRATION_S


def expiration_s(now, ends_us, longest_s):
    """How long the gradients of an interest may live whose subscription ends at ``ends_us``: 1 to ``longest_s``."""
    return max(1, min(longest_s, (ends_us - now + SECOND_US - 1) // SECOND_US))


def hops_taken(first_ttl, ttl):
    """The hops that a message has come which began with ``first_ttl`` and arrives with ``ttl``."""
    return first_ttl - ttl + 1


def replaced(gradients, count, sink, is_reinforced):
    """Which gradient of a full list of ``count`` makes room for one towards ``sink``; NOBODY: the newcomer goes (A17).

    A sink's only gradient stays while another sink has a spare one. ``is_reinforced``: the newcomer is.
    """
    if not is_reinforced:
        for i in range(count):
            if gradients[i].sink == sink:
                return NOBODY
    for i in range(count - 1, -1, -1):
        other = gradients[i].sink
        if other == sink:
            return i
        for j in range(i):
            if gradients[j].sink == other:
                return i
    # A reinforced path that a full list left out would end here, or turn back on itself.
    return count - 1 if is_reinforced else NOBODY


def may_reinforce(messages, reinforce_after, started, max_reinforcements):
    """Whether a source's path is reinforced after so many new messages (0: never), ``started`` in this round."""
    return 0 < reinforce_after <= messages and started < max_reinforcements


def is_better_hop(count, heads, neighbor, best_count, best_heads, best):
    """Return whether data should go to a neighbor rather than to the ``best`` so far (NOBODY: none yet).

    ``count``: of how many sinks' paths the neighbor may be the next hop; ``heads``: for how many of these it is the
    first gradient. Of equal ones the lowest address goes first.
    """
    if best == NOBODY or count != best_count:
        return best == NOBODY or count > best_count
    return heads > best_heads if heads != best_heads else neighbor < best


def has_circled(ttl, first_ttl):
    """Return whether a copy of a known message has been here before: no circle is shorter than three hops."""
    return ttl <= first_ttl - 3


def may_retry(retries):
    """Return whether a message that was sent again so often may be sent again once more."""
    return retries < MAX_RETRIES


def may_explore(is_full, oldest_us, now):
    """Whether data may go along more gradients than the head: if no copy can come back that the node has forgotten.

    ``oldest_us``: when the node took in the oldest data message that a full duplicate list still has.
    """
    return not is_full or now - oldest_us >= COPIES_MEET_US


def is_black(was_black, inbound, outbound, blacklist_loss, blacklist_hysteresis):
    """Whether a neighbor is on the black list, now that its link has these delivery ratios (A27)."""
    loss = 1.0 - inbound * outbound
    return loss >= blacklist_loss - blacklist_hysteresis if was_black else loss > blacklist_loss
