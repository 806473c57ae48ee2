"""Mesh ids of DPS's twin: `workbench.protocols.dps.mesh_ids`.

An id of 128 bits is two words; that of a neighbor which has told none has all bits set.
"""

import numpy as np

from workbench.protocols.dps import rules
from workbench.protocols.dps.automaton import MUTED
from workbench.protocols.dps.fast.state import NO_MESH
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

_UNTOLD = np.uint64(NO_MESH)
_NOTHING, _ONE = np.uint64(0), np.uint64(1)
_BYTES = np.uint64(0x00FF00FF00FF00FF)
_PAIRS = np.uint64(0x0000FFFF0000FFFF)
_MARK, _MARKED = np.uint64(rules.MARK), np.uint64(rules.MARKED)
OWN_HIGH = np.uint64(0x00FFFFFFFFFFFFFF)  # the byte that counts most is 0
_MARKED_BITS, _OTHER_BITS = np.uint64(24), np.uint64(64 - 24)


@compiled
def stream_bits(core, i):
    """The next 64 random bits of node ``i``'s own stream."""
    core.drawn[i] += 1
    return twin.bits(core.protocol_keys[i], core.drawn[i] - 1)


@compiled
def swapped(word):
    """The bytes of a word the other way round."""
    word = ((word >> np.uint64(8)) & _BYTES) | ((word & _BYTES) << np.uint64(8))
    word = ((word >> np.uint64(16)) & _PAIRS) | ((word & _PAIRS) << np.uint64(16))
    return (word >> np.uint64(32)) | (word << np.uint64(32))


@compiled
def is_less(high, low, than_high, than_low):
    """Whether one mesh id is below another."""
    return high < than_high or (high == than_high and low < than_low)


@compiled
def marked(low):
    """The low word of an id with the mark, and no hops."""
    return ((low >> _MARKED_BITS) << _MARKED_BITS) | _MARK


@compiled
def _marks_of(low):
    """The bytes of an id by which rules decide: its hops and its mark."""
    return np.int64(low & _MARKED)


@compiled
def owner_low(low):
    """The low word of an id as its owner made it."""
    return low - np.uint64(rules.hops_of(_marks_of(low)))


@compiled
def is_same_owner(high, low, other_high, other_low):
    """Whether two ids have one owner."""
    return high == other_high and owner_low(low) == owner_low(other_low)


@compiled
def note_mesh_id(it, high, low):
    """Note a mesh id that has come from a neighbor, and whether it has come from farther than before."""
    is_same = is_same_owner(high, low, it.mesh_high, it.mesh_low)
    it.rises = rules.rises_after(
        np.int64(it.rises), is_same, rules.hops_of(_marks_of(low)), rules.hops_of(_marks_of(it.mesh_low))
    )
    it.mesh_high, it.mesh_low = high, low


@compiled
def low_there(it, low):
    """The low word of an id as a neighbor is told it: without hops until it has shown that it counts these."""
    return low if it.counts_hops else owner_low(low)


@compiled
def mesh_id_here(it):
    """What a neighbor's mesh id counts for here: one hop more, or no id if it only goes round."""
    more = rules.hop_to_add(_marks_of(it.mesh_low))
    if more < 0 or rules.is_circulating(np.int64(it.rises)):
        return _UNTOLD, _UNTOLD
    return it.mesh_high, it.mesh_low + np.uint64(more)


@compiled
def _below(high, low, by):
    """The marked id that is ``by`` and one below another, not counting the bytes of hops and mark."""
    low, by_high, by_low = (low >> _MARKED_BITS) << _MARKED_BITS, by >> _OTHER_BITS, by << _MARKED_BITS
    high = high - by_high - (_ONE if low < by_low else _NOTHING)
    low = low - by_low
    step = _ONE << _MARKED_BITS
    return high - (_ONE if low < step else _NOTHING), (low - step) | _MARK


@compiled
def owner_number(high, low):
    """The number of an id's owner in events, NONE without an id."""
    return NONE if high == _UNTOLD and low == _UNTOLD else np.int64(high >> _ONE)


@compiled
def forget_mesh(it):
    """A neighbor has told no mesh id."""
    it.mesh_high = _UNTOLD
    it.mesh_low = _UNTOLD


@compiled
def forget_told(it):
    """A neighbor has been told no mesh id."""
    it.told_high = _UNTOLD
    it.told_low = _UNTOLD


@compiled
def lowest_but(state, i, but):
    """The lowest mesh id on this side of a link."""
    node = state.nodes[i]
    high, low = node.mesh_high, node.mesh_low
    link = np.int64(node.links.first)
    while link != NONE:
        it = state.links[link]
        if link != but and rules.is_connecting(it.state):
            here_high, here_low = mesh_id_here(it)
            if is_less(here_high, here_low, high, low):
                high, low = here_high, here_low
        link = np.int64(it.next)
    return high, low


@compiled
def shows_loop(state, i, link, message):
    """Whether a message's mesh id is of the owner of this node's own, or of the lowest but that neighbor's."""
    letter, node = state.letters[message], state.nodes[i]
    if rules.hop_to_add(_marks_of(letter.mesh_low)) < 0:
        return False
    high, low = lowest_but(state, i, link)
    is_own = is_same_owner(letter.mesh_high, letter.mesh_low, node.mesh_high, node.mesh_low)
    return is_own or is_same_owner(letter.mesh_high, letter.mesh_low, high, low)


@compiled
def lowest_two(state, i):
    """(the link that told the lowest mesh id, that id, the lowest that the others told): of links, not of the node."""
    source, high, low, second_high, second_low = NONE, _UNTOLD, _UNTOLD, _UNTOLD, _UNTOLD
    link = np.int64(state.nodes[i].links.first)
    while link != NONE:
        it = state.links[link]
        if rules.is_connecting(it.state):
            here_high, here_low = mesh_id_here(it)
            if is_less(here_high, here_low, high, low):
                source, second_high, second_low = link, high, low
                high, low = here_high, here_low
            elif is_less(here_high, here_low, second_high, second_low):
                second_high, second_low = here_high, here_low
        link = np.int64(it.next)
    return source, high, low, second_high, second_low


@compiled
def was_told_otherwise(state, i, link, ids):
    """Whether an active neighbor was told another id than it would be told now; ``ids``: the node's `lowest_two`."""
    it, node = state.links[link], state.nodes[i]
    source, high, low, second_high, second_low = ids
    if link == source:
        high, low = second_high, second_low
    if is_less(node.mesh_high, node.mesh_low, high, low):
        high, low = node.mesh_high, node.mesh_low
    return rules.takes_publications(it.state) and (it.told_high != high or it.told_low != low_there(it, low))


@compiled
def is_apart(state, i, link):
    """Return whether a muted neighbor has told a lower mesh id than all that are known here."""
    it = state.links[link]
    if it.state != MUTED or it.pending or rules.hop_to_add(_marks_of(it.mesh_low)) < 0:
        return False
    high, low = lowest_but(state, i, link)
    return not is_same_owner(it.mesh_high, it.mesh_low, high, low) and is_less(it.mesh_high, it.mesh_low, high, low)


@compiled
def heard(state, i, high, low):
    """An id has come; one that is made later will be below it."""
    node = state.nodes[i]
    if is_less(high, low, node.lowest_high, node.lowest_low):
        node.lowest_high, node.lowest_low = high, low


@compiled
def go_below(core, state, i):
    """Take an own id below all that were seen, by 64 random bits."""
    node = state.nodes[i]
    heard(state, i, node.mesh_high, node.mesh_low)
    by = stream_bits(core, i)
    by_high, by_low = by >> _OTHER_BITS, by << _MARKED_BITS
    lowest_low = (node.lowest_low >> _MARKED_BITS) << _MARKED_BITS
    if not is_less(by_high, by_low, node.lowest_high, lowest_low):
        # Only a forged one is so low. Two that both took 0 would see a loop between them for ever.
        node.mesh_high = stream_bits(core, i) & OWN_HIGH
        node.mesh_low = marked(stream_bits(core, i))
        node.lowest_high, node.lowest_low = node.mesh_high, node.mesh_low
        return
    node.mesh_high, node.mesh_low = _below(node.lowest_high, node.lowest_low, by)
    heard(state, i, node.mesh_high, node.mesh_low)
