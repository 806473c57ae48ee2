"""Access to a node's positions in trees, children, neighbors and distances, compiled."""

from workbench.protocols.tinymq.fast.memory import BROKEN_WAY, NO_KEY, NO_TREE, NO_WAY
from workbench.protocols.tinymq.wire import U16
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled


@compiled
def link_from(state, i, sender):
    """Return the link by which node ``i`` hears a neighbor, or NONE."""
    low = state.in_first[i]
    count = state.in_first[i + 1] - low
    # A binary search without branches, which the processor could mispredict.
    while count > 1:
        half = count >> 1
        low += half if state.senders[low + half] <= sender else 0
        count -= half
    return low if count == 1 and state.senders[low] == sender else NONE


@compiled
def seat_of(state, tree):
    """Return the offset of a tree's position among the positions of a node."""
    return tree if state.every_tree else 0


@compiled
def place_in(state, i, tree):
    """Return the row of a node's position in a tree, with or without a key, or NONE."""
    place = i * state.seats + seat_of(state, tree)
    it = state.places[place]
    return place if it.is_used and it.tree == tree else NONE


@compiled
def keyed_place_in(state, i, tree):
    """Return the row of a node's position in a tree if it has a key there now, or NONE."""
    place = place_in(state, i, tree)
    return NONE if place == NONE or state.places[place].key == NO_KEY else place


@compiled
def is_attached(state, i):
    """Return whether a node has a key in any tree."""
    for place in range(i * state.seats, (i + 1) * state.seats):
        if state.places[place].is_used and state.places[place].key != NO_KEY:
            return True
    return False


@compiled
def is_known_tree(state, i, tree):
    """Return whether a node has a path to a tree."""
    return state.distances[i, tree].next_hop > BROKEN_WAY


@compiled
def own_tree(state, i):
    """Return the tree with the nearest root among those in which the node has a key, or NO_TREE."""
    best, fewest = NO_TREE, 0
    for place in range(i * state.seats, (i + 1) * state.seats):
        it = state.places[place]
        if it.is_used and it.key != NO_KEY:
            hops = state.distances[i, it.tree].hops if is_known_tree(state, i, it.tree) else U16
            if best == NO_TREE or hops < fewest:
                best, fewest = it.tree, hops
    return best


@compiled
def towards(state, i, tree):
    """Return the next hop to a tree's root, or NONE; must not be called at that root."""
    hop = state.distances[i, tree].next_hop
    return NONE if hop in (NO_WAY, BROKEN_WAY) else hop


@compiled
def told_key(state, link, seat, tree):
    """Return the key in a tree of the neighbor at a link, from its last info, or NONE."""
    told = state.told_places[link, seat]
    return told.key if told.is_there and told.tree == tree else NONE


# Children: linked in the order of their slots.


@compiled
def child_of(state, place, i, neighbor):
    """Return the link of a neighbor that is a child at a position of node ``i``, or NONE."""
    link = link_from(state, i, neighbor)
    return link if link != NONE and state.children[link, place - i * state.seats].slot != NONE else NONE


@compiled
def remove_child(state, place, i, link):
    """Remove a child and free its slot."""
    children, rows = state.places[place].children, state.children[:, place - i * state.seats]
    before, other = NONE, children.first
    while other != link:
        before, other = other, rows[other].next
    twin.remove_behind(children, rows, before, link)
    rows[link].slot = NONE
    state.nodes[i].is_changed = 1


@compiled
def add_child(state, place, i, link, slot):
    """Assign a slot to a neighbor, which may already be a child in another slot."""
    children, rows = state.places[place].children, state.children[:, place - i * state.seats]
    if rows[link].slot != NONE:
        remove_child(state, place, i, link)
    before, behind = NONE, children.first
    while behind != NONE and rows[behind].slot < slot:
        before, behind = behind, rows[behind].next
    rows[link].slot = slot
    twin.append_behind(children, rows, before, link)
    state.nodes[i].is_changed = 1


@compiled
def has_slot(state, place, i, link, slot):
    """Return whether a child other than the one at ``link`` has a slot."""
    rows = state.children[:, place - i * state.seats]
    other = state.places[place].children.first
    while other != NONE:
        if other != link and rows[other].slot == slot:
            return True
        other = rows[other].next
    return False


@compiled
def free_slot(state, place, i, link):
    """Return the first slot that no child other than the one at ``link`` has: `zones.free_slot`."""
    rows = state.children[:, place - i * state.seats]
    slot = 0
    other = state.places[place].children.first
    while other != NONE:
        if other != link and rows[other].slot == slot:
            slot += 1
        other = rows[other].next
    return slot


@compiled
def remove_all_children(state, place, i):
    """Remove all children of a node that has left its position in the tree."""
    rows = state.children[:, place - i * state.seats]
    link = state.places[place].children.first
    while link != NONE:
        rows[link].slot = NONE
        link = rows[link].next
    twin.clear(state.places[place].children)
