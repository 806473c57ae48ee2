"""TinyMQ's rules on plain numbers, each written once: the node calls them, and the fast twin compiles them as they are.

A rule is changed here: `overlay.py`, `unicast.py`, `queries.py` and `node.py` call it, and so do the files of the same
names in `fast/`. Only a rule that needs another argument has to be changed in both of its callers too. A rule takes and
returns numbers (a way to a root has three of them), and no text and no None: numba could not compile it.

This file runs on a mote too (MicroPython's subset of Python).
"""

from collections import namedtuple

from workbench.protocols.contract import NOBODY
from workbench.protocols.tinymq.wire import LEASE_FOREVER_S, LONGEST_KEY, U8

SECOND_US = 1000000
FIRST_REPEAT_US = 250000  # after an info that told of a change
HELLO_AFTER = 1.5  # info_s without an info: a little more than the time between two epochs
PATIENCE = 3  # times as many frames to a neighbor that is heard
MOST_AT_ONCE = 7  # unicast frames of one call of a node; eight frames with an acknowledgement or an info
MOST_ON_WAY = 12  # unicast frames of a node, to all and to each neighbor: they take less than retry_ms, acks included
PACE_US = 20000  # until what is left is sent: some frames' airtime
NAMED_AGAIN = 3  # infos that name a neighbor which has named this node: two of them may be lost
MOST_NAMED = 16  # neighbors that an info names if it tells of a change, or repeats one that did
FEW_NAMED = 4  # and if it tells of none
MOST_DOUBLINGS = 3  # of retry_ms
MOST_IN_RADIO = 1  # unicast frames of a node in a radio that reports their outcomes: the channel sets the pace
MOST_PAUSE_DOUBLINGS = 6  # of the pause after a join that a neighbor did not answer

# The settings as nodes compute with them: integers. refresh_us 0: queries are sent once.
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
    """The `Times` of a protocol's settings."""
    retry_us = int(settings.retry_ms * 1000)
    return Times(
        int(settings.info_s * SECOND_US),
        int(settings.info_s * settings.lost_after * SECOND_US),
        int(settings.gather_ms * 1000),
        int(settings.settle_s * SECOND_US),
        int(settings.refresh_s * SECOND_US),
        int(settings.lease_s) if settings.refresh_s else LEASE_FOREVER_S,
        retry_us,
        # A join and its grant, each sent as often as may be, and each waiting as long as the longest time.
        retry_us * (1 << MOST_DOUBLINGS) * (2 + settings.retries),
    )


# The parent, and the key that it gives


def may_be_parent(epoch, newest_epoch, is_child, key_length):
    """Return whether a neighbor with a key may become the parent.

    ``newest_epoch``: the newest epoch that this node has had in that tree. The nodes below this node have no newer
    epoch, as epochs come through this node, so no cycle can arise. ``is_child``: the neighbor names this node as its
    parent.
    """
    return epoch > newest_epoch and not is_child and key_length < LONGEST_KEY


def is_better_parent(since_us, address, best_since_us, best_address):
    """Return whether a candidate was heard in its tree before the best candidate so far. Ties: the lower address."""
    return since_us < best_since_us or (since_us == best_since_us and address < best_address)


def join_pause_us(failed, info_us):
    """Return how long a node leaves a neighbor alone that has not answered ``failed`` joins in a row."""
    return info_us << min(failed - 1, MOST_PAUSE_DOUBLINGS)


def longest_slot(key_length):
    """The last slot below a key of that length whose own key is not too long; negative if there is no slot."""
    return LONGEST_KEY - key_length - 1


# Ways to the roots


def is_better_way(known, is_broken, epoch, hops, neighbor, is_awaited):
    """Whether a way that a neighbor offers to a root replaces the one that is ``known``: its epoch, hops and next_hop.

    The next hop of a root itself is NOBODY. ``is_broken``: that next hop is lost; ``is_awaited``: another neighbor's
    shorter way (`is_late`) has still to come to this epoch. As in DSDV, equal or newer epochs and shorter ways alone
    never form a loop.
    """
    if known.next_hop == NOBODY or epoch < known.epoch:
        return False
    if epoch == known.epoch:
        return not is_broken and (hops < known.hops or (hops == known.hops and neighbor < known.next_hop))
    if is_broken or hops < known.hops:
        return True
    return not is_awaited and (neighbor == known.next_hop or hops == known.hops)


def is_late(known, epoch, hops):
    """Whether a way of an older epoch is shorter than any that this node had in that epoch or has had since.

    ``known``: its epoch, its hops, and the epoch in which they last rose. To take such a way could form a loop. But it
    is better than the known way as soon as it comes to the same epoch, so this node waits for that with its own.
    """
    return known.risen_epoch <= epoch < known.epoch and hops < known.hops


def is_awaited(late_us, now, lost_after_us):
    """Whether a late way was offered not long ago; ``late_us``: when it last was, negative if never."""
    return late_us >= 0 and not is_silent(late_us, now, lost_after_us)


# Infos, and what their absence means


def is_silent(heard_us, now, lost_after_us):
    """Whether so much time has passed that a neighbor, or a way, counts as lost."""
    return now - heard_us > lost_after_us


def is_in_doubt(heard_us, now, lost_after_us):
    """Whether a neighbor that this node needs has been silent for so long that it is asked for an answer."""
    return is_silent(heard_us, now, lost_after_us // 2)


def is_cut_off(epoch_us, now, lost_after_us):
    """Whether a tree has brought no new epoch for so long that its root must be out of reach."""
    return now - epoch_us > 2 * lost_after_us


def is_info_due(sent_us, now, info_us):
    """Whether a node's last info is so old that neighbors need another one."""
    return now - sent_us > info_us * HELLO_AFTER


def is_repeated(after_us, info_us):
    """Whether an info is to be sent again ``after_us`` after it; 0: it told of no change."""
    return 0 < after_us < info_us


def most_named(repeat_after_us, info_us):
    """How many neighbors an info names; ``repeat_after_us``: as in `is_repeated`."""
    if not info_us:
        return 0
    return MOST_NAMED if repeat_after_us else FEW_NAMED


def namings_owed(owed, named_us, now, lost_after_us):
    """How many infos still are to name a neighbor that has just named this node; ``owed``: how many were before.

    It may not know that it is heard. But its name may be an answer as well: who was named not long ago is owed no more.
    """
    return NAMED_AGAIN if named_us < 0 or is_in_doubt(named_us, now, lost_after_us) else owed


# Frames to one neighbor


def retry_wait_us(retry_us, sent):
    """How long a frame that was sent so often before waits for its acknowledgement; a random half of it is added."""
    return retry_us << min(sent, MOST_DOUBLINGS)


def longest_wait_us(retry_us):
    """Return the longest time that a frame waits before it is sent again; a random half of it is added."""
    return retry_us << MOST_DOUBLINGS


def most_frames(reports, on_way):
    """Return how many unicast frames a call may hand to the radio while ``on_way`` frames are on their way.

    ``reports``: whether the radio reports outcomes. A frame is on its way until its report comes, or without reports
    until its acknowledgement comes or is late for the first time.
    """
    if reports:
        return max(0, MOST_IN_RADIO - on_way)
    return max(0, min(MOST_AT_ONCE, MOST_ON_WAY - on_way))


def may_take_more(pending, most, is_event):
    """Return whether a node with ``pending`` frames of ``most`` takes a message that it would have to send on.

    ``is_event``: the message may become a notification for each sink here.
    """
    return pending < most - most // (2 if is_event else 4)


def is_given_up(sent, retries, is_heard):
    """Whether a frame was sent often enough.

    ``is_heard``: the neighbor was heard meanwhile and is known to hear this node, so the link is poor but not gone.
    """
    return sent > retries * (PATIENCE if is_heard else 1)


# Queries


def next_round(round_):
    """The round after another, modulo 256."""
    return (round_ + 1) & U8


def is_newer_round(round_, known):
    """Whether a round (modulo 256) comes after another."""
    return 0 < (round_ - known) & U8 < 128


def lease_left_s(ends_us, now):
    """What is left of a lease in whole seconds: 0 would end the query."""
    return max(1, -((now - ends_us) // SECOND_US))


def asked_lease_s(longest_s, expires_us, now):
    """The lease that a subscription asks for: to its end, or as long as one that is refreshed should last."""
    return min(longest_s, LEASE_FOREVER_S - 1, lease_left_s(expires_us, now))


def is_too_old(since_us, now, lost_after_us):
    """Whether a message has waited in vain; with ``info_s=0`` it waits for ever."""
    return lost_after_us > 0 and now - since_us > lost_after_us


# The key space


WIDEST_LOGGED = 62  # bits of the key spaces whose zones are logged: a trace has 64-bit integers


def last_string(first, length, key_bits):
    """The last string that a key of ``length`` bits is a prefix of; ``first`` is the first one."""
    return first + (1 << (key_bits - length)) - 1
