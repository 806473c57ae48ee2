"""Compiled functions that read and change a node's positions in trees, children, neighbors and distances.

A node's *position* in a tree is its parent, its key and its children there, a row of ``positions``. See `memory`.
"""

from workbench.protocols.tinymq.fast.memory import BROKEN_PATH, NO_KEY, NO_PATH, NO_TREE
from workbench.protocols.tinymq.wire import U16
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled


@compiled
def link_from(state, i, sender):
    """Return the link on which node ``i`` hears the neighbor ``sender``; NONE if the node does not hear it."""
    first_link = state.in_first[i]
    link_count = state.in_first[i + 1] - first_link
    # A binary search without branches, which the processor could mispredict.
    while link_count > 1:
        half_count = link_count >> 1
        first_link += half_count if state.senders[first_link + half_count] <= sender else 0
        link_count -= half_count
    return first_link if link_count == 1 and state.senders[first_link] == sender else NONE


@compiled
def offset_of(state, tree):
    """Return the offset (0, 1, ...) of a tree's position among the rows of ``positions`` that belong to one node.

    The offset is the tree's number if each node has a position in every tree, and 0 otherwise.
    """
    return tree if state.every_tree else 0


@compiled
def position_in(state, i, tree):
    """Return the row of node ``i``'s position in a tree, with or without a key; NONE if it has no position there."""
    position = i * state.positions_per_node + offset_of(state, tree)
    position_record = state.positions[position]
    return position if position_record.is_used and position_record.tree == tree else NONE


@compiled
def keyed_position_in(state, i, tree):
    """Return the row of node ``i``'s position in a tree; NONE if the node has no position there, or no key."""
    position = position_in(state, i, tree)
    return NONE if position == NONE or state.positions[position].key == NO_KEY else position


@compiled
def is_attached(state, i):
    """Return whether node ``i`` has a key in any tree."""
    for position in range(i * state.positions_per_node, (i + 1) * state.positions_per_node):
        if state.positions[position].is_used and state.positions[position].key != NO_KEY:
            return True
    return False


@compiled
def is_known_tree(state, i, tree):
    """Return whether node ``i`` has a path to a tree's root."""
    return state.distances[i, tree].next_hop > BROKEN_PATH


@compiled
def own_tree(state, i):
    """Return the tree with the nearest root among the trees in which node ``i`` has a key, or NO_TREE."""
    nearest_tree, fewest_hops = NO_TREE, 0
    for position in range(i * state.positions_per_node, (i + 1) * state.positions_per_node):
        position_record = state.positions[position]
        if position_record.is_used and position_record.key != NO_KEY:
            hops = (
                state.distances[i, position_record.tree].hops if is_known_tree(state, i, position_record.tree) else U16
            )
            if nearest_tree == NO_TREE or hops < fewest_hops:
                nearest_tree, fewest_hops = position_record.tree, hops
    return nearest_tree


@compiled
def next_hop_to(state, i, tree):
    """Return the next hop from node ``i``, which is not the root, to a tree's root; NONE if the node has no path."""
    hop = state.distances[i, tree].next_hop
    return NONE if hop in (NO_PATH, BROKEN_PATH) else hop


@compiled
def announced_key(state, link, offset, tree):
    """Return the row in ``keys`` of a neighbor's key in a tree, as its last info (status broadcast) announced it.

    Returns NONE if the info announced no key in this tree. ``link``: the link on which the neighbor is heard;
    ``offset``: the result of `offset_of` for the tree.
    """
    announced_position = state.announced_positions[link, offset]
    return announced_position.key if announced_position.is_valid and announced_position.tree == tree else NONE


# The children of a position are a linked list, in the order of their slots.


@compiled
def child_of(state, position, i, neighbor):
    """Return the link on which node ``i`` hears its child ``neighbor``, or NONE if the neighbor is not its child.

    ``position``: row of the node's position in the tree in question.
    """
    link = link_from(state, i, neighbor)
    return link if link != NONE and state.children[link, position - i * state.positions_per_node].slot != NONE else NONE


@compiled
def remove_child(state, position, i, link):
    """Remove a child of node ``i`` in a tree, and free the child's slot.

    ``position``: row of the node's position in the tree; ``link``: the link on which the node hears the child.
    """
    child_list, child_rows = (
        state.positions[position].children,
        state.children[:, position - i * state.positions_per_node],
    )
    previous_link, other_link = NONE, child_list.first
    while other_link != link:
        previous_link, other_link = other_link, child_rows[other_link].next
    twin.remove_behind(child_list, child_rows, previous_link, link)
    child_rows[link].slot = NONE
    state.nodes[i].is_changed = 1


@compiled
def add_child(state, position, i, link, slot):
    """Make a neighbor a child of node ``i`` in a tree, with the number ``slot`` among the children.

    ``position``: row of the node's position in the tree; ``link``: the link on which the node hears the neighbor. If
    the neighbor is already a child, its former slot becomes free.
    """
    child_list, child_rows = (
        state.positions[position].children,
        state.children[:, position - i * state.positions_per_node],
    )
    if child_rows[link].slot != NONE:
        remove_child(state, position, i, link)
    previous_link, next_link = NONE, child_list.first
    while next_link != NONE and child_rows[next_link].slot < slot:
        previous_link, next_link = next_link, child_rows[next_link].next
    child_rows[link].slot = slot
    twin.append_behind(child_list, child_rows, previous_link, link)
    state.nodes[i].is_changed = 1


@compiled
def has_slot(state, position, i, link, slot):
    """Return whether a slot (a child's number, which sets its key) belongs to a child other than that at ``link``.

    ``position``: row of node ``i``'s position in the tree; ``link``: the link on which the node hears a neighbor.
    """
    child_rows = state.children[:, position - i * state.positions_per_node]
    other_link = state.positions[position].children.first
    while other_link != NONE:
        if other_link != link and child_rows[other_link].slot == slot:
            return True
        other_link = child_rows[other_link].next
    return False


@compiled
def free_slot(state, position, i, link):
    """Return the lowest slot (a child's number, which sets its key) that no child of node ``i`` has.

    ``position``: row of the node's position in the tree; ``link``: the link on which the node hears a neighbor. If that
    neighbor is a child, its slot counts as free.
    """
    child_rows = state.children[:, position - i * state.positions_per_node]
    slot = 0
    other_link = state.positions[position].children.first
    while other_link != NONE:
        if other_link != link and child_rows[other_link].slot == slot:
            slot += 1
        other_link = child_rows[other_link].next
    return slot


@compiled
def remove_all_children(state, position, i):
    """Remove all children of node ``i`` in a tree that the node leaves.

    ``position``: row of the node's position in this tree.
    """
    child_rows = state.children[:, position - i * state.positions_per_node]
    link = state.positions[position].children.first
    while link != NONE:
        child_rows[link].slot = NONE
        link = child_rows[link].next
    twin.clear(state.positions[position].children)
