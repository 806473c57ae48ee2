"""Publications that a DPS node sends again, as its radio has given them up.

Theory of operation
    A publication goes over a link once, and links are many on its way. Where a radio gives a frame up, because nobody
    acknowledged it or the channel was never free, the same frame is sent again after a random wait, which doubles each
    time: what disturbed it has passed by then. After `rules.MOST_REPEATS` times it is lost. If it had arrived all the
    same, the neighbor drops the second one as a duplicate.

    A network without such reports, as UDP is, repeats nothing.

Bounds
    The last `rules.REPEATS_KEPT` frames that were given up; of more, the oldest is sent no more.

This file is written in MicroPython's subset of Python.
"""

from workbench.protocols.dps import rules


class Repeats:
    """The frames of one node that its radio gave up."""

    def __init__(self, node, history):
        self._node = node
        self._history = history
        self._entries = []  # [neighbor, frame, message, how often it was sent again, when it is next or None]
        self._oldest = 0  # the entry that is replaced next, once there are REPEATS_KEPT

    def give_up(self, neighbor, frame, message, now):
        """Plan to send a publication again that the radio gave up; ``message``: the same, decoded."""
        entry = self._entry(neighbor, frame, message)
        if entry[3] < rules.MOST_REPEATS:
            entry[4] = now + 1 + self._node.random.below(rules.repeat_within_us(entry[3]))
            entry[3] += 1

    def _entry(self, neighbor, frame, message):
        """Return the entry of a frame, a new one if there is none."""
        for entry in self._entries:
            if entry[0] == neighbor and entry[1] == frame:
                return entry
        entry = [neighbor, frame, message, 0, None]
        if len(self._entries) < rules.REPEATS_KEPT:
            self._entries.append(entry)
        else:
            self._entries[self._oldest] = entry
            self._oldest = (self._oldest + 1) % rules.REPEATS_KEPT
        return entry

    def next_due_us(self):
        """Return when `wake` is next to be called, None for never."""
        due = [entry[4] for entry in self._entries if entry[4] is not None]
        return min(due) if due else None

    def wake(self, now):
        """Send what is due, to neighbors that are still linked and have not sent the same publication meanwhile."""
        for entry in self._entries:
            neighbor, frame, message, _, due_us = entry
            if due_us is None or due_us > now:
                continue
            entry[4] = None
            remote = self._node.links.remotes.get(neighbor)
            if remote is None or not remote.takes_publications():
                continue
            if not self._history.came_from(message.publication_id, neighbor, message.sequence):
                self._node.outbox.append((neighbor, frame))
