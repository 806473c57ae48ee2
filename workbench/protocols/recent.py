"""The memory of the most recent message ids, by which nodes recognize messages that they have received before.

This file runs on a mote too (MicroPython's subset of Python).
"""


class RecentIds:
    """A memory of the last ``size`` distinct ids, with a value for each. Every operation takes constant time."""

    __slots__ = ("_ids", "_oldest", "size", "values")

    def __init__(self, size):
        self.size = size
        self._ids = []
        self._oldest = 0
        # id -> value; read-only for others. It is public because "id in recent.values" is the hottest line of a flood.
        self.values = {}

    def get(self, id):
        """Return the value that is stored with an id, or None if the id is not stored."""
        return self.values.get(id)

    def put(self, id, value=True):
        """Store a value with an id; if the memory is full, a new id replaces the oldest one.

        A new value for a stored id does not change the id's age.
        """
        if id not in self.values:
            if len(self._ids) < self.size:
                self._ids.append(id)
            else:
                del self.values[self._ids[self._oldest]]
                self._ids[self._oldest] = id
                self._oldest = (self._oldest + 1) % self.size
        self.values[id] = value

    def oldest(self):
        """Return the value that is stored with the oldest id, or None if the memory is not full.

        The next new id will replace the oldest id.
        """
        return self.values[self._ids[self._oldest]] if len(self._ids) >= self.size else None

    def __contains__(self, id):
        return id in self.values

    def __len__(self):
        return len(self._ids)
