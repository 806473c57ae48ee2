"""Decisions of a DPS node as functions of plain numbers: constants, times, rules on revisions, loops and waiting.

The node and its twin on the fast engine call the same functions. Numba compiles them unchanged, so they take and return
numbers only. Times are in microseconds. A revision is the sequence number of a link's message; repetitions and
keep-alives keep the previous one. Revisions and sequence numbers of publications count from 1. ``flags`` are the flags
of a link's message (wire/__init__.py); ``state`` is the state of a link (automaton.py).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from workbench.draws import mix64
from workbench.protocols.dps.automaton import ACTIVE, LINKING, LOOP, LOST, MUTED, NO_LOOP, NOTHING, OVERDUE, UNMUTING
from workbench.protocols.dps.wire import DELTA, MUTE, SAK_REQUESTED, UNMUTE

SECOND_US = 1000000
MOST_HOPS = 0xFFFF  # the largest number that the header field holds
FEWEST_TO_CLEAR = 64  # entries in the history before expired ones are searched for
MOST_STRANGERS = 16  # neighbors without a link that one history entry lists; the reverse path needs one
# For nodes on a radio in a dense neighborhood (a crowd): see `neighborhood.py`.
FULL_RATE_NEIGHBORS = 32  # up to so many neighbors, keep-alives and rechecks are as frequent as without a crowd
EXCHANGE_US = 40000  # channel time for creating one link in a crowd: some frames, and an idle time of the same length
FORWARD_US = 80000  # longest wait before forwarding; the frames of all simultaneous receivers take a tenth of it
SHORT_WAIT_DIVISOR = 20  # without a crowd, update_s / 20 delays changed mesh ids and, on a radio, interests
MARK = 0x425700  # "WB", bytes 1 and 2 of the mesh ids of this project's nodes; byte 0 of such an id counts hops
MARKED = 0xFFFFFF  # mask of the bytes of the hops and the mark
_MARK_MASK = 0xFFFF00
MOST_ID_HOPS = 255  # a mesh id with more hops is ignored
MOST_RISES = 4  # after so many increases of its hop count in a row, a mesh id is ignored
MOST_REPEATS = 3  # retries of a frame that the radio gave up
MOST_RETRIED = 16  # stored frames that the radio gave up; the oldest are replaced and not sent again
MOST_WAITING = 64  # publications waiting to be forwarded; no radio receives as many within FORWARD_US


class Times(NamedTuple):
    """Times derived from the settings, in microseconds except ``recheck_s`` (seconds).

    update_us             shortest time between two transfers of retained publications to a neighbor
    forward_interests_us  delay before interests from a neighbor are forwarded
    tick_us               period after which an unanswered message may be repeated
    silence_us            silence of a link after which a keep-alive is sent
    recheck_s             time until a muted link is rechecked for a loop
    ids_us                longest time that a changed mesh id waits to be sent together with another message
    history_us            time that a publication is remembered beyond its lifetime
    """

    update_us: int
    forward_interests_us: int
    tick_us: int
    silence_us: int
    recheck_s: float
    ids_us: int
    history_us: int


def times_of(settings: Any, crowd: int = 0, is_on_radio: bool = False) -> Times:
    """Return the times derived from a protocol's settings.

    ``crowd`` is the number of neighbors in a dense neighborhood, 0 elsewhere. In a dense neighborhood, keep-alives and
    rechecks are so rare that they take no more of the channel than those of FULL_RATE_NEIGHBORS nodes.

    The reference delays the forwarding of interests by update_s at each hop. On a radio they are forwarded sooner: a
    path has many hops there, and readings are lost until the interests reach their source.
    """
    slowdown = max(1.0, crowd / FULL_RATE_NEIGHBORS)
    # Changed mesh ids spread fast: the owner of a low id that comes late may have left the mesh. Such an id never
    # meets its owner, so it shows no loop, and the loop in which it circulates stays.
    update_us = int(settings.update_s * SECOND_US)
    silence_us = int((settings.link_loss_s + settings.update_s) * SECOND_US * slowdown)
    short_wait_us = 1 + update_us // SHORT_WAIT_DIVISOR
    return Times(
        update_us,
        short_wait_us if is_on_radio and not crowd else update_us,
        int(update_us * min(slowdown, 2.0)),
        silence_us,
        settings.recheck_s * slowdown,
        max(update_us, silence_us // 10) if crowd else short_wait_us,
        int(settings.history_s * SECOND_US),
    )


# States of links


def takes_publications(state: int) -> bool:
    """Return whether publications are sent over a link in this state."""
    return state == ACTIVE


def is_connecting(state: int) -> bool:
    """Return whether a link in this state may connect two parts of the mesh: it is active, or may become active.

    This node compares and forwards the mesh ids of neighbors only over such links.
    """
    return state in (ACTIVE, LINKING)


# Messages of links


def subscription_flags(is_delta: bool, state: int, recheck_s: float) -> int:
    """Return the flags of a subscription over a link in this state; ``is_delta``: its interests are a change.

    A link that stays muted for good (``recheck_s`` 0) sends MUTE: its message only checks that the neighbor is alive.
    """
    stays_muted = state == MUTED and recheck_s == 0
    flags = (UNMUTE if state == UNMUTING else 0) | (MUTE if stays_muted else 0)
    return SAK_REQUESTED | (DELTA if is_delta else 0) | flags


def acknowledgement_flags(is_delta: bool, state: int, with_interests: bool) -> int:
    """Return the flags of the acknowledgement of a subscription, over a link in this state.

    ``is_delta``: this node's interests for the neighbor are a change; ``with_interests``: the acknowledgement carries
    these interests, and so requests an answer in turn.
    """
    return (DELTA if is_delta else 0) | (MUTE if state == MUTED else 0) | (SAK_REQUESTED if with_interests else 0)


def is_stale(revision: int, newest: int) -> bool:
    """Return whether a message is outdated; ``newest``: the highest revision received, 0 before the first."""
    return revision < newest


def is_duplicate(revision: int, newest: int) -> bool:
    """Return whether a message was received before; ``newest``: the highest revision received, 0 before the first.

    The node acknowledges a duplicate again, as its first acknowledgement may be lost.
    """
    return revision == newest


def lacks_base(flags: int, state: int, revision: int, newest: int) -> bool:
    """Return whether a message is a change of interests that were never received, so that it cannot be applied.

    ``newest``: the highest revision received before, 0 before the first message.
    """
    is_change = (flags & DELTA) != 0 and (flags & UNMUTE) == 0 and state != UNMUTING
    return is_change and revision > newest + 1


def has_lost_base(flags: int, state: int, empties_interests: bool) -> bool:
    """Return whether a message over an active link changes interests that this node has forgotten.

    ``empties_interests`` is whether the message carries needs, but applying it leaves the neighbor without interests.
    This contradiction occurs if messages overtook each other, or if the link was muted at this end alone.
    """
    return (flags & (DELTA | UNMUTE)) == DELTA and state == ACTIVE and empties_interests


def opens_link(flags: int) -> bool:
    """Return whether a subscription from a neighbor without a link creates a link.

    A change of interests that this node does not have creates no link, nor does a subscription over a link that the
    neighbor has muted. As the neighbor gets no answer, it gives its link up and starts again.
    """
    if (flags & MUTE) != 0:
        return False
    return (flags & DELTA) == 0 or (flags & UNMUTE) != 0


def is_settled(state: int, sends_all: bool) -> bool:
    """Return whether a link is active, and no subscription with all interests of this end is outstanding.

    ``sends_all`` is whether such a subscription is outstanding; a subscription from the neighbor may have crossed it.
    """
    return state == ACTIVE and not sends_all


def has_begun_anew(
    flags: int, revision: int, newest: int, is_acknowledging: bool, stays_muted: bool, link_is_settled: bool
) -> bool:
    """Return whether a subscription shows that a linked neighbor gave the link up, or restarted.

    Such a subscription carries all interests and is not a repetition. ``newest``: the highest revision received before.
    ``is_acknowledging``: this node's acknowledgement with interests is unanswered. ``stays_muted``: the link is muted,
    and the neighbor's mesh id still shows a loop. ``link_is_settled``: see `is_settled`; first interests over such a
    link show that the other end had no link.
    """
    if (flags & (DELTA | UNMUTE | MUTE)) != 0 or stays_muted:
        return False
    if newest == 0:
        return link_is_settled
    if 1 < revision < newest:
        return False  # A restarted neighbor begins with 1; this is an older message that a newer one overtook.
    return revision != newest or not is_acknowledging


def has_restarted(flags: int, revision: int, newest: int, is_keep_alive: bool, is_new_owner: bool) -> bool:
    """Return whether an acknowledgement over an active link shows that the neighbor restarted.

    A restarted node of the reference implementation creates a link for any subscription. It treats an update as the
    complete list of interests, and a keep-alive as an empty list. It acknowledges with revision 1 and its own
    interests, or with revision 0 if it has no interests. A neighbor that did not restart has sent its interests before,
    and acknowledges without them.

    ``newest``: the highest revision received before. ``is_keep_alive``: the acknowledged message is a keep-alive.
    ``is_new_owner``: the neighbor's mesh id has another owner than before. If a neighbor never sent interests, its new
    mesh id is the only evidence.
    """
    brings_interests = (flags & SAK_REQUESTED) != 0
    if (flags & DELTA) == 0 or revision != (1 if brings_interests else 0):
        return False
    if revision < newest:
        return True
    return (is_keep_alive or is_new_owner) if brings_interests else (is_keep_alive and is_new_owner)


# Mesh ids, as integers; these functions use only the lowest three bytes of an id


def hops_of(mesh_id: int) -> int:
    """Return the number of hops that a mesh id has travelled; 0 for an id of a C node, which does not count hops."""
    return (mesh_id & 0xFF) if (mesh_id & _MARK_MASK) == MARK else 0


def hop_to_add(mesh_id: int) -> int:
    """Return the number of hops to add to a received mesh id: 1, or 0 for an id of a C node, which does not count hops.

    Ids that count hops have a mark in two of their bytes (mesh_ids.py). The result is -1 if the id has reached
    MOST_ID_HOPS hops, so that the node must ignore the id.
    """
    if (mesh_id & _MARK_MASK) != MARK:
        return 0
    return 1 if (mesh_id & 0xFF) < MOST_ID_HOPS else -1


def rises_after(rises: int, is_same_owner: bool, hops: int, hops_before: int) -> int:
    """Return how many times in a row the hops of an owner's id increased, including the id just received.

    ``rises`` is the number before. The result is at most MOST_RISES, and 0 after a decrease or for another owner."""
    if not is_same_owner or hops < hops_before:
        return 0
    return min(rises + 1, MOST_RISES) if hops > hops_before else rises


def is_circulating(rises: int) -> bool:
    """Return whether an id only circulates in a loop, as its hop count increased MOST_RISES times in a row."""
    return rises >= MOST_RISES


# Loops


def classify_loop(flags: int, state: int, is_reply: bool, is_lowest: bool, is_new_owner: bool) -> int:
    """Return LOOP if a message shows a loop, NO_LOOP if it excludes a loop, and NOTHING otherwise.

    ``is_lowest``: the message's mesh id has the same owner as the lowest id on this side of the link, so another path
    connects the neighbor. ``is_new_owner``: the neighbor's previous id had another owner. ``is_reply``: the message
    acknowledges an outstanding one; over a muted link, only such a reply to a recheck is evidence.
    """
    if state == MUTED:
        if not is_reply:
            return NOTHING
        return LOOP if (flags & MUTE) != 0 or is_lowest else NO_LOOP
    return LOOP if (flags & MUTE) != 0 or (is_lowest and is_new_owner) else NOTHING


def announces_mute(is_crowded: bool, was_muted: bool, state: int, flags: int) -> bool:
    """Return whether a node that just muted a link sends an extra acknowledgement with the flag MUTE.

    ``flags``: flags of the message that showed the loop. If they contain MUTE or request an acknowledgement, no extra
    acknowledgement is needed. Outside a dense neighborhood the next keep-alive carries the flag. In a dense
    neighborhood keep-alives are rare, and publications would still arrive over the link until then.
    """
    return is_crowded and not was_muted and state == MUTED and (flags & (MUTE | SAK_REQUESTED)) == 0


# Waiting


def cap_ticks(ticks: int, retry_ticks: int) -> int:
    """Return the tick count of an unanswered message after the neighbor sent another message.

    The count is reduced, if necessary, so that the unanswered message is repeated before the neighbor is given up."""
    return min(ticks, retry_ticks - 1)


def tick_input(ticks: int, retry_ticks: int, retries: int) -> int:
    """Return the input of a link whose message has been unanswered for ``ticks`` ticks: OVERDUE, LOST or NOTHING.

    ``retry_ticks`` and ``retries`` are parameters of the protocol.
    """
    if ticks < retry_ticks:
        return NOTHING
    return LOST if ticks >= retry_ticks + retries else OVERDUE


def recheck_after_us(is_requester: bool, recheck_s: float, silence_us: int, uniform: float) -> int:
    """Return the silence in µs after which this end rechecks a muted link for a loop and a dead neighbor.

    ``uniform`` is a random number in [0, 1) that spreads the rechecks, as other links were muted at the same time. The
    end that requested the link (``is_requester``) rechecks first. The other end rechecks only if that recheck does not
    come.
    """
    silent_us = silence_us if recheck_s == 0 else min(int(recheck_s * SECOND_US), silence_us)
    return int(silent_us * ((0.625 if is_requester else 1.0) + uniform / 4))


def relink_after_us(relink_s: float, uniform: float) -> int:
    """Return the delay in µs before a link is requested again.

    ``uniform`` is a random number in [0, 1), so that the two ends do not send their requests at the same time."""
    factor = 0.5 + uniform
    return int(relink_s * factor * SECOND_US)


# Neighbors on a radio


def is_hub(address: int, neighbors: int) -> bool:
    """Return whether the node with this address is a hub, with which all nodes prefer to link.

    Of n ``neighbors``, about the square root of n are hubs."""
    return mix64(address) % neighbors < math.sqrt(neighbors)


def rank(quality: float, address: int, neighbor: int, neighbors: int) -> tuple[int, bool, int, int]:
    """Return the sort key of a neighbor, best first: tenths of its delivery ratio, then hubs, then a hash.

    ``address`` is the ranking node, and ``neighbors`` the number of its neighbors. All hubs prefer the same hub. Other
    nodes prefer different hubs, so the links are spread over all hubs.
    """
    order_hash = mix64(neighbor)
    if not is_hub(address, neighbors):
        order_hash = mix64(min(address, neighbor) << 32 | max(address, neighbor))
    return -min(int(10 * quality), 9), not is_hub(neighbor, neighbors), order_hash, neighbor


def late_request_us(relink_s: float) -> int:
    """Return the delay in µs before this node requests a link that the neighbor was expected to request."""
    return int(2 * relink_s * SECOND_US)


def request_delay_us(position: int, neighbors: int, update_us: int, uniform: float) -> int:
    """Return the delay in µs before requesting a link with the neighbor at this position in the ranking.

    The mean delays of successive positions differ by ``update_us``, or more if there are many ``neighbors``.
    ``uniform`` is a random number in [0, 1) that spreads the requests.
    """
    return 1 + int((position + uniform) * max(update_us, neighbors * EXCHANGE_US))


def scout_after_us(recheck_s: float, uniform: float) -> int:
    """Return the time in µs until the scout, a trial link, is moved to the next neighbor.

    ``uniform`` is a random number in [0, 1) that spreads the scouts of different nodes."""
    return int(recheck_s * SECOND_US * (0.5 + uniform))


# Publications


def delays_forwarding(is_crowded: bool, waiting: int) -> bool:
    """Return whether to delay the forwarding of a publication, to avoid collisions.

    ``waiting`` is the number of publications that are delayed already."""
    return is_crowded and waiting < MOST_WAITING


def repeat_within_us(retry_index: int) -> int:
    """Return the longest wait in µs before a retry of a frame that the radio gave up; ``retry_index`` counts from 0."""
    return FORWARD_US << retry_index


def end_us(now: int, ttl_s: int) -> int:
    """Return the time at which a publication that arrived at ``now`` with the lifetime ``ttl_s`` expires."""
    return now + ttl_s * SECOND_US


def left_s(expires_us: int, now: int) -> int:
    """Return the remaining lifetime in seconds, rounded up."""
    return -((now - expires_us) // SECOND_US)


def forget_us(now: int, lifetime_s: int, history_us: int) -> int:
    """Return the time from which the history may forget a publication that arrived at ``now``."""
    return now + lifetime_s * SECOND_US + history_us


def clears_history(entries: int, clearing_size: int, added_since_clearing: int, limit: int) -> bool:
    """Return whether to remove expired entries from the history now.

    This is due if the history has ``clearing_size`` entries, twice as many as after the last removal. It is also due if
    more than half of ``limit`` entries, the maximum, were added since then."""
    # So the cost of a search is shared by as many new entries.
    return entries >= clearing_size or added_since_clearing > max(FEWEST_TO_CLEAR, limit // 2)


def next_clearing_size(entries: int) -> int:
    """Return the size of the history at which expired entries are removed the next time.

    ``entries`` is the number of entries that the removal just done has left.
    """
    return max(FEWEST_TO_CLEAR, 2 * entries)


def records_sender(is_linked: bool, recorded: int) -> bool:
    """Return whether a history entry that lists ``recorded`` senders of a publication should list another one.

    Linked neighbors are always listed. At most MOST_STRANGERS other nodes are listed, as their addresses may be
    forged."""
    return is_linked or recorded < MOST_STRANGERS
