"""When a DPS node sends what it retains to a neighbor whose interests have changed.

Theory of operation
    A neighbor that asks for something else is sent what is kept and may meet that: at once, but not more often than
    every ``update_s``; what it asks for in between is answered when that time is over. Without this a neighbor, or
    whoever can forge its address, could have everything sent again with each small message. The time holds for an
    address, so a link that is ended and made anew is no way round it.

    The reference sends to all neighbors whenever one of them tells its interests, be they the same as before, and those
    that have it already drop it. Here it goes to that one alone, as for nobody else has anything changed.

Bounds
    The times of the last 2 ``max_links`` addresses.

This file is written in MicroPython's subset of Python.
"""


class Resending:
    """The turns of the neighbors of one node; ``send(remote, now)`` sends what is kept."""

    def __init__(self, remotes, send, wait_us, most):
        self._remotes = remotes
        self._send = send
        self._wait_us = wait_us
        self._most = most
        self._next_us = {}  # neighbor -> when it may be sent to again, the one sent to last at the end

    def ask(self, remote, now):
        """This neighbor asks for something else: send now, or when its turn comes."""
        next_us = self._next_us.get(remote.address)
        if next_us is not None and now < next_us:
            remote.resend_us = next_us
            return
        remote.resend_us = None
        self._next_us.pop(remote.address, None)
        while len(self._next_us) >= self._most:
            del self._next_us[next(iter(self._next_us))]
        self._next_us[remote.address] = now + self._wait_us
        self._send(remote, now)

    def wake(self, now):
        """The turn of some has come."""
        for remote in list(self._remotes.values()):
            if remote.resend_us is not None and remote.resend_us <= now:
                remote.resend_us = None
                if remote.takes_publications():
                    self.ask(remote, now)
