"""Rules of flooding as functions of plain numbers, which the node and its version for the fast engine share.

This file runs on a mote too (MicroPython's subset of Python).
"""


def hops_taken(first_ttl, ttl):
    """Return the number of hops that a flood has taken if it was sent with ``first_ttl`` and arrives with ``ttl``."""
    return first_ttl - ttl + 1
