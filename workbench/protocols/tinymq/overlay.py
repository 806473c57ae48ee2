"""The overlay: the trees that a node is in, its keys there, and its distances to the roots of the other trees.

The rules (which neighbor may be the parent, which path is better, when a neighbor is lost) are in `rules.py`.

Theory of operation
    A root counts *epochs*: every ``info_s`` it broadcasts its *info* with the next epoch. A node without a position
    answers the first info it hears with a *join*. The neighbor becomes its parent: it reserves its first free slot for
    the child and sends the resulting key in a *grant*. From then on the node broadcasts infos itself: when its key or a
    distance has changed, when its parent's info brings a new epoch, and when its last info is old. An info holds the
    node's position (tree, epoch, parent, key) and its distances to all roots. Infos are not acknowledged, so an info
    that announces a change is repeated after a quarter of a second, and then after intervals that double up to
    ``info_s``.

    Keys follow the parent. A child derives its key from its parent's info and its own slot, so one info per node
    renews the keys of a subtree that has moved. If a node claims to be a child with a key that the parent did not
    grant, the parent grants it a key again, with another slot if necessary.

    Distances follow DSDV. A distance of a newer epoch replaces the known distance. So does a shorter distance of the
    same epoch, or an equal distance from a neighbor with a lower address. Thus distances can rise after failures, and
    next hops never form a loop. A longer distance of a newer epoch counts only if it comes from the next hop, or if the
    next hop is lost: epochs spread at different speeds, and otherwise distances would swing with each epoch. A path
    lasts as long as its next hop does, however old its epoch. After a repair the shorter of two paths may bring each
    epoch later than the longer path. Then the node takes no newer epoch until the shorter path has reached the node's
    own epoch, and switches to the shorter path.

Repair
    A neighbor is lost if it does not acknowledge, or is not heard for ``lost_after`` times ``info_s``. A node loses its
    position if its parent is lost or has left the tree, or if its tree has brought no new epoch for twice that time.
    Then the node sends no infos, and joins again. In its own tree it joins only a neighbor whose epoch is newer than
    the last epoch that the node had there. No descendant has such an epoch, because epochs reach descendants through
    the node, so no cycle can arise. The node's children keep their slots meanwhile, and get new keys when the node has
    a position again. If the node gets no position, or a position in another tree, the children join again too.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.protocols.contract import NOBODY
from workbench.protocols.recent import RecentIds
from workbench.protocols.tinymq import wire
from workbench.protocols.tinymq.events import ZoneSet
from workbench.protocols.tinymq.rules import (
    FIRST_REPEAT_US,
    WIDEST_LOGGED,
    is_awaited,
    is_better_parent,
    is_better_path,
    is_cut_off,
    is_in_doubt,
    is_info_due,
    is_late,
    is_repeated,
    is_silent,
    join_pause_us,
    longest_slot,
    may_be_parent,
    most_named,
    remaining_namings,
)
from workbench.protocols.tinymq.unicast import MOST_NEIGHBORS
from workbench.protocols.tinymq.zones import ROOT_KEY, child_key, free_slot, slot_of, universe, zone


class Neighbor:
    """The state of a neighbor, mostly from its last info (status broadcast).

    positions: tree -> InfoPosition; since_us: tree -> time in µs when the neighbor was first heard in that tree;
    heard_us: time in µs when the neighbor was last heard; hears_us: whether the neighbor is known to hear this node;
    distances: the distances in the neighbor's last info if they do not count yet, because hears_us was False, else ();
    named_us: time in µs when an info of this node last named the neighbor, -1 if never; namings_left: number of further
    infos that must name the neighbor, because it has named this node.
    """

    def __init__(self):
        self.heard_us = 0
        self.hears_us = False
        self.distances = ()
        self.named_us = -1
        self.namings_left = 0
        self.positions = {}
        self.since_us = {}


class Distance:
    """The distance to a root: epoch, hops and next hop.

    An epoch is a root's counter. If the path is broken, next_hop is None until a newer epoch arrives. risen_epoch: the
    epoch in which hops last rose; late_us: time in µs when a neighbor last offered a shorter path of an older epoch
    (`rules.is_late`), or -1.
    """

    def __init__(self, epoch, hops, next_hop):
        self.epoch = epoch
        self.hops = hops
        self.next_hop = next_hop
        self.risen_epoch = epoch
        self.late_us = -1


class Joining:
    """A join (request for a parent) that is planned, or waits for its grant (the answer with the key).

    send_us: time in µs at which to send the join, None once it is sent; give_up_us: time in µs at which to stop waiting
    for the grant, None until the join is sent.
    """

    def __init__(self, neighbor, send_us):
        self.neighbor = neighbor
        self.send_us = send_us
        self.give_up_us = None


class Position:
    """A node's position in a tree: its parent, its key and its children.

    If the node has lost its position, the key is None, but the epoch (the root's counter) and the children's slots
    (their numbers) are kept. epoch_us: time in µs at which the newest epoch arrived.
    """

    def __init__(self, tree, parent, epoch, key, now):
        self.tree = tree
        self.parent = parent
        self.epoch = epoch
        self.epoch_us = now
        self.key = key
        self.children = {}  # address -> slot
        self.logged_zone = ()
        self.is_changed = True  # whether it has changed since its zone was compared with the logged one
        self._regions = None

    def clear_regions(self):
        """Discard the cached result of `regions`; call this after a change of the key or of the children."""
        self.is_changed = True
        self._regions = None

    def child_keys(self):
        """Return [(address, key)] of the children, sorted by slot (a child's number at the parent)."""
        slots_and_addresses = sorted([(slot, address) for address, slot in self.children.items()])
        return [(address, child_key(self.key, slot)) for slot, address in slots_and_addresses]

    def regions(self, key_bits):
        """Return (universe, zone, [(child, universe of the child)]) of this position, which must have a key.

        A universe contains all strings that begin with a key. The zone contains the strings that this node stores. Each
        universe and the zone are regions: tuples of intervals (lowest string, highest string).
        """
        if self._regions is None:
            children = self.child_keys()
            own_zone = zone(self.key, [child_key for _, child_key in children], key_bits)
            child_universes = [(address, universe(child_key, key_bits)) for address, child_key in children]
            self._regions = universe(self.key, key_bits), own_zone, child_universes
        return self._regions


class Overlay:
    """The overlay as one node sees it: its positions in trees, its neighbors, and its distances to the roots.

    The node passes infos (status broadcasts), joins, grants and the time to this object. It broadcasts the infos that
    `wake` returns. The object sends grants, joins and probes with ``unicast``. It calls ``listener`` at once after
    these changes:

        tree_found(now)              a tree has become reachable
        key_changed(position, now)   the node has a new key in a tree, or has lost its key there (position.key: None)
        child_added(position, child, child_universe, now)   a child has been granted a key

    ``child_universe`` is the child's universe, the strings that begin with its key, as intervals ((lowest, highest),).
    """

    def __init__(self, address, settings, random, unicast, listener):
        self.address = address
        self.settings = settings
        self.times = settings.times
        self.random = random
        self.unicast = unicast
        self.listener = listener
        self.positions = {}  # tree -> Position
        self.neighbors = {}  # address -> Neighbor
        self.distances = {}  # tree -> Distance
        self.left_epochs = {}  # tree -> the newest epoch of a position that was given up there
        self.joining = {}  # tree -> Joining
        self._failed_joins = RecentIds(MOST_NEIGHBORS)  # neighbor -> (joins failed in a row, when to try again)
        self.info_due_us = None  # when the planned info is sent
        self.tick_us = None  # when the periodic work is due
        self._repeat_us = None  # when the last info is repeated
        self._repeat_after_us = 0  # pause before the next repetition; 0: the last info announced no change
        self._info_sent_us = 0

    def start(self, epoch, now):
        """Start the overlay; a root takes the root's position in its own tree.

        ``epoch``: the first value of the counter that a root increments periodically. The periodic work begins at a
        random time, so that the nodes do not do it at the same time.
        """
        if self.address in self.settings.roots:
            tree = self.settings.roots.index(self.address)
            self.positions[tree] = Position(tree, NOBODY, epoch, ROOT_KEY, now)
            self.distances[tree] = Distance(epoch, 0, NOBODY)
            self._announce_change(now)
        info_us = self.times.info_us
        if info_us:
            self.tick_us = now + info_us // 2 + self.random.below(info_us)

    # Queries of the node and the router

    def position(self, tree):
        """Return this node's position in a tree, or None if the node has no key in this tree now."""
        position = self.positions.get(tree)
        return None if position is None or position.key is None else position

    def is_attached(self):
        """Return whether the node has a key in any tree."""
        return any([position.key is not None for position in self.positions.values()])

    def own_tree(self):
        """Return the tree with the nearest root among the trees in which this node has a key, or None."""
        hops_and_trees = [
            (self._hops_to_root(tree), tree) for tree in self.positions if self.position(tree) is not None
        ]
        return min(hops_and_trees)[1] if hops_and_trees else None

    def _hops_to_root(self, tree):
        """Return the number of hops to a tree's root, or 65535 if this node has no path to the root."""
        distance = self.distances.get(tree)
        return wire.U16 if distance is None or distance.next_hop is None else distance.hops

    def known_trees(self):
        """Return the trees to whose roots this node has a path, in ascending order."""
        return [tree for tree in sorted(self.distances) if self.distances[tree].next_hop is not None]

    def next_hop_to(self, tree):
        """Return the next hop towards a tree's root, or None if this node has no path to the root."""
        distance = self.distances.get(tree)
        return None if distance is None else distance.next_hop

    def was_heard_since(self, neighbor, since_us):
        """Return whether a neighbor is known to hear this node, and was itself heard after the time ``since_us``."""
        neighbor_state = self.neighbors.get(neighbor)
        return neighbor_state is not None and self.is_two_way(neighbor_state) and neighbor_state.heard_us > since_us

    def neighbors_in(self, tree):
        """Return a sorted list of (address, key) of the neighbors that have a key in a tree and hear this node."""
        return [
            (address, self.neighbors[address].positions[tree].key)
            for address in sorted(self.neighbors)
            if tree in self.neighbors[address].positions and self.is_two_way(self.neighbors[address])
        ]

    def key_of(self, neighbor, tree):
        """Return a neighbor's key in a tree, as its last info (status broadcast) announced it, or None."""
        neighbor_state = self.neighbors.get(neighbor)
        position = None if neighbor_state is None else neighbor_state.positions.get(tree)
        return None if position is None else position.key

    # Infos

    def note_answer(self, neighbor, now):
        """Record that a neighbor hears this node, as its unicast frame or acknowledgement has proved."""
        neighbor_state = self.neighbors.get(neighbor)
        if neighbor_state is None:
            return
        neighbor_state.heard_us = now
        if not self.is_two_way(neighbor_state):
            distances, neighbor_state.distances = neighbor_state.distances, ()
            neighbor_state.hears_us = True
            self._update_paths(distances, neighbor, now)

    def take_info(self, info, neighbor, now):
        """Update this node's neighbors, distances, children and key from a neighbor's info (status broadcast)."""
        neighbor_state = self.neighbors.get(neighbor)
        if neighbor_state is None:
            neighbor_state = self.neighbors[neighbor] = Neighbor()
        neighbor_state.heard_us = now
        announced_positions = {announced_position.tree: announced_position for announced_position in info.positions}
        neighbor_state.since_us = {tree: neighbor_state.since_us.get(tree, now) for tree in announced_positions}
        neighbor_state.positions = announced_positions
        own_address = self.address
        if own_address in info.heard:
            neighbor_state.namings_left = remaining_namings(
                neighbor_state.namings_left, neighbor_state.named_us, now, self.times.lost_after_us
            )
        if own_address in info.heard or any(
            [announced_position.parent == own_address for announced_position in info.positions]
        ):
            neighbor_state.hears_us = True
        neighbor_state.distances = () if self.is_two_way(neighbor_state) else info.distances
        if self.is_two_way(neighbor_state) or not self.is_attached():
            self._update_paths(info.distances, neighbor, now)
        for tree in sorted(self.positions):
            self._correct_children(self.positions[tree], announced_positions.get(tree), neighbor, now)
            if self.positions[tree].parent == neighbor and self.positions[tree].key is not None:
                self._follow_parent(self.positions[tree], announced_positions.get(tree), now)
        self.look_for_parent(now)

    def is_two_way(self, known):
        """Return whether the link to a neighbor works both ways, as far as this node knows.

        ``known``: the neighbor's `Neighbor` object. If nodes send no periodic status broadcasts (``info_s=0``), the
        result is True.
        """
        return known.hears_us or not self.times.info_us

    def _update_paths(self, distances, neighbor, now):
        """Update the paths to the roots from the distances that a neighbor announces.

        If the neighbor no longer announces a distance to a root, this node's path to that root through the neighbor is
        broken.
        """
        announced_trees = set()
        for tree, epoch, announced_hops in distances:
            if tree >= len(self.settings.roots) or announced_hops >= wire.U16:
                continue
            announced_trees.add(tree)
            known_distance = self.distances.get(tree)
            if known_distance is None or self._is_better(known_distance, epoch, announced_hops + 1, neighbor, now):
                self._set_distance(tree, epoch, announced_hops + 1, neighbor, now)
            elif is_late(known_distance, epoch, announced_hops + 1):
                known_distance.late_us = now
        for tree in sorted(self.distances):
            if tree not in announced_trees and self.distances[tree].next_hop == neighbor:
                self._break_path(tree, now)

    def _is_better(self, known_distance, epoch, hops, neighbor, now):
        is_other_awaited = is_awaited(known_distance.late_us, now, self.times.lost_after_us)
        return is_better_path(known_distance, known_distance.next_hop is None, epoch, hops, neighbor, is_other_awaited)

    def _set_distance(self, tree, epoch, hops, neighbor, now):
        known_distance = self.distances.get(tree)
        distance = self.distances[tree] = Distance(epoch, hops, neighbor)
        if known_distance is not None and hops <= known_distance.hops:
            distance.risen_epoch = known_distance.risen_epoch
        if known_distance is not None and hops == known_distance.hops:
            distance.late_us = known_distance.late_us
        if known_distance is None or known_distance.next_hop is None:
            self.listener.tree_found(now)
        if known_distance is None or known_distance.next_hop is None or known_distance.hops != hops:
            self._announce_change(now)

    def _break_path(self, tree, now):
        self.distances[tree].next_hop = None
        self._announce_change(now)

    def _correct_children(self, position, claimed_position, neighbor, now):
        """Correct this node's children by the parent and the key that a neighbor's info (status broadcast) announces.

        A child whose info does not name this node as its parent is removed, unless a grant of its key is still pending.
        If the info names this node as the parent, but with a key that this node has not granted to the neighbor, this
        node grants the neighbor a key again.

        ``position``: this node's position in a tree; ``claimed_position``: the neighbor's position in that tree, as its
        info announces it, None if the neighbor has no position there.
        """
        if claimed_position is None or claimed_position.parent != self.address or not claimed_position.key:
            # A child that has no key yet may have sent this info before its grant arrived. Such a child stays.
            if neighbor in position.children and not self.has_no_key_yet(position, neighbor):
                self._remove_child(position, neighbor)
        elif position.key is not None and position.children.get(neighbor) != slot_of(claimed_position.key):
            # This node did not grant that key, or has granted it to another child since: grant a key again.
            self._grant_key(position, neighbor, slot_of(claimed_position.key), now)

    def has_no_key_yet(self, position, child):
        """Return whether a grant to a child is still pending, so that the child may not have its key yet."""
        return self.unicast.is_granting(child, position.tree)

    def _follow_parent(self, position, parent_position, now):
        """Derive this node's key and epoch (the root's counter) in a tree from its parent's position.

        ``position``: this node's position; ``parent_position``: the parent's position, as the parent announces it, or
        None if the parent has left the tree. Without ``parent_position``, or if the key would be too long, the node
        loses its position.
        """
        if parent_position is not None and parent_position.epoch > position.epoch:
            position.epoch, position.epoch_us = parent_position.epoch, now
            self.plan_info(now)
        slot = slot_of(position.key)
        if parent_position is None or slot > longest_slot(len(parent_position.key)):
            self._lose_position(position, now)
        else:
            self._set_key(position, child_key(parent_position.key, slot), now)

    def _announce_change(self, now):
        """Plan to send an info (status broadcast) soon and to repeat it, because keys or distances have changed."""
        self._repeat_after_us = FIRST_REPEAT_US
        self.plan_info(now)

    def plan_info(self, now):
        """Plan to send an info (status broadcast) after a short random time; it will include all changes until then."""
        if self.info_due_us is None:
            half_us = self.times.gather_us // 2
            self.info_due_us = now + half_us + self.random.below(half_us + 1)

    def _make_info(self, now):
        """Return the info (status broadcast) to send now, or None if this node has no key in any tree."""
        self.info_due_us = self._repeat_us = None
        if not self.is_attached():
            return None
        named_addresses = self.choose_named(now)
        self._plan_repetition(now)
        self._info_sent_us = now
        info_positions = [
            wire.InfoPosition(tree, self.positions[tree].epoch, self.positions[tree].parent, self.positions[tree].key)
            for tree in sorted(self.positions)
            if self.position(tree) is not None
        ]
        distances = [
            wire.InfoDistance(tree, self.distances[tree].epoch, self.distances[tree].hops)
            for tree in self.known_trees()
        ]
        return wire.Info(tuple(info_positions), tuple(distances), named_addresses)

    def choose_named(self, now):
        """Return the sorted addresses of the neighbors that the next info (this node's status broadcast) names.

        These neighbors may not know yet that this node hears them. A neighbor that finds its own address in the info
        then names this node in its own infos. If more neighbors need to be named than one info may name, those named
        longest ago are chosen.
        """
        most_names = most_named(self._repeat_after_us, self.times.info_us)
        neighbors_to_name = [
            (neighbor_state.named_us, address)
            for address, neighbor_state in self.neighbors.items()
            if neighbor_state.namings_left or not self.is_two_way(neighbor_state)
        ]
        chosen_addresses = sorted([address for _, address in sorted(neighbors_to_name)[:most_names]])
        for address in chosen_addresses:
            neighbor_state = self.neighbors[address]
            neighbor_state.named_us, neighbor_state.namings_left = now, max(0, neighbor_state.namings_left - 1)
        return tuple(chosen_addresses)

    def _plan_repetition(self, now):
        """Plan the next repetition of the info (status broadcast) that is sent now, if it announces changes.

        The pause before each repetition is twice the previous one; the repetitions end as `rules.is_repeated` defines.
        """
        if is_repeated(self._repeat_after_us, self.times.info_us):
            half_us = self._repeat_after_us // 2
            self._repeat_us = now + half_us + self.random.below(half_us)
            self._repeat_after_us *= 2
        else:
            self._repeat_after_us = 0

    # Joining

    def look_for_parent(self, now):
        """Plan the joins that this node needs, if neighbors can be its parents.

        If the node must be in every tree, it needs a join in each tree in which it has no key. Otherwise it needs a
        single join, in any tree, if it has no key at all.
        """
        trees = range(len(self.settings.roots))
        if self.settings.every_tree:
            for tree in trees:
                if tree not in self.joining and self.position(tree) is None:
                    self._plan_join((tree,), now)
        elif not self.joining and not self.is_attached():
            self._plan_join(trees, now)

    def _plan_join(self, trees, now):
        """Plan a join to the best parent among the neighbors that have keys in any of ``trees``.

        Do nothing if none of them may be the parent, or if joins to them are paused.
        """
        best_candidate = None
        for address, neighbor in self.neighbors.items():
            if address in self._failed_joins and now < self._failed_joins.get(address)[1]:
                continue
            for tree in trees:
                neighbor_position = neighbor.positions.get(tree)
                if neighbor_position is None or not self._may_join(tree, neighbor_position):
                    continue
                since_us = neighbor.since_us[tree]
                if best_candidate is None or is_better_parent(since_us, address, best_candidate[0], best_candidate[1]):
                    best_candidate = since_us, address, tree
        if best_candidate is not None:
            _, address, tree = best_candidate
            # At least 1 us later: with gather_ms=0 the next wake-up would otherwise be now, again and again.
            send_us = now + max(1, self.random.below(self.times.gather_us + 1))
            self.joining[tree] = Joining(address, send_us)

    def _may_join(self, tree, position):
        newest_epoch = self.left_epochs.get(tree, -1)
        if tree in self.positions:
            newest_epoch = max(newest_epoch, self.positions[tree].epoch)
        return may_be_parent(position.epoch, newest_epoch, position.parent == self.address, len(position.key))

    def take_join(self, join, child, now):
        """Accept a neighbor's join: make the neighbor ``child`` a child, and grant it a key.

        Returns False if this node has no key in the tree, if ``child`` is this node's parent, or if every free key is
        too long for a frame; otherwise returns True.
        """
        own_position = self.position(join.tree)
        if own_position is None or own_position.parent == child:
            return False
        return self._grant_key(own_position, child, own_position.children.get(child, 0), now)

    def _grant_key(self, position, child, slot, now):
        """Grant a child the key that belongs to ``slot``, a child's number at its parent; return whether it got a key.

        If another child has the slot, or the slot's key would be too long, the first free slot is used instead. The
        child gets no key if the key of that slot would be too long as well.
        """
        taken_slots = {other_slot for address, other_slot in position.children.items() if address != child}
        highest_slot = longest_slot(len(position.key))
        if slot in taken_slots or slot > highest_slot:
            slot = free_slot(taken_slots)
        if slot > highest_slot:
            return False
        position.children[child] = slot
        position.clear_regions()
        granted_key = child_key(position.key, slot)
        self.unicast.send(child, wire.Grant(position.tree, position.epoch, granted_key), now)
        self.listener.child_added(position, child, universe(granted_key, self.settings.key_bits), now)
        return True

    def _remove_child(self, position, child):
        del position.children[child]
        position.clear_regions()

    def take_grant(self, grant, parent, now):
        """Take the key that the neighbor ``parent`` grants to this node; return whether the grant was valid.

        A grant is valid if this node waits for the answer to a join that it sent to this neighbor, or if the neighbor
        is already its parent. The node ignores any other grant, but announces its position soon.
        """
        tree, epoch, granted_key = grant
        own_position = self.positions.get(tree)
        joining = self.joining.get(tree)
        is_correction = own_position is not None and own_position.key is not None and own_position.parent == parent
        if not granted_key or not (is_correction or (joining is not None and joining.neighbor == parent)):
            self._announce_change(now)  # The sender of the grant then learns whose child this node is.
            return False
        if joining is not None:
            del self.joining[tree]
        if parent in self._failed_joins:
            self._failed_joins.put(parent, (0, now))
        if is_correction:
            self._set_key(own_position, granted_key, now)
            return True
        if own_position is None:
            own_position = self.positions[tree] = Position(tree, parent, epoch, None, now)
        if not self.settings.every_tree:
            self._forget_other_positions(tree)
        if not self.is_attached():
            self._forget_one_way_distances()
        own_position.parent, own_position.epoch, own_position.epoch_us = parent, epoch, now
        own_position.children.pop(parent, None)
        self._set_key(own_position, granted_key, now)
        return True

    def _forget_one_way_distances(self):
        """Remove the paths to roots over next hops that are not known to hear this node.

        A node that had no key in any tree calls this when it gets a key. Until then such paths do no harm, because a
        node without a key sends no messages over them.
        """
        for tree in list(self.distances):
            next_hop = self.distances[tree].next_hop
            neighbor_state = self.neighbors.get(next_hop)
            if next_hop != NOBODY and neighbor_state is not None and not self.is_two_way(neighbor_state):
                del self.distances[tree]

    def _forget_other_positions(self, tree):
        """Remove this node's positions in all trees but ``tree``; keep their last epochs (counters of the roots)."""
        for other_tree in [known_tree for known_tree in self.positions if known_tree != tree]:
            self.left_epochs[other_tree] = max(
                self.left_epochs.get(other_tree, -1), self.positions.pop(other_tree).epoch
            )

    def _set_key(self, position, key, now):
        if key == position.key:
            return
        position.key = key
        position.clear_regions()
        self._announce_change(now)
        self.listener.key_changed(position, now)

    def changed_zones(self):
        """Return trace events (`ZoneSet`) for those zones of this node that have changed since the last call."""
        events = []
        key_bits = self.settings.key_bits
        for tree in sorted(self.positions) if key_bits <= WIDEST_LOGGED else ():
            own_position = self.positions[tree]
            if not own_position.is_changed:
                continue
            own_position.is_changed = False
            own_zone = () if own_position.key is None else own_position.regions(key_bits)[1]
            if own_zone == own_position.logged_zone:
                continue
            if own_position.logged_zone:
                events.append(ZoneSet(NOBODY, "", tree, 0, NOBODY, ""))
            events += [ZoneSet(NOBODY, "", tree, low, high, "") for low, high in own_zone]
            own_position.logged_zone = own_zone
        return events

    # Repair

    def lose(self, neighbor, now):
        """Remove a lost neighbor: this node no longer uses it as parent, child or next hop."""
        self.neighbors.pop(neighbor, None)
        joining_trees = [tree for tree in self.joining if self.joining[tree].neighbor == neighbor]
        if any([self.joining[tree].send_us is None for tree in joining_trees]):
            self._pause_joins(neighbor, now)
        for tree in joining_trees:
            del self.joining[tree]
        for tree in sorted(self.distances):
            if self.distances[tree].next_hop == neighbor:
                self._break_path(tree, now)
        for tree in sorted(self.positions):
            own_position = self.positions[tree]
            if neighbor in own_position.children:
                self._remove_child(own_position, neighbor)
            if own_position.parent == neighbor and own_position.key is not None:
                self._lose_position(own_position, now)
        self.look_for_parent(now)

    def _pause_joins(self, neighbor, now):
        """Send no further joins to a neighbor for some time, because it has not answered the last join."""
        failed_joins = self._failed_joins.get(neighbor)
        failures = 1 if failed_joins is None else failed_joins[0] + 1
        self._failed_joins.put(neighbor, (failures, now + join_pause_us(failures, self.times.info_us)))

    def _lose_position(self, position, now):
        position.key = None
        position.clear_regions()
        self.listener.key_changed(position, now)
        self.look_for_parent(now)

    # Time

    def next_due_us(self):
        """Return the time in µs of the next task that the overlay has planned, or None if no task is planned."""
        due_times_us = [self.info_due_us, self._repeat_us, self.tick_us]
        for joining in self.joining.values():
            due_times_us.append(joining.give_up_us if joining.send_us is None else joining.send_us)
        due_times_us = [due_us for due_us in due_times_us if due_us is not None]
        return min(due_times_us) if due_times_us else None

    def wake(self, now):
        """Do the work that is due, and return an info (`wire.Info`) to broadcast, or None if no info is due.

        The work: send joins, stop waiting for grants, look for a parent, and check for silent neighbors once every
        ``info_s``. An info describes this node's positions and distances.
        """
        for tree in sorted(self.joining):
            joining = self.joining[tree]
            if joining.send_us is not None and joining.send_us <= now:
                joining.send_us = None
                # Measured from now, because after an outage this is later than the planned time.
                joining.give_up_us = now + self.times.grant_wait_us
                self.unicast.send(joining.neighbor, wire.Join(tree), now)
            elif joining.send_us is None and joining.give_up_us <= now:
                # No grant came: the neighbor has lost its own position. Its next info makes it a candidate again.
                del self.joining[tree]
                neighbor_state = self.neighbors.get(joining.neighbor)
                if neighbor_state is not None:
                    neighbor_state.positions.pop(tree, None)
        if self.tick_us is not None and self.tick_us <= now:
            self._tick(now)
        due_times_us = [time_us for time_us in (self.info_due_us, self._repeat_us) if time_us is not None]
        due_info = self._make_info(now) if due_times_us and min(due_times_us) <= now else None
        self.look_for_parent(now)
        return due_info

    def _tick(self, now):
        """Do the periodic work of each interval ``info_s``.

        A root increments its epoch, the counter that spreads in its tree. The node removes lost neighbors, gives up
        positions in trees that bring no new epochs, probes silent neighbors, and plans an info (status broadcast) if
        its last one is old.
        """
        info_us, lost_after_us = self.times.info_us, self.times.lost_after_us
        self.tick_us = now + info_us
        for position in self.positions.values():
            if position.parent == NOBODY and position.key is not None:
                position.epoch, position.epoch_us = position.epoch + 1, now
                self.distances[position.tree] = Distance(position.epoch, 0, NOBODY)
                self.plan_info(now)
        silent_neighbors = [
            address
            for address in sorted(self.neighbors)
            if is_silent(self.neighbors[address].heard_us, now, lost_after_us)
        ]
        for neighbor in silent_neighbors:
            self.lose(neighbor, now)
        for tree in sorted(self.positions):
            position = self.positions[tree]
            for child in [child for child in sorted(position.children) if child not in self.neighbors]:
                # A child that was not heard after its grant has never received the key.
                if position.key is not None and not self.unicast.is_waiting_for(child):
                    self._remove_child(position, child)
            if (
                position.key is not None
                and position.parent != NOBODY
                and is_cut_off(position.epoch_us, now, lost_after_us)
            ):
                self._lose_position(position, now)
        self.probe_silent(now)
        if is_info_due(self._info_sent_us, now, info_us):
            self.plan_info(now)

    def probe_silent(self, now):
        """Send a probe to each parent, child and next hop that has been silent for too long (`rules.is_in_doubt`).

        A silent neighbor may be alive although its infos (status broadcasts) were lost. Only neighbors that are known
        to hear this node are probed.
        """
        if not self.settings.retries:
            return  # Without acknowledgements a probe gets no answer.
        for neighbor in sorted(self.neighbors):
            neighbor_state = self.neighbors[neighbor]
            is_doubted = is_in_doubt(neighbor_state.heard_us, now, self.times.lost_after_us) and self.is_two_way(
                neighbor_state
            )
            if is_doubted and self._is_needed(neighbor) and not self.unicast.is_waiting_for(neighbor):
                self.unicast.send(neighbor, wire.Probe(), now)

    def _is_needed(self, neighbor):
        """Return whether a neighbor is a parent, a child or a next hop of this node."""
        is_relative = any(
            [neighbor == position.parent or neighbor in position.children for position in self.positions.values()]
        )
        return is_relative or any([distance.next_hop == neighbor for distance in self.distances.values()])
