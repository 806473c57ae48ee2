"""The flood in plain C (flood_plain.c, built with gcc -O2): a lower bound for the cost of the algorithm.

Each transmission is an event in a binary heap over (time, counter); jitter and airtime are those of the workbench's
radio. It lacks frames, protocol nodes, energy and a record. It gets the network as CSR arrays and runs in this
process.
"""

import ctypes
from functools import lru_cache

from contender import Contender, without_preparation
from native import Absent, compile_source
from networks import AIRTIME_S, JITTER_S, Network
from numpy.ctypeslib import ndpointer


@lru_cache
def _load_library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(compile_source("flood_plain.c", flags=("-shared", "-fPIC"))))
    number, starts, targets = ctypes.c_int64, ndpointer("int64"), ndpointer("int32")
    library.flood.restype = number
    library.flood.argtypes = [number, starts, targets, number, number, number, number, number]
    return library


def absent() -> str:
    """Return the reason why plain C cannot run, or ""."""
    try:
        _load_library()
    except Absent as reason:
        return str(reason)
    return ""


def flood(network: Network, floods: int, source: int = 0) -> int:
    """Play ``floods`` floods from the node ``source``, and return the number of frames received."""
    times_us = [round(seconds * 1e6) for seconds in (*JITTER_S, AIRTIME_S)]
    nodes = len(network.neighbors)
    received = _load_library().flood(nodes, network.starts, network.targets, floods, source, *times_us)
    if received < 0:
        raise MemoryError(f"plain C has no memory for {floods} floods of {nodes} nodes")
    return received


PLAIN_C = Contender(
    "plain C", "a transmission", "jitter, airtime", without_preparation(flood), 20_000_000, absent=absent
)
