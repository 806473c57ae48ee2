"""Functions that make the decisions of a DPS node: about revisions, loops, retries, neighbors and publications.

Two implementations of the node call the same functions: the ordinary node and the node of the fast engine. Numba
compiles them unchanged, so they take and return plain numbers, except `times_of`. Times are in microseconds.

A link message is a subscription or its acknowledgement. Its sequence number is called *revision*; a repetition or a
keep-alive has the same revision as the message before. Revisions, and the sequence numbers of publications, start at 1.
``flags`` are the flags of a link message (wire/__init__.py), and ``state`` is the state of a link (automaton.py).
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
MOST_ANSWERS = 4096  # acknowledgements of a publication id that a node forwards
MOST_WAITING = 64  # publications waiting to be forwarded; no radio receives as many within FORWARD_US


class Times(NamedTuple):
    """Times derived from the settings, in microseconds except ``recheck_s`` (seconds).

    update_us             shortest time between two transfers of retained publications to a neighbor
    forward_interests_us  delay before interests from a neighbor are forwarded
    tick_us               period after which an unanswered message may be repeated
    silence_us            silence of a link after which a keep-alive is sent
    recheck_s             time until a muted link (one that closed a loop) is checked again for the loop
    ids_us                delay before a changed mesh id is sent in a keep-alive, unless another message has carried it
    history_us            time for which a publication id is remembered after the publication's lifetime
    """

    update_us: int
    forward_interests_us: int
    tick_us: int
    silence_us: int
    recheck_s: float
    ids_us: int
    history_us: int


def times_of(settings: Any, dense_neighbors: int = 0, is_on_radio: bool = False) -> Times:
    """Return the times that follow from a protocol's settings.

    ``dense_neighbors``: number of neighbors in a dense neighborhood, 0 elsewhere. Above FULL_RATE_NEIGHBORS neighbors,
    a node sends fewer keep-alives and rechecks, so that all neighbors together send as many as FULL_RATE_NEIGHBORS
    nodes.

    ``is_on_radio``: whether the neighbors are radio neighbors. Without a radio, and in a dense neighborhood, a node
    waits for ``update_s`` before it forwards interests, as in the reference implementation. Elsewhere on a radio it
    waits for a twentieth of ``update_s``: a path has many hops there, and readings are lost until the interests reach
    their publisher.
    """
    keep_alive_factor = max(1.0, dense_neighbors / FULL_RATE_NEIGHBORS)
    # Changed mesh ids spread fast: the owner of a low id that comes late may have left the mesh. Such an id never
    # meets its owner, so it shows no loop, and the loop in which it circulates stays.
    update_us = int(settings.update_s * SECOND_US)
    silence_us = int((settings.link_loss_s + settings.update_s) * SECOND_US * keep_alive_factor)
    short_wait_us = 1 + update_us // SHORT_WAIT_DIVISOR
    return Times(
        update_us,
        short_wait_us if is_on_radio and not dense_neighbors else update_us,
        int(update_us * min(keep_alive_factor, 2.0)),
        silence_us,
        settings.recheck_s * keep_alive_factor,
        max(update_us, silence_us // 10) if dense_neighbors else short_wait_us,
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
    """Return the flags of a subscription message over a link in this state.

    ``is_delta``: the message contains only the change of the interests. If ``recheck_s`` is 0, a muted link (one that
    closes a loop) is never checked for the loop again. Subscription messages over such a link have the flag MUTE, and
    only check that the neighbor is alive.
    """
    stays_muted = state == MUTED and recheck_s == 0
    flags = (UNMUTE if state == UNMUTING else 0) | (MUTE if stays_muted else 0)
    return SAK_REQUESTED | (DELTA if is_delta else 0) | flags


def acknowledgement_flags(is_delta: bool, state: int, with_interests: bool) -> int:
    """Return the flags of an acknowledgement of a subscription message; ``state``: state of the link.

    ``with_interests``: the acknowledgement contains interests of this node, so the neighbor must acknowledge it.
    ``is_delta``: these interests are only the change since the last message.
    """
    return (DELTA if is_delta else 0) | (MUTE if state == MUTED else 0) | (SAK_REQUESTED if with_interests else 0)


def is_older_revision(revision: int, newest: int) -> bool:
    """Return whether the subscription message with the number ``revision`` is older than the newest from this neighbor.

    ``newest``: the highest revision received from the neighbor, 0 before the first message.
    """
    return revision < newest


def is_duplicate(revision: int, newest: int) -> bool:
    """Return whether the subscription message with the number ``revision`` repeats the newest one from this neighbor.

    ``newest``: the highest revision received from the neighbor, 0 before the first message. The node acknowledges a
    duplicate again, because its first acknowledgement may be lost.
    """
    return revision == newest


def lacks_base(flags: int, state: int, revision: int, newest: int) -> bool:
    """Return whether a message contains a change of interests that cannot be applied, as an earlier message is missing.

    ``flags``: flags of the message; ``state``: state of the link; ``revision``: sequence number of the message;
    ``newest``: highest sequence number received before, 0 before the first message.
    """
    is_change = (flags & DELTA) != 0 and (flags & UNMUTE) == 0 and state != UNMUTING
    return is_change and revision > newest + 1


def has_lost_base(flags: int, state: int, empties_interests: bool) -> bool:
    """Return whether a change of interests contradicts the interests that this node stores for the neighbor.

    ``flags``: flags of the message with the change; ``state``: state of the link. ``empties_interests``: whether the
    message has needs (as only a node with interests has) although its change empties the interests. This happens if
    messages overtake each other, or if only this end muted the link.
    """
    return (flags & (DELTA | UNMUTE)) == DELTA and state == ACTIVE and empties_interests


def opens_link(flags: int) -> bool:
    """Return whether a subscription message from a neighbor without a link creates a link.

    A message with the flag MUTE creates none: its sender still has a muted link. A message with only a change of
    interests creates none either, because this node lacks the interests before the change. In both cases the node does
    not answer. So the neighbor gives its link up and then requests a new link.
    """
    if (flags & MUTE) != 0:
        return False
    return (flags & DELTA) == 0 or (flags & UNMUTE) != 0


def is_settled(state: int, sends_all: bool) -> bool:
    """Return whether a link is active, and no message with all interests of this end awaits an acknowledgement.

    ``state``: state of the link. ``sends_all``: whether such a message is outstanding.
    """
    return state == ACTIVE and not sends_all


def has_begun_anew(
    flags: int, revision: int, newest: int, is_acknowledging: bool, stays_muted: bool, link_is_settled: bool
) -> bool:
    """Return whether a subscription message shows that a linked neighbor gave the link up, or restarted.

    Such a neighbor sends all its interests, not a change of them, in a message that is not a repetition.

    flags, revision   flags and sequence number of the message
    newest            highest revision received before; 0 before the first message
    is_acknowledging  this node waits for an answer to an acknowledgement that contained its own interests
    stays_muted       the link is muted (closes a loop), and the neighbor's mesh id still shows the loop
    link_is_settled   result of `is_settled`; used only if ``newest`` is 0. If the neighbor's first message comes when
                      the link is settled already, the neighbor had no link
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

    A restarted node of the reference implementation creates a link for any subscription message. It mistakes a change
    of interests for all interests, and a keep-alive for empty interests. Its acknowledgement has revision 1 and its own
    interests, or revision 0 if it has no interests. A neighbor that did not restart acknowledges without interests,
    because it has sent its interests before.

    ``newest``: highest revision received before. ``is_keep_alive``: whether the acknowledged message of this node is a
    keep-alive. ``is_new_owner``: whether the neighbor's mesh id was created by another node than its previous id. A
    neighbor that never sent interests has restarted if it acknowledges a keep-alive with a mesh id of a new owner.
    """
    brings_interests = (flags & SAK_REQUESTED) != 0
    if (flags & DELTA) == 0 or revision != (1 if brings_interests else 0):
        return False
    if revision < newest:
        return True
    return (is_keep_alive or is_new_owner) if brings_interests else (is_keep_alive and is_new_owner)


# Mesh ids, as integers; these functions use only the lowest three bytes of an id


def hops_of(mesh_id: int) -> int:
    """Return the number of hops that a mesh id has made, its lowest byte; 0 if the id does not count hops.

    Ids that count hops have a mark; ids of C nodes (nodes of the reference implementation) lack it.
    """
    return (mesh_id & 0xFF) if (mesh_id & _MARK_MASK) == MARK else 0


def hop_to_add(mesh_id: int) -> int:
    """Return the number of hops to add to a received mesh id: 1, 0 if the id does not count hops, or -1.

    -1 means that the id has reached MOST_ID_HOPS hops, so that the node must ignore it. Ids that count hops have a mark
    in two of their bytes (mesh_ids.py); ids of C nodes (nodes of the reference implementation) lack it.
    """
    if (mesh_id & _MARK_MASK) != MARK:
        return 0
    return 1 if (mesh_id & 0xFF) < MOST_ID_HOPS else -1


def rises_after(rises: int, is_same_owner: bool, hops: int, hops_before: int) -> int:
    """Return how many times in a row the hop count of a neighbor's mesh ids increased, including the new id.

    ``rises``: the result for the previous id. ``hops``, ``hops_before``: hop counts of the new id and of the previous
    id. ``is_same_owner``: whether the same node created both ids. The result is 0 if the hop count decreased or if the
    owners differ, and at most MOST_RISES.
    """
    if not is_same_owner or hops < hops_before:
        return 0
    return min(rises + 1, MOST_RISES) if hops > hops_before else rises


def is_circulating(rises: int) -> bool:
    """Return whether a mesh id circulates in a loop.

    ``rises``: how many times in a row its hop count rose (`rises_after`). From MOST_RISES on, the id circulates.
    """
    return rises >= MOST_RISES


# Loops


def classify_loop(flags: int, state: int, is_reply: bool, is_lowest: bool, is_new_owner: bool) -> int:
    """Return LOOP, NO_LOOP or NOTHING: whether a link message shows that the link closes a loop.

    NO_LOOP means that a muted link no longer closes a loop; NOTHING, that the message does not show it.

    flags, state  flags of the message, state of the link
    is_reply      the message acknowledges an outstanding message. Over a muted link, only the reply to a recheck shows
                  whether the link closes a loop
    is_lowest     the message's mesh id has the same owner (the node that created it) as the lowest id on this side of
                  the link, so another path connects the two ends of the link
    is_new_owner  the neighbor's previous mesh id had another owner
    """
    if state == MUTED:
        if not is_reply:
            return NOTHING
        return LOOP if (flags & MUTE) != 0 or is_lowest else NO_LOOP
    return LOOP if (flags & MUTE) != 0 or (is_lowest and is_new_owner) else NOTHING


def announces_mute(is_crowded: bool, was_muted: bool, state: int, flags: int) -> bool:
    """Return whether a node that has just muted a link sends an extra acknowledgement with the flag MUTE.

    Only a node in a dense neighborhood (``is_crowded``) does. Elsewhere the next keep-alive with the flag follows soon;
    in a dense neighborhood keep-alives are rare, and the neighbor would send publications over the link until then.

    was_muted  the link was already muted before the message that showed the loop
    state      state of the link after this message
    flags      flags of this message. With MUTE, the neighbor has muted the link too. With SAK_REQUESTED, the ordinary
               acknowledgement of this message contains the flag MUTE. In both cases no extra acknowledgement is needed
    """
    return is_crowded and not was_muted and state == MUTED and (flags & (MUTE | SAK_REQUESTED)) == 0


# Waiting


def cap_ticks(ticks: int, retry_ticks: int) -> int:
    """Return the tick count of an unanswered message after another message arrived from the neighbor.

    A message is repeated after ``retry_ticks`` ticks of its timer. The result is ``ticks``, the count so far, but at
    most ``retry_ticks`` - 1. So a neighbor that is alive is not given up before this node has repeated its message at
    least once.
    """
    return min(ticks, retry_ticks - 1)


def tick_input(ticks: int, retry_ticks: int, retries: int) -> int:
    """Return the input of a link's state machine after ``ticks`` ticks of the timer without an answer.

    The result is NOTHING before ``retry_ticks`` ticks. For the next ``retries`` ticks it is OVERDUE: repeat the
    message. Then it is LOST: give the neighbor up.
    """
    if ticks < retry_ticks:
        return NOTHING
    return LOST if ticks >= retry_ticks + retries else OVERDUE


def recheck_after_us(is_requester: bool, recheck_s: float, silence_us: int, uniform: float) -> int:
    """Return the time in µs without messages after which this end rechecks a muted link.

    A recheck shows whether the link still closes a loop, and whether the neighbor is alive.

    is_requester  whether this end requested the link. The requester waits for a shorter time, so it usually rechecks
                  first. The other end rechecks only if no recheck from the requester comes
    recheck_s     the setting of this name, in seconds
    silence_us    time in µs without messages after which a node sends a keep-alive on an active link. It is used
                  instead of ``recheck_s`` if ``recheck_s`` is 0, or longer than this time
    uniform       random number in [0, 1) that spreads the rechecks of links that were muted at the same time
    """
    longest_silence_us = silence_us if recheck_s == 0 else min(int(recheck_s * SECOND_US), silence_us)
    return int(longest_silence_us * ((0.625 if is_requester else 1.0) + uniform / 4))


def relink_after_us(relink_s: float, uniform: float) -> int:
    """Return the delay in µs before an ended link is requested again: ``relink_s`` on average.

    ``uniform``: a random number in [0, 1), which keeps the two ends from sending their requests at the same time.
    """
    random_factor = 0.5 + uniform
    return int(relink_s * random_factor * SECOND_US)


# Neighbors on a radio


def is_hub(address: int, neighbors: int) -> bool:
    """Return whether the node with this address is a hub, with which its neighbors prefer to link.

    ``neighbors``: number of neighbors of the node that decides. About the square root of this number of them are hubs.
    """
    return mix64(address) % neighbors < math.sqrt(neighbors)


def rank(quality: float, address: int, neighbor: int, neighbors: int) -> tuple[int, bool, int, int]:
    """Return the sort key of a neighbor as a candidate for a link; candidates with smaller keys are better.

    ``quality``: delivery ratio (0 to 1) of the link with the candidate. ``address``: address of the node that chooses.
    ``neighbor``: address of the candidate. ``neighbors``: number of neighbors of the node that chooses.

    Candidates are compared by quality, rounded down to a tenth. Among equals, hubs (`is_hub`) are better; then a hash
    decides. All hubs prefer the same hub. Other nodes prefer different hubs, so that their links are spread over all
    hubs.
    """
    order_hash = mix64(neighbor)
    if not is_hub(address, neighbors):
        order_hash = mix64(min(address, neighbor) << 32 | max(address, neighbor))
    return -min(int(10 * quality), 9), not is_hub(neighbor, neighbors), order_hash, neighbor


def late_request_us(relink_s: float) -> int:
    """Return the delay in µs before this node requests a link that the neighbor was expected to request.

    ``relink_s``: the setting for the delay before an ended link is requested again, in seconds."""
    return int(2 * relink_s * SECOND_US)


def request_delay_us(position: int, neighbors: int, update_us: int, uniform: float) -> int:
    """Return the delay in µs before a node requests a link with a neighbor.

    ``position``: the neighbor's rank among the radio neighbors, 0 for the best. The mean delays of successive positions
    differ by ``update_us``, or more if there are many ``neighbors``. ``uniform`` is a random number in [0, 1) that
    spreads the requests of different nodes.
    """
    return 1 + int((position + uniform) * max(update_us, neighbors * EXCHANGE_US))


def scout_after_us(recheck_s: float, uniform: float) -> int:
    """Return the time in µs until the scout, a trial link, is moved to the next neighbor: ``recheck_s`` on average.

    ``uniform`` is a random number in [0, 1), so that the scouts of different nodes move at different times.
    """
    return int(recheck_s * SECOND_US * (0.5 + uniform))


# Publications


def delays_forwarding(is_crowded: bool, waiting: int) -> bool:
    """Return whether to delay the forwarding of a publication, to avoid collisions in a dense neighborhood.

    ``waiting`` is the number of publications that are delayed already. The result is False if it has reached
    MOST_WAITING, and outside of a dense neighborhood.
    """
    return is_crowded and waiting < MOST_WAITING


def repeat_within_us(retry_index: int) -> int:
    """Return the longest wait in µs before a frame that the radio failed to deliver is sent again.

    ``retry_index``: number of earlier retries of the frame."""
    return FORWARD_US << retry_index


def end_us(now: int, ttl_s: int) -> int:
    """Return the time in µs at which a publication expires: ``ttl_s`` seconds after ``now``, when it arrived."""
    return now + ttl_s * SECOND_US


def left_s(expires_us: int, now: int) -> int:
    """Return a publication's remaining lifetime in seconds, rounded up; ``expires_us``: time of its expiry in µs."""
    return -((now - expires_us) // SECOND_US)


def forget_us(now: int, lifetime_s: int, history_us: int) -> int:
    """Return the time in µs from which the history may remove a publication that arrived at ``now``.

    ``lifetime_s``: the publication's initial lifetime; ``history_us``: time to remember it beyond the lifetime.
    """
    return now + lifetime_s * SECOND_US + history_us


def clears_history(entries: int, clearing_size: int, added_since_clearing: int, limit: int) -> bool:
    """Return whether it is time to search the history for expired entries and remove them.

    A search is due if the number of ``entries`` has reached ``clearing_size``, a result of `next_clearing_size`. It is
    also due after many new entries: if ``added_since_clearing``, the number of entries added since the last search,
    exceeds FEWEST_TO_CLEAR and half of ``limit``, the most entries that the history may have.
    """
    # So the cost of a search is shared by as many new entries.
    return entries >= clearing_size or added_since_clearing > max(FEWEST_TO_CLEAR, limit // 2)


def next_clearing_size(entries: int) -> int:
    """Return the number of entries in the history at which the next search for expired entries is due.

    The result is twice ``entries``, the number of entries after the last search, but at least FEWEST_TO_CLEAR.
    """
    return max(FEWEST_TO_CLEAR, 2 * entries)


def records_sender(is_linked: bool, recorded: int) -> bool:
    """Return whether to add the node that sent a publication to the publication's entry in the history.

    The entry lists ``recorded`` senders so far. A neighbor with a link (``is_linked``) is always added. Other addresses
    may be forged, so they are added only while the entry lists fewer than MOST_STRANGERS senders.
    """
    return is_linked or recorded < MOST_STRANGERS
