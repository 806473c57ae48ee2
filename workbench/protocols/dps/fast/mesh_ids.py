"""Mesh ids of DPS's twin: `workbench.protocols.dps.mesh_ids`.

An id of 128 bits is two words; that of a neighbor which has told none has all bits set.
"""

import numpy as np

from workbench.protocols.dps.fast.state import NO_MESH
from workbench.protocols.dps.rules import joins as _joins
from workbench.protocols.dps.rules import takes_publications as _takes_publications
from workbench.sim.fast.draws import bits
from workbench.sim.fast.layout import NONE
from workbench.sim.fast.reference import inlined

joins, takes_publications = inlined(_joins), inlined(_takes_publications)

_UNTOLD = np.uint64(NO_MESH)
_NOTHING, _ONE = np.uint64(0), np.uint64(1)
_BYTES = np.uint64(0x00FF00FF00FF00FF)
_PAIRS = np.uint64(0x0000FFFF0000FFFF)


@inlined
def stream_bits(core, i):
    """The next 64 random bits of node ``i``'s own stream."""
    core.drawn[i] += 1
    return bits(core.protocol_keys[i], core.drawn[i] - 1)


@inlined
def swapped(word):
    """The bytes of a word the other way round."""
    word = ((word >> np.uint64(8)) & _BYTES) | ((word & _BYTES) << np.uint64(8))
    word = ((word >> np.uint64(16)) & _PAIRS) | ((word & _PAIRS) << np.uint64(16))
    return (word >> np.uint64(32)) | (word << np.uint64(32))


@inlined
def is_less(high, low, than_high, than_low):
    """Whether one mesh id is below another."""
    return high < than_high or (high == than_high and low < than_low)


@inlined
def _below(high, low, by):
    """The mesh id that is ``by`` and one below another."""
    borrow = _ONE if low <= by else _NOTHING
    return high - borrow, low - by - _ONE


@inlined
def forget_mesh(it):
    """A neighbor has told no mesh id."""
    it.mesh_high = _UNTOLD
    it.mesh_low = _UNTOLD


@inlined
def forget_told(it):
    """A neighbor has been told no mesh id."""
    it.told_high = _UNTOLD
    it.told_low = _UNTOLD


@inlined
def lowest_but(state, i, but):
    """The lowest mesh id on this side of a link."""
    node = state.nodes[i]
    high, low = node.mesh_high, node.mesh_low
    link = np.int64(node.links.first)
    while link != NONE:
        it = state.links[link]
        counts = link != but and joins(it.state)
        if counts and is_less(it.mesh_high, it.mesh_low, high, low):
            high, low = it.mesh_high, it.mesh_low
        link = np.int64(it.next)
    return high, low


@inlined
def shows_loop(state, i, link, message):
    """Whether a message from a neighbor has this node's own mesh id, or the lowest that another neighbor has told."""
    letter, node = state.letters[message], state.nodes[i]
    high, low = lowest_but(state, i, link)
    is_own = letter.mesh_high == node.mesh_high and letter.mesh_low == node.mesh_low
    return is_own or (letter.mesh_high == high and letter.mesh_low == low)


@inlined
def lowest_two(state, i):
    """(the link that told the lowest mesh id, that id, the lowest that the others told): of links, not of the node."""
    source, high, low, second_high, second_low = np.int64(NONE), _UNTOLD, _UNTOLD, _UNTOLD, _UNTOLD
    link = np.int64(state.nodes[i].links.first)
    while link != NONE:
        it = state.links[link]
        if joins(it.state):
            if is_less(it.mesh_high, it.mesh_low, high, low):
                source, second_high, second_low = link, high, low
                high, low = it.mesh_high, it.mesh_low
            elif is_less(it.mesh_high, it.mesh_low, second_high, second_low):
                second_high, second_low = it.mesh_high, it.mesh_low
        link = np.int64(it.next)
    return source, high, low, second_high, second_low


@inlined
def was_told_otherwise(state, i, link, ids):
    """Whether an active neighbor was told another id than it would be told now; ``ids``: the node's `lowest_two`."""
    it, node = state.links[link], state.nodes[i]
    source, high, low, second_high, second_low = ids
    if link == source:
        high, low = second_high, second_low
    if is_less(node.mesh_high, node.mesh_low, high, low):
        high, low = node.mesh_high, node.mesh_low
    return takes_publications(it.state) and (it.told_high != high or it.told_low != low)


@inlined
def heard(state, i, high, low):
    """An id has come; one that is made later will be below it."""
    node = state.nodes[i]
    if is_less(high, low, node.lowest_high, node.lowest_low):
        node.lowest_high, node.lowest_low = high, low


@inlined
def go_below(core, state, i):
    """Take an own id below all that were seen, by 64 random bits."""
    node = state.nodes[i]
    heard(state, i, node.mesh_high, node.mesh_low)
    by = stream_bits(core, i)
    if node.lowest_high == _NOTHING and node.lowest_low <= by:
        # Only a forged one is so low. Two that both took 0 would see a loop between them for ever.
        node.mesh_high = stream_bits(core, i)
        node.mesh_low = stream_bits(core, i)
        node.lowest_high, node.lowest_low = node.mesh_high, node.mesh_low
        return
    node.mesh_high, node.mesh_low = _below(node.lowest_high, node.lowest_low, by)
    heard(state, i, node.mesh_high, node.mesh_low)
