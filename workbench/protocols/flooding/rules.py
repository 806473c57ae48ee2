"""The rules of flooding on plain numbers: the node calls them, and its fast twin the same functions.

This file runs on a mote too (MicroPython's subset of Python).
"""


def hops_taken(first_ttl, ttl):
    """The hops that a frame has come which began with ``first_ttl`` and arrives with ``ttl``."""
    return first_ttl - ttl + 1
