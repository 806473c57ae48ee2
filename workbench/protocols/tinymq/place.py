"""A node's place in a tree: its parent, its key, its children, and the parts of the key space that follow from them.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.protocols.tinymq.zones import child_key, universe, zone


class Place:
    """A node's place in a tree; key None: it has lost it, and remembers the epoch, and its children's slots."""

    def __init__(self, tree, parent, epoch, key, now):
        self.tree = tree
        self.parent = parent
        self.epoch = epoch
        self.epoch_us = now
        self.key = key
        self.children = {}  # address -> slot
        self.logged_zone = ()
        self.is_changed = True  # since its zone was compared with the logged one
        self._regions = None

    def changed(self):
        """The key, or who the children are, has changed."""
        self.is_changed = True
        self._regions = None

    def child_keys(self):
        """[(address, key)] of the children in the order of their slots."""
        ordered = sorted([(slot, address) for address, slot in self.children.items()])
        return [(address, child_key(self.key, slot)) for slot, address in ordered]

    def regions(self, key_bits):
        """(universe, zone, [(child, its universe)]) of a node with a key."""
        if self._regions is None:
            children = self.child_keys()
            own_zone = zone(self.key, [key for _, key in children], key_bits)
            below = [(address, universe(key, key_bits)) for address, key in children]
            self._regions = universe(self.key, key_bits), own_zone, below
        return self._regions
