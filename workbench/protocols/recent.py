"""The memory by which nodes tell what they have seen: the last so many ids, oldest forgotten first.

This file runs on a mote too (MicroPython's subset of Python).
"""


class RecentIds:
    """The last ``size`` distinct ids, and a value noted for each. Every operation takes constant time."""

    __slots__ = ("_ids", "_oldest", "size", "values")

    def __init__(self, size):
        self.size = size
        self._ids = []
        self._oldest = 0
        # id -> value. To be read only; public because "id in recent.values" is the hottest line of a flood.
        self.values = {}

    def get(self, id):
        """The value noted for an id, or None."""
        return self.values.get(id)

    def put(self, id, value=True):
        """Note an id, in place of the oldest if the memory is full."""
        if id not in self.values:
            if len(self._ids) < self.size:
                self._ids.append(id)
            else:
                del self.values[self._ids[self._oldest]]
                self._ids[self._oldest] = id
                self._oldest = (self._oldest + 1) % self.size
        self.values[id] = value

    def oldest(self):
        """The value of the id that the next new one takes the place of; None while there is room."""
        return self.values[self._ids[self._oldest]] if len(self._ids) >= self.size else None

    def __contains__(self, id):
        return id in self.values

    def __len__(self):
        return len(self._ids)
