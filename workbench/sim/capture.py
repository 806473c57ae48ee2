"""The strength of received frames: a radio with ``capture_dB`` receives the stronger of two overlapping frames.

Strength is transmit power less path loss, 10 * exponent * log10(distance), with the exponent 3.0 of `wb.topology`'s
propagation model. It depends only on the positions of the nodes, as topologies do not store walls and shadowing. All
nodes send with the same power, so only differences count. Rounded to tenths of a dB, strengths are the same on every
machine.

Capture: a frame is received if it is at least ``capture_dB`` stronger than each single frame that overlaps with it.
This is the rule of ns-2; the sum of all interference, as in ns-3, is not computed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_EXPONENT = 3.0
_SHORTEST_M = 1.0  # shorter links have the path loss of one metre


def strengths_ddB(positions_m: np.ndarray, senders: Any, receivers: Any) -> np.ndarray:
    """Return for each arc how strong the sender's frames are at the receiver, in tenths of a dB; int32 (arcs,).

    Strengths are relative to the strength at 1 m: 0 up to 1 m, negative beyond. ``positions_m``: (nodes, 2).
    ``senders`` and ``receivers``: (arcs,), indices of nodes.
    """
    offsets_m = positions_m[senders] - positions_m[receivers]
    distances_m = np.maximum(np.sqrt((offsets_m**2).sum(axis=1)), _SHORTEST_M)
    return np.rint(-100 * _EXPONENT * np.log10(distances_m)).astype(np.int32)


def threshold_ddB(capture_dB: float) -> int:
    """Convert the threshold ``capture_dB`` of a radio to tenths of a dB; 0 means that the radio has no capture."""
    return round(10 * capture_dB)
