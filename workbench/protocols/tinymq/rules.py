"""TinyMQ's decision rules on plain numbers: the node calls them, and its fast twin compiles the same functions.

The fast twin (`fast/`) is the fast engine's version of the node. The modules `overlay`, `unicast`, `queries` and `node`
and their counterparts in `fast/` call these rules. So a rule is changed here for both; only a new argument needs
changes in both callers. Rules take and return numbers, and a path as a record of numbers, because Numba compiles
neither text nor None here.

This file runs on a mote too (MicroPython's subset of Python).
"""

from collections import namedtuple

from workbench.protocols.contract import NOBODY
from workbench.protocols.tinymq.wire import LEASE_FOREVER_S, LONGEST_KEY, U8

SECOND_US = 1000000
FIRST_REPEAT_US = 250000  # pause before an info that announced a change is repeated for the first time
HELLO_AFTER = 1.5  # longest pause between two infos, in units of info_s: a little more than an epoch
PATIENCE = 3  # factor for the number of retransmissions to a neighbor that is still heard
MOST_AT_ONCE = 7  # unicast frames that one call of a node sends; eight frames with an acknowledgement or an info
MOST_IN_FLIGHT = 12  # unicast frames in flight, in all and per neighbor: with their acks they take less than retry_ms
PACE_US = 20000  # pause before the remaining frames are sent: the airtime of some frames
NAMED_AGAIN = 3  # number of infos that name a neighbor which has named this node: two of them may be lost
MOST_NAMED = 16  # neighbors named by an info that announces a change or repeats such an info
FEW_NAMED = 4  # neighbors named by any other info
MOST_DOUBLINGS = 3  # how often retry_ms is doubled
MOST_IN_RADIO = 1  # unicast frames in a radio that reports outcomes: the channel sets the pace
MOST_PAUSE_DOUBLINGS = 6  # how often the pause after unanswered joins to a neighbor is doubled

# The settings as integers (times in µs, the lease in s). If refresh_us is 0, queries are sent once.
Times = namedtuple(
    "Times",
    (
        "info_us",
        "lost_after_us",
        "gather_us",
        "settle_us",
        "refresh_us",
        "longest_lease_s",
        "retry_us",
        "grant_wait_us",
    ),
)


def times(settings):
    """Return the `Times` that follow from a protocol's settings: intervals in µs, and the longest lease in s."""
    retry_us = int(settings.retry_ms * 1000)
    return Times(
        int(settings.info_s * SECOND_US),
        int(settings.info_s * settings.lost_after * SECOND_US),
        int(settings.gather_ms * 1000),
        int(settings.settle_s * SECOND_US),
        int(settings.refresh_s * SECOND_US),
        int(settings.lease_s) if settings.refresh_s else LEASE_FOREVER_S,
        retry_us,
        # A join and its grant, each sent as often as allowed, each time after the longest wait.
        retry_us * (1 << MOST_DOUBLINGS) * (2 + settings.retries),
    )


# The parent and the key that it grants


def may_be_parent(epoch, newest_epoch, is_child, key_length):
    """Return whether a neighbor with a key in a tree may become this node's parent there.

    The neighbor must not be a child of this node. Its key, of ``key_length`` bits, must be shorter than LONGEST_KEY.
    Its epoch must be newer than ``newest_epoch``, the newest epoch that this node has had in the tree. An epoch is a
    counter of the root. It reaches a node's descendants through the node, so no descendant has a newer epoch than this
    node. Therefore no cycle can arise.
    """
    return epoch > newest_epoch and not is_child and key_length < LONGEST_KEY


def is_better_parent(since_us, address, best_since_us, best_address):
    """Return whether a neighbor is a better candidate for the parent than the best candidate so far.

    ``since_us``, ``best_since_us``: when each candidate was first heard in its tree, in µs. The earlier one is better;
    in a tie, the lower address decides.
    """
    return since_us < best_since_us or (since_us == best_since_us and address < best_address)


def join_pause_us(failed, info_us):
    """Return how many µs a node waits before it sends a neighbor another join, a request to become its child.

    ``failed``: the number of joins in a row (1 or more) that the neighbor has not answered; ``info_us``: the result for
    one such join. Each further one doubles the result, up to ``MOST_PAUSE_DOUBLINGS`` times.
    """
    return info_us << min(failed - 1, MOST_PAUSE_DOUBLINGS)


def longest_slot(key_length):
    """Return the highest slot (a child's number) that gives the child a key of at most LONGEST_KEY bits.

    ``key_length``: the length of the parent's key in bits. The result is negative if every child's key would be too
    long.
    """
    return LONGEST_KEY - key_length - 1


# Paths to the roots


def is_better_path(known, is_broken, epoch, hops, neighbor, is_awaited):
    """Return whether the path to a root that a neighbor offers replaces a node's current path to that root.

    ``epoch``, ``hops``, ``neighbor``: the offered path: its epoch (the root's counter), its length, and its next hop.
    ``known``: the current path, a record of epoch, hops and next_hop. A root's path to itself has the next hop
    `NOBODY`, and is never replaced. ``is_broken``: whether the next hop of ``known`` is lost. ``is_awaited``: whether
    the node waits for a shorter path of an older epoch (`is_late`). An offered path

        of an older epoch    does not replace the current path
        of the same epoch    replaces an intact path if it is shorter, or equally long from a neighbor with a lower
                             address than the next hop
        of a newer epoch     replaces a broken path, and a path that is longer than the offered one. It replaces any
                             other path only if ``is_awaited`` is False, and the offer comes from the current next hop
                             or is equally long

    As in DSDV, next hops never form a loop.
    """
    if known.next_hop == NOBODY or epoch < known.epoch:
        return False
    if epoch == known.epoch:
        return not is_broken and (hops < known.hops or (hops == known.hops and neighbor < known.next_hop))
    if is_broken or hops < known.hops:
        return True
    return not is_awaited and (neighbor == known.next_hop or hops == known.hops)


def is_late(known, epoch, hops):
    """Return whether the path that a neighbor offers is late: shorter than the current path, but of an older epoch.

    ``known``: the current path, a record of epoch (the root's counter), hops and risen_epoch (the epoch in which its
    hops last increased). ``epoch``, ``hops``: the offered path. The result is False if ``epoch`` is older than
    risen_epoch. The node may not take a late path at once, because a loop could form. It waits until a neighbor offers
    the path again with the epoch of ``known``.
    """
    return known.risen_epoch <= epoch < known.epoch and hops < known.hops


def is_awaited(late_us, now, lost_after_us):
    """Return whether a node must wait for a late path (`is_late`), because a neighbor offered one recently.

    ``late_us``: the time in µs of the last offer, negative before the first offer; ``lost_after_us``: how long an offer
    counts as recent, in µs.
    """
    return late_us >= 0 and not is_silent(late_us, now, lost_after_us)


# Infos, and neighbors that send none


def is_silent(heard_us, now, lost_after_us):
    """Return whether a neighbor counts as lost, because it was last heard more than ``lost_after_us`` µs ago.

    ``heard_us``: the time in µs when the neighbor was last heard.
    """
    return now - heard_us > lost_after_us


def is_in_doubt(heard_us, now, lost_after_us):
    """Return whether to probe a neighbor that a node needs: it was silent for more than half of ``lost_after_us``.

    ``heard_us``: when the neighbor was last heard, in µs; ``lost_after_us``: the silence after which a neighbor is
    lost, in µs.
    """
    return is_silent(heard_us, now, lost_after_us // 2)


def is_cut_off(epoch_us, now, lost_after_us):
    """Return whether a tree's root counts as out of reach: no new epoch has come for twice ``lost_after_us`` µs.

    An epoch is a counter that the root increments. ``epoch_us``: when the newest epoch arrived, in µs.
    """
    return now - epoch_us > 2 * lost_after_us


def is_info_due(sent_us, now, info_us):
    """Return whether a node must send an info (status broadcast), because the last one was sent too long ago.

    "Too long" is more than `HELLO_AFTER` times ``info_us`` µs. ``sent_us``: when the last info was sent, in µs.
    """
    return now - sent_us > info_us * HELLO_AFTER


def is_repeated(after_us, info_us):
    """Return whether a node repeats its last info (status broadcast) after a pause of ``after_us`` µs.

    ``after_us`` is 0 if the info announced no change: then the result is False. The caller doubles the pause after each
    repetition, and the repetitions end when the pause reaches ``info_us`` µs, the period of infos.
    """
    return 0 < after_us < info_us


def most_named(repeat_after_us, info_us):
    """Return how many neighbors an info (a node's status broadcast) may name: more if the info announces a change.

    ``repeat_after_us``: the pause in µs before the info is repeated, 0 if it announces no change; ``info_us``: the
    period of infos in µs. If ``info_us`` is 0, infos are not periodic, and the result is 0.
    """
    if not info_us:
        return 0
    return MOST_NAMED if repeat_after_us else FEW_NAMED


def remaining_namings(left, named_us, now, lost_after_us):
    """Return how many of the next infos (status broadcasts) must name a neighbor that has just named this node.

    A neighbor that finds its address in an info of this node knows that this node hears it. If this node has not named
    the neighbor for more than half of ``lost_after_us``, the result is `NAMED_AGAIN`. Otherwise the neighbor may just
    have answered an info that named it, so no further infos are added, and the result is ``left``.

    ``left``: the number of infos that must still name the neighbor; ``named_us``: time in µs when this node last named
    it, negative if never; ``lost_after_us``: the silence in µs after which a neighbor is lost.
    """
    return NAMED_AGAIN if named_us < 0 or is_in_doubt(named_us, now, lost_after_us) else left


# Frames to one neighbor


def retry_wait_us(retry_us, sent):
    """Return how many µs a frame waits for its acknowledgement after ``sent`` earlier transmissions.

    ``retry_us``: the result for a frame's first transmission (``sent`` 0). Each further one doubles it, up to
    ``MOST_DOUBLINGS`` times. The caller adds a random part of up to one half of the result.
    """
    return retry_us << min(sent, MOST_DOUBLINGS)


def longest_wait_us(retry_us):
    """Return the largest result of `retry_wait_us`: the longest time in µs before a frame is sent again.

    This is without the random part, up to one half of the result, that the caller adds.
    """
    return retry_us << MOST_DOUBLINGS


def most_frames(reports, in_flight):
    """Return how many unicast frames a node may send for one input while ``in_flight`` frames are in flight.

    An input is a received frame, a radio's report, a wake-up or a request of the application. ``reports``: whether the
    radio reports if a frame arrived. Then a frame is in flight until its report comes. Without reports, a frame is in
    flight until its acknowledgement comes, or the wait after its first transmission ends.
    """
    if reports:
        return max(0, MOST_IN_RADIO - in_flight)
    return max(0, min(MOST_AT_ONCE, MOST_IN_FLIGHT - in_flight))


def has_room_to_forward(pending, capacity, is_event):
    """Return whether a node with ``pending`` pending frames accepts an event or a notification to forward.

    ``capacity``: the largest number of pending frames. A notification is accepted while more than a quarter of the
    capacity is free, an event (``is_event``) while more than half is free. The reason is that an event may cause a
    notification for each sink with a stored query.
    """
    return pending < capacity - capacity // (2 if is_event else 4)


def is_given_up(sent, retries, is_heard):
    """Return whether a node stops sending a frame that it has sent ``sent`` times without an answer.

    ``retries``: how many retransmissions are allowed. ``is_heard``: whether the neighbor was heard since the first
    transmission, and is known to hear this node. Then the link is poor but not gone, so `PATIENCE` times as many
    retransmissions are allowed.
    """
    return sent > retries * (PATIENCE if is_heard else 1)


# Queries


def next_round(round_):
    """Return the round of a query (number of its transmission, modulo 256) that follows ``round_``."""
    return (round_ + 1) & U8


def is_newer_round(round_, known):
    """Return whether ``round_`` is 1 to 127 rounds after ``known``, modulo 256.

    Both are rounds of a query, the numbers of its transmissions by the sink.
    """
    return 0 < (round_ - known) & U8 < 128


def lease_left_s(ends_us, now):
    """Return the time from ``now`` to ``ends_us`` (both in µs) in whole seconds, rounded up, as the rest of a lease.

    The result is at least 1, because a query with a lease of 0 ends the query.
    """
    return max(1, -((now - ends_us) // SECOND_US))


def asked_lease_s(longest_s, expires_us, now):
    """Return the lease in seconds to request for a subscription that ends at ``expires_us`` (in µs).

    The lease lasts until the subscription ends, but at most ``longest_s`` seconds; later refreshes extend it.
    """
    return min(longest_s, LEASE_FOREVER_S - 1, lease_left_s(expires_us, now))


def is_too_old(since_us, now, lost_after_us):
    """Return whether a message, waiting since the time ``since_us``, has waited for more than ``lost_after_us`` µs.

    Returns False if ``lost_after_us`` is 0: then no wait is too long.
    """
    return lost_after_us > 0 and now - since_us > lost_after_us


# The key space


WIDEST_LOGGED = 62  # bits of the widest key space whose zones are logged: a trace has 64-bit integers


def last_string(first, length, key_bits):
    """Return the last of the strings of ``key_bits`` bits that begin with a key, as an integer.

    ``first``: the first of these strings, as an integer; ``length``: the length of the key in bits.
    """
    return first + (1 << (key_bits - length)) - 1
