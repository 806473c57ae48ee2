"""What a DPS node decides by, on plain numbers: constants, times, and rules on revisions, loops and waiting.

A node and its fast twin call the same functions, which numba compiles as they are, so they take and return numbers
only. Times are in microseconds. Revisions and sequence numbers count from 1. ``flags`` are those of a link's message.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from workbench.draws import mix64
from workbench.protocols.dps.automaton import ACTIVE, LINKING, LOOP, LOST, MUTED, NO_LOOP, NOTHING, OVERDUE, UNMUTING
from workbench.protocols.dps.wire import DELTA, MUTE, SAK_REQUESTED, UNMUTE

SECOND_US = 1000000
MOST_HOPS = 0xFFFF  # what the field holds
FEWEST_TO_CLEAR = 64  # entries of the history
MOST_STRANGERS = 16  # of one publication's entry in the history: the way back needs one
# On a radio that a crowd shares: see `neighborhood.py`.
CALM = 32  # so many neighbors may give signs of life and ask muted links as often as a node without neighbors
EXCHANGE_US = 40000  # what a crowd leaves each neighbor for making a link: some frames, and as long again idle
FORWARD_US = 80000  # by then a publication is forwarded; the frames of those that got it at once take a tenth of that
SOON_SHARE = 20  # of update_s: without a crowd a mesh id that has changed waits no longer, nor on a radio interests
MARK = 0x425700  # "WB", bytes 1 and 2 of the mesh ids that this project's nodes make: their byte 0 counts hops
MARKED = 0xFFFFFF  # the bytes of the hops and the mark
_MARK_MASK = 0xFFFF00
MOST_ID_HOPS = 255  # an id that has come farther counts for nothing
MOST_RISES = 4  # so many times in turn an id may come from farther than before
MOST_REPEATS = 3  # of a frame that the radio gave up
REPEATS_KEPT = 16  # publications that it gave up last; those that wait are fewer
MOST_WAITING = 64  # publications that are to be forwarded; no radio brings as many in that time


class Times(NamedTuple):
    """Times that follow from the settings, in microseconds but for ``recheck_s``.

    update_us   how long retained publications are not sent again
    learnt_us   how long interests of a neighbor wait before they are forwarded
    tick_us     how long a message is not repeated
    sign_us     how long a link may be silent
    recheck_s   when a muted link is asked for again
    ids_us      how long a mesh id that has changed waits for a message that it can go with
    history_us  how long a publication is remembered beyond its lifetime
    """

    update_us: int
    learnt_us: int
    tick_us: int
    sign_us: int
    recheck_s: float
    ids_us: int
    history_us: int


def times_of(settings: Any, crowd: int = 0, is_on_radio: bool = False) -> Times:
    """The times that follow from a protocol's settings; ``crowd``: with how many neighbors a node shares the channel.

    The reference lets learnt interests wait for update_s at each hop. On a radio they are forwarded sooner: a path has
    many hops there, and readings are lost until the interests have come to their source.

    A crowd's signs of life and rechecks take no more of the channel than those of CALM nodes.
    """
    pace = max(1.0, crowd / CALM)
    # A low id that goes round late meets links that have changed since: who told it may be behind no link any more, and
    # an id that nobody has is never seen twice, so the loop that it goes round stays. What is quick has gone before.
    update_us = int(settings.update_s * SECOND_US)
    sign_us = int((settings.link_loss_s + settings.update_s) * SECOND_US * pace)
    soon_us = 1 + update_us // SOON_SHARE
    return Times(
        update_us,
        soon_us if is_on_radio and not crowd else update_us,
        int(update_us * min(pace, 2.0)),
        sign_us,
        settings.recheck_s * pace,
        max(update_us, sign_us // 10) if crowd else soon_us,
        int(settings.history_s * SECOND_US),
    )


# States of links


def takes_publications(state: int) -> bool:
    """Whether publications go over a link in this state."""
    return state == ACTIVE


def joins(state: int) -> bool:
    """Whether a link in this state joins its two sides: the mesh id from there counts on this side."""
    return state in (ACTIVE, LINKING)


# Messages of links


def subscription_flags(is_delta: bool, state: int, recheck_s: float) -> int:
    """The flags of a subscription over a link in this state; ``is_delta``: its interests are what has changed.

    A link that is to stay muted (``recheck_s`` 0) says so, when all it wants to know is whether the neighbor is there.
    """
    stays_muted = state == MUTED and recheck_s == 0
    flags = (UNMUTE if state == UNMUTING else 0) | (MUTE if stays_muted else 0)
    return SAK_REQUESTED | (DELTA if is_delta else 0) | flags


def acknowledgement_flags(is_delta: bool, state: int, with_interests: bool) -> int:
    """The flags of a subscription's acknowledgement; one that brings interests wants to be acknowledged in turn."""
    return (DELTA if is_delta else 0) | (MUTE if state == MUTED else 0) | (SAK_REQUESTED if with_interests else 0)


def is_stale(revision: int, newest: int) -> bool:
    """Whether a message says what is not so any more; ``newest``: the highest revision that came, 0 for none yet."""
    return revision < newest


def is_duplicate(revision: int, newest: int) -> bool:
    """Whether a message says what is known; it is acknowledged all the same, as the acknowledgement may be lost."""
    return revision == newest


def lacks_base(flags: int, state: int, revision: int, newest: int) -> bool:
    """Whether a message tells what has changed in interests that never came; these would be taken for all of them."""
    is_change = (flags & DELTA) != 0 and (flags & UNMUTE) == 0 and state != UNMUTING
    return is_change and revision > newest + 1


def has_lost_base(flags: int, state: int, needs_nothing: bool) -> bool:
    """Whether a message over an active link tells what has changed in interests that are not here any more.

    ``needs_nothing``: by it the neighbor asks for nothing, and yet needs something of what it asks for. What was told
    before has been forgotten here, as messages have overtaken each other, or the link was muted at this end alone.
    """
    return (flags & (DELTA | UNMUTE)) == DELTA and state == ACTIVE and needs_nothing


def opens_link(flags: int) -> bool:
    """Whether a subscription from a neighbor without a link begins one; what changed in unknown interests does not.

    Nor does one of a neighbor that has it muted. Without an answer it gives its link up, and begins anew.
    """
    if (flags & MUTE) != 0:
        return False
    return (flags & DELTA) == 0 or (flags & UNMUTE) != 0


def is_settled(state: int, sends_all: bool) -> bool:
    """Return whether a link is active, and this end is not sending all its interests over it.

    ``sends_all``: a subscription with all interests is outstanding. A neighbor's subscription may cross that.
    """
    return state == ACTIVE and not sends_all


def has_begun_anew(
    flags: int, revision: int, newest: int, is_acknowledging: bool, stays_muted: bool, settled: bool
) -> bool:
    """Whether a neighbor with a link has given it up, or has restarted: its interests come in full, and not again.

    ``is_acknowledging``: the acknowledgement with interests that it may not have got is what is outstanding here;
    ``stays_muted``: the link is muted, and the neighbor's mesh id shows that it has to be; ``settled``: see
    `is_settled`. First interests over a settled link show that this end alone has held it for active.
    """
    if (flags & (DELTA | UNMUTE | MUTE)) != 0 or stays_muted:
        return False
    if newest == 0:
        return settled
    if 1 < revision < newest:
        return False  # Who has restarted begins with 1: it was overtaken by what has been told since.
    return revision != newest or not is_acknowledging


def has_restarted(flags: int, revision: int, newest: int, is_sign: bool, is_news: bool) -> bool:
    """Whether the acknowledgement of a subscription over an active link is the first of a neighbor that has restarted.

    The reference makes a link of any subscription. It takes what has changed for all interests, nothing of a sign of
    life, and acknowledges with revision 1 and its interests, or with 0 if it has none: what it has told before is not
    told in an acknowledgement. ``is_sign``: what it acknowledges is a sign of life; ``is_news``: its mesh id is another
    than before, which alone shows a neighbor that has never told interests.
    """
    brings_interests = (flags & SAK_REQUESTED) != 0
    if (flags & DELTA) == 0 or revision != (1 if brings_interests else 0):
        return False
    if revision < newest:
        return True
    return (is_sign or is_news) if brings_interests else (is_sign and is_news)


# Mesh ids, as numbers; of an id its lowest three bytes are enough


def hops_of(mesh_id: int) -> int:
    """Return how many hops a mesh id has come; 0 for an id without the mark, which counts no hops."""
    return (mesh_id & 0xFF) if (mesh_id & _MARK_MASK) == MARK else 0


def hop_to_add(mesh_id: int) -> int:
    """Return by how much a mesh id grows where a node takes it: 1, or 0 without the mark; -1 if it has come too far."""
    if (mesh_id & _MARK_MASK) != MARK:
        return 0
    return 1 if (mesh_id & 0xFF) < MOST_ID_HOPS else -1


def rises_after(rises: int, is_same_owner: bool, hops: int, hops_before: int) -> int:
    """Return how many times in turn the same owner's id has come over a link from farther than before."""
    if not is_same_owner or hops < hops_before:
        return 0
    return min(rises + 1, MOST_RISES) if hops > hops_before else rises


def goes_round(rises: int) -> bool:
    """Return whether an id only goes round a loop: it has come from farther each time, and counts for nothing."""
    return rises >= MOST_RISES


# Loops


def loop_shown(flags: int, state: int, is_reply: bool, is_lowest: bool, is_news: bool) -> int:
    """What a message shows of loops: LOOP, NO_LOOP or NOTHING.

    ``is_lowest``: its mesh id is of the owner of the lowest on this side of the link, so its sender is joined
    elsewhere; an owner that the neighbor has told before is not news. A muted link asks now and then: only the
    reply to that says anything of it.
    """
    if state == MUTED:
        if not is_reply:
            return NOTHING
        return LOOP if (flags & MUTE) != 0 or is_lowest else NO_LOOP
    return LOOP if (flags & MUTE) != 0 or (is_lowest and is_news) else NOTHING


def tells_mute(is_crowded: bool, was_muted: bool, state: int, flags: int) -> bool:
    """Whether a link that was muted by an acknowledgement alone says so: else its other end is told by its next sign.

    Signs of a crowd are rare, and publications would come over the link until then.
    """
    return is_crowded and not was_muted and state == MUTED and (flags & (MUTE | SAK_REQUESTED)) == 0


# Waiting


def ticks_when_heard(ticks: int, retry_ticks: int) -> int:
    """Return the ticks that count once the neighbor was heard: the next one repeats what is not answered."""
    return min(ticks, retry_ticks - 1)


def after_tick(ticks: int, retry_ticks: int, retries: int) -> int:
    """What comes when a message has not been answered for so many ticks of update_s: OVERDUE, LOST or NOTHING."""
    if ticks < retry_ticks:
        return NOTHING
    return LOST if ticks >= retry_ticks + retries else OVERDUE


def ask_muted_after_us(asked: bool, recheck_s: float, sign_us: int, uniform: float) -> int:
    """How long a muted link may be silent until this end asks whether it still closes a loop, and has a neighbor.

    Spread, as others were muted when it was: 0 <= uniform < 1. The end that asked for the link asks first. The other
    one asks if nothing was heard of that: the neighbor has gone, or is none that asks.
    """
    silent_us = sign_us if recheck_s == 0 else min(int(recheck_s * SECOND_US), sign_us)
    return int(silent_us * ((0.625 if asked else 1.0) + uniform / 4))


def relink_after_us(relink_s: float, uniform: float) -> int:
    """How long a neighbor that was given up is left alone; spread, so that two ends do not meet. 0 <= uniform < 1."""
    spread = 0.5 + uniform
    return int(relink_s * spread * SECOND_US)


# Neighbors on a radio


def is_hub(address: int, neighbors: int) -> bool:
    """Whether a node is one of the few in a crowd that the others like best: about the root of their number."""
    return mix64(address) % neighbors < math.sqrt(neighbors)


def rank(quality: float, address: int, neighbor: int, neighbors: int) -> tuple[int, bool, int, int]:
    """What a node in a crowd sorts its neighbors by, the best first: tenths of their delivery ratios, then hubs.

    Hubs agree on the best hub. Others like any hub, so the links are shared out among all hubs.
    """
    lot = mix64(neighbor)
    if not is_hub(address, neighbors):
        lot = mix64(min(address, neighbor) << 32 | max(address, neighbor))
    return -min(int(10 * quality), 9), not is_hub(neighbor, neighbors), lot, neighbor


def ask_late_us(relink_s: float) -> int:
    """When a neighbor that should ask by itself is asked: by then it has asked, or has better ones."""
    return int(2 * relink_s * SECOND_US)


def turn_us(place: int, neighbors: int, update_us: int, uniform: float) -> int:
    """How long a neighbor in a crowd waits to be asked for a link; ``place``: its rank. 0 <= uniform < 1."""
    return 1 + int((place + uniform) * max(update_us, neighbors * EXCHANGE_US))


def scout_after_us(recheck_s: float, uniform: float) -> int:
    """How long a scout stays with a neighbor; spread, as others were sent when it was. 0 <= uniform < 1."""
    return int(recheck_s * SECOND_US * (0.5 + uniform))


# Publications


def waits(is_crowded: bool, waiting: int) -> bool:
    """Whether a publication is forwarded later, as others that got it at once would meet; ``waiting``: how many do."""
    return is_crowded and waiting < MOST_WAITING


def repeat_within_us(repeated: int) -> int:
    """Return within what time a frame is sent again that the radio has given up; ``repeated``: how often so far."""
    return FORWARD_US << repeated


def end_us(now: int, ttl_s: int) -> int:
    """When a publication with a lifetime is retained no longer."""
    return now + ttl_s * SECOND_US


def left_s(expires_us: int, now: int) -> int:
    """Seconds that are left of its life, rounded up."""
    return -((now - expires_us) // SECOND_US)


def forget_us(now: int, lifetime_s: int, history_us: int) -> int:
    """When the history may forget a publication that came now."""
    return now + lifetime_s * SECOND_US + history_us


def clears(entries: int, clear_at: int, since_cleared: int, most: int) -> bool:
    """Whether the history looks for what is over: it has doubled, or half of it is new. That costs as much as came."""
    return entries >= clear_at or since_cleared > max(FEWEST_TO_CLEAR, most // 2)


def clears_at(entries: int) -> int:
    """At how many entries the history looks next, with so many left."""
    return max(FEWEST_TO_CLEAR, 2 * entries)


def is_noted(is_linked: bool, noted: int) -> bool:
    """Whether a neighbor that brought a publication is noted, beside so many others: strangers are easily forged."""
    return is_linked or noted < MOST_STRANGERS
