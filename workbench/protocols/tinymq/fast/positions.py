"""Access to a node's positions in trees, children, neighbors and distances, compiled."""

from workbench.protocols.tinymq.fast.memory import BROKEN_PATH, NO_KEY, NO_PATH, NO_TREE
from workbench.protocols.tinymq.wire import U16
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled


@compiled
def link_from(state, i, sender):
    """Return the link on which node ``i`` hears the neighbor ``sender``, or NONE if it is not a neighbor."""
    low = state.in_first[i]
    count = state.in_first[i + 1] - low
    # A binary search without branches, which the processor could mispredict.
    while count > 1:
        half = count >> 1
        low += half if state.senders[low + half] <= sender else 0
        count -= half
    return low if count == 1 and state.senders[low] == sender else NONE


@compiled
def offset_of(state, tree):
    """Return the offset of the position in a tree, within the rows of a node's positions."""
    return tree if state.every_tree else 0


@compiled
def position_in(state, i, tree):
    """Return the row of a node's position in a tree, with or without a key, or NONE."""
    position = i * state.positions_per_node + offset_of(state, tree)
    record = state.positions[position]
    return position if record.is_used and record.tree == tree else NONE


@compiled
def keyed_position_in(state, i, tree):
    """Return the row of a node's position in a tree if it has a key there now, or NONE."""
    position = position_in(state, i, tree)
    return NONE if position == NONE or state.positions[position].key == NO_KEY else position


@compiled
def is_attached(state, i):
    """Return whether a node has a key in any tree."""
    for position in range(i * state.positions_per_node, (i + 1) * state.positions_per_node):
        if state.positions[position].is_used and state.positions[position].key != NO_KEY:
            return True
    return False


@compiled
def is_known_tree(state, i, tree):
    """Return whether a node has a path to a tree."""
    return state.distances[i, tree].next_hop > BROKEN_PATH


@compiled
def own_tree(state, i):
    """Return the tree with the nearest root among those in which the node has a key, or NO_TREE."""
    best, fewest = NO_TREE, 0
    for position in range(i * state.positions_per_node, (i + 1) * state.positions_per_node):
        record = state.positions[position]
        if record.is_used and record.key != NO_KEY:
            hops = state.distances[i, record.tree].hops if is_known_tree(state, i, record.tree) else U16
            if best == NO_TREE or hops < fewest:
                best, fewest = record.tree, hops
    return best


@compiled
def next_hop_to(state, i, tree):
    """Return the next hop to a tree's root, or NONE without a path. Must not be called for the root itself."""
    hop = state.distances[i, tree].next_hop
    return NONE if hop in (NO_PATH, BROKEN_PATH) else hop


@compiled
def announced_key(state, link, offset, tree):
    """Return the key in a tree of the neighbor at a link, from its last info, or NONE."""
    announced = state.announced_positions[link, offset]
    return announced.key if announced.is_valid and announced.tree == tree else NONE


# The children of a position are a linked list, in the order of their slots.


@compiled
def child_of(state, position, i, neighbor):
    """Return the link of a neighbor if it is a child at a position of node ``i``, or NONE."""
    link = link_from(state, i, neighbor)
    return link if link != NONE and state.children[link, position - i * state.positions_per_node].slot != NONE else NONE


@compiled
def remove_child(state, position, i, link):
    """Remove the child with a link from a position of node ``i``, and free its slot."""
    children, rows = state.positions[position].children, state.children[:, position - i * state.positions_per_node]
    previous, other = NONE, children.first
    while other != link:
        previous, other = other, rows[other].next
    twin.remove_behind(children, rows, previous, link)
    rows[link].slot = NONE
    state.nodes[i].is_changed = 1


@compiled
def add_child(state, position, i, link, slot):
    """Make the neighbor with a link a child in a slot. If it is a child already, it leaves its former slot."""
    children, rows = state.positions[position].children, state.children[:, position - i * state.positions_per_node]
    if rows[link].slot != NONE:
        remove_child(state, position, i, link)
    previous, next_row = NONE, children.first
    while next_row != NONE and rows[next_row].slot < slot:
        previous, next_row = next_row, rows[next_row].next
    rows[link].slot = slot
    twin.append_behind(children, rows, previous, link)
    state.nodes[i].is_changed = 1


@compiled
def has_slot(state, position, i, link, slot):
    """Return whether a slot belongs to a child other than the child with ``link``."""
    rows = state.children[:, position - i * state.positions_per_node]
    other = state.positions[position].children.first
    while other != NONE:
        if other != link and rows[other].slot == slot:
            return True
        other = rows[other].next
    return False


@compiled
def free_slot(state, position, i, link):
    """Return the lowest free slot, where the slot of the child with ``link`` counts as free: `zones.free_slot`."""
    rows = state.children[:, position - i * state.positions_per_node]
    slot = 0
    other = state.positions[position].children.first
    while other != NONE:
        if other != link and rows[other].slot == slot:
            slot += 1
        other = rows[other].next
    return slot


@compiled
def remove_all_children(state, position, i):
    """Remove all children at a position that node ``i`` has left."""
    rows = state.children[:, position - i * state.positions_per_node]
    link = state.positions[position].children.first
    while link != NONE:
        rows[link].slot = NONE
        link = rows[link].next
    twin.clear(state.positions[position].children)
