"""Mesh ids, by which nodes detect loops, in DPS's fast twin (its compiled version), as two 64-bit words.

`workbench.protocols.dps.mesh_ids` defines the behavior.

The two words ``high`` and ``low`` form an id of 128 bits. An id with all bits set is *unknown*. The *owner* of an id is
the node that created it. An id counts hops if its second and third lowest bytes have a fixed value, the *mark*; its
lowest byte is then the number of hops that it has made.
"""

import numpy as np

from workbench.protocols.dps import rules
from workbench.protocols.dps.automaton import MUTED
from workbench.protocols.dps.fast.state import NO_MESH
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

_UNKNOWN = np.uint64(NO_MESH)
_NO_BITS, _ONE_BIT = np.uint64(0), np.uint64(1)
_BYTES = np.uint64(0x00FF00FF00FF00FF)
_PAIRS = np.uint64(0x0000FFFF0000FFFF)
_MARK, _MARKED = np.uint64(rules.MARK), np.uint64(rules.MARKED)
OWN_HIGH = np.uint64(0x00FFFFFFFFFFFFFF)  # the most significant byte of a node's own id is 0
_MARKED_BITS, _OTHER_BITS = np.uint64(24), np.uint64(64 - 24)


@compiled
def stream_bits(core, i):
    """Return the next 64 bits of the random number stream of node ``i``."""
    core.drawn[i] += 1
    return twin.bits(core.protocol_keys[i], core.drawn[i] - 1)


@compiled
def swap_bytes(word):
    """Return a word with its bytes in reverse order."""
    word = ((word >> np.uint64(8)) & _BYTES) | ((word & _BYTES) << np.uint64(8))
    word = ((word >> np.uint64(16)) & _PAIRS) | ((word & _PAIRS) << np.uint64(16))
    return (word >> np.uint64(32)) | (word << np.uint64(32))


@compiled
def is_less(high, low, than_high, than_low):
    """Return whether the first mesh id is lower than the second."""
    return high < than_high or (high == than_high and low < than_low)


@compiled
def set_mark(low):
    """Return the low word of a mesh id with its hop count (lowest byte) set to 0 and the next two bytes to the mark."""
    return ((low >> _MARKED_BITS) << _MARKED_BITS) | _MARK


@compiled
def _hops_and_mark(low):
    """Return the lowest three bytes of a mesh id, which contain its hops and its mark.

    The result is a signed integer, as the functions of `rules` need it.
    """
    return np.int64(low & _MARKED)


@compiled
def owner_low(low):
    """Return the low word of a mesh id with hop count 0, which identifies the id's owner with the high word.

    An id that does not count hops is returned unchanged.
    """
    return low - np.uint64(rules.hops_of(_hops_and_mark(low)))


@compiled
def is_same_owner(high, low, other_high, other_low):
    """Return whether two mesh ids, given as two words each, were created by the same node."""
    return high == other_high and owner_low(low) == owner_low(other_low)


@compiled
def note_mesh_id(remote, high, low):
    """Store the mesh id that a neighbor has sent, and update the field ``rises`` of the link's data (``remote``).

    ``rises`` counts how many times in a row the neighbor has sent an id with the same owner and more hops than before.
    """
    has_same_owner = is_same_owner(high, low, remote.mesh_high, remote.mesh_low)
    remote.rises = rules.rises_after(
        np.int64(remote.rises),
        has_same_owner,
        rules.hops_of(_hops_and_mark(low)),
        rules.hops_of(_hops_and_mark(remote.mesh_low)),
    )
    remote.mesh_high, remote.mesh_low = high, low


@compiled
def low_to_send(remote, low):
    """Return the low word of a mesh id to send to a neighbor; its hops are 0 if the neighbor does not count hops."""
    return low if remote.counts_hops else owner_low(low)


@compiled
def mesh_id_here(remote):
    """Return (high, low) of the mesh id that a neighbor has sent, with one hop added if the id counts hops.

    Return the unknown id instead if the id has too many hops, or if it seems to circulate in a loop: its hops have
    increased in many messages in a row.
    """
    added_hops = rules.hop_to_add(_hops_and_mark(remote.mesh_low))
    if added_hops < 0 or rules.is_circulating(np.int64(remote.rises)):
        return _UNKNOWN, _UNKNOWN
    return remote.mesh_high, remote.mesh_low + np.uint64(added_hops)


@compiled
def _id_below(high, low, distance):
    """Return (high, low) of the mesh id that is lower than the given id by (``distance`` + 1) * 2^24.

    The subtraction ignores the lowest three bytes of the given id. In the result these bytes are 0 hops and the mark.
    """
    low = (low >> _MARKED_BITS) << _MARKED_BITS
    distance_high, distance_low = distance >> _OTHER_BITS, distance << _MARKED_BITS
    high = high - distance_high - (_ONE_BIT if low < distance_low else _NO_BITS)
    low = low - distance_low
    id_step = _ONE_BIT << _MARKED_BITS
    return high - (_ONE_BIT if low < id_step else _NO_BITS), (low - id_step) | _MARK


@compiled
def owner_number(high, low):
    """Return the number that identifies a mesh id's owner in trace events; NONE for the unknown id."""
    return NONE if high == _UNKNOWN and low == _UNKNOWN else np.int64(high >> _ONE_BIT)


@compiled
def forget_mesh(remote):
    """Forget the mesh id that a neighbor has sent: store the unknown id instead."""
    remote.mesh_high = _UNKNOWN
    remote.mesh_low = _UNKNOWN


@compiled
def forget_sent_id(remote):
    """Forget which mesh id was last sent to a neighbor: store the unknown id instead."""
    remote.sent_high = _UNKNOWN
    remote.sent_low = _UNKNOWN


@compiled
def lowest_except(state, i, excluded_link):
    """Return the lowest of the mesh ids of node ``i`` and of its neighbors, except one neighbor.

    The id is returned as (high, low), its upper and its lower half.

    Only neighbors with an active link, or a link that is being established, are considered. ``excluded_link``: row of
    the link with the neighbor whose id is left out.
    """
    node = state.nodes[i]
    lowest_high, lowest_low = node.mesh_high, node.mesh_low
    link = np.int64(node.links.first)
    while link != NONE:
        remote = state.links[link]
        if link != excluded_link and rules.is_connecting(remote.state):
            id_high, id_low = mesh_id_here(remote)
            if is_less(id_high, id_low, lowest_high, lowest_low):
                lowest_high, lowest_low = id_high, id_low
        link = np.int64(remote.next)
    return lowest_high, lowest_low


@compiled
def shows_loop(state, i, link, message):
    """Return whether the mesh id in a message shows that the link with its sender closes a loop.

    The owner of an id is the node that created it. The result is True if the message's id has node ``i`` as its owner,
    or has the same owner as the lowest id of node ``i`` and its other neighbors (`lowest_except`).
    """
    header, node = state.headers[message], state.nodes[i]
    if rules.hop_to_add(_hops_and_mark(header.mesh_low)) < 0:
        return False
    lowest_high, lowest_low = lowest_except(state, i, link)
    has_own_owner = is_same_owner(header.mesh_high, header.mesh_low, node.mesh_high, node.mesh_low)
    return has_own_owner or is_same_owner(header.mesh_high, header.mesh_low, lowest_high, lowest_low)


@compiled
def lowest_two_ids(state, i):
    """Return (link, high, low, second_high, second_low): the two lowest mesh ids that came over different links.

    Only active links, and links that are being established, are considered. ``link``: the link over which the lowest id
    (high, low) came to node ``i``; NONE if no id came. If fewer than two ids came, the missing ids are the unknown id.
    """
    lowest_link, lowest_high, lowest_low, second_high, second_low = NONE, _UNKNOWN, _UNKNOWN, _UNKNOWN, _UNKNOWN
    link = np.int64(state.nodes[i].links.first)
    while link != NONE:
        remote = state.links[link]
        if rules.is_connecting(remote.state):
            id_high, id_low = mesh_id_here(remote)
            if is_less(id_high, id_low, lowest_high, lowest_low):
                lowest_link, second_high, second_low = link, lowest_high, lowest_low
                lowest_high, lowest_low = id_high, id_low
            elif is_less(id_high, id_low, second_high, second_low):
                second_high, second_low = id_high, id_low
        link = np.int64(remote.next)
    return lowest_link, lowest_high, lowest_low, second_high, second_low


@compiled
def must_send_id(state, i, link, ids):
    """Return whether node ``i`` must send a mesh id over a link because the id sent last is outdated.

    The id to send is the lowest of the node's own id and the ids of its other neighbors. The result is False if the
    link carries no publications. ``ids``: result of `lowest_two_ids`.
    """
    remote, node = state.links[link], state.nodes[i]
    lowest_link, lowest_high, lowest_low, second_high, second_low = ids
    if link == lowest_link:
        lowest_high, lowest_low = second_high, second_low
    if is_less(node.mesh_high, node.mesh_low, lowest_high, lowest_low):
        lowest_high, lowest_low = node.mesh_high, node.mesh_low
    return rules.takes_publications(remote.state) and (
        remote.sent_high != lowest_high or remote.sent_low != low_to_send(remote, lowest_low)
    )


@compiled
def is_apart(state, i, link):
    """Return whether a muted neighbor seems to be in another part of the network.

    This is so if its mesh id is lower than the ids of node ``i`` and of all other neighbors. The result is False while
    an answer of the neighbor is outstanding.
    """
    remote = state.links[link]
    if remote.state != MUTED or remote.pending or rules.hop_to_add(_hops_and_mark(remote.mesh_low)) < 0:
        return False
    lowest_high, lowest_low = lowest_except(state, i, link)
    return not is_same_owner(remote.mesh_high, remote.mesh_low, lowest_high, lowest_low) and is_less(
        remote.mesh_high, remote.mesh_low, lowest_high, lowest_low
    )


@compiled
def note_lowest(state, i, high, low):
    """Record a mesh id if it is the lowest that node ``i`` has seen so far.

    `choose_lower_id` chooses an id below the recorded one.
    """
    node = state.nodes[i]
    if is_less(high, low, node.lowest_high, node.lowest_low):
        node.lowest_high, node.lowest_low = high, low


@compiled
def choose_lower_id(core, state, i):
    """Choose a new mesh id for node ``i`` that is lower than every id that the node has seen.

    The lowest 24 bits of the new id are the hop count 0 and the mark. Its other bits form a number: the number in the
    lowest seen id, minus a random number of 64 bits, minus 1. If the difference would be negative, the new id is
    random.
    """
    node = state.nodes[i]
    note_lowest(state, i, node.mesh_high, node.mesh_low)
    distance = stream_bits(core, i)
    distance_high, distance_low = distance >> _OTHER_BITS, distance << _MARKED_BITS
    lowest_low = (node.lowest_low >> _MARKED_BITS) << _MARKED_BITS
    if not is_less(distance_high, distance_low, node.lowest_high, lowest_low):
        # Only a forged id is so low. Two nodes that both chose 0 would see a loop between them forever.
        node.mesh_high = stream_bits(core, i) & OWN_HIGH
        node.mesh_low = set_mark(stream_bits(core, i))
        node.lowest_high, node.lowest_low = node.mesh_high, node.mesh_low
        return
    node.mesh_high, node.mesh_low = _id_below(node.lowest_high, node.lowest_low, distance)
    note_lowest(state, i, node.mesh_high, node.mesh_low)
