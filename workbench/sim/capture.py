"""The strength of received frames, by which a radio with ``capture_dB`` receives the stronger of two that overlap.

Strength is transmit power less path loss, 10 * exponent * log10(distance), with the exponent 3.0 of `wb.topology`'s
propagation model. It follows from the positions of the nodes alone, as topologies do not keep walls and shadowing. All
nodes send with the same power, so only differences count. Rounded to tenths of a dB, strengths are the same on every
machine.

Capture: a frame is received if it is stronger than each frame that overlaps with it by at least ``capture_dB``. This is
the rule of ns-2; the sum of all interference, as in ns-3, is not computed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_EXPONENT = 3.0
_SHORTEST_M = 1.0  # the path loss of shorter links is that of a metre


def strengths_ddB(positions_m: np.ndarray, senders: Any, receivers: Any) -> np.ndarray:
    """Return the strength of each arc in tenths of a dB, int32 (arcs,); 0 at a metre, negative beyond.

    ``positions_m`` (nodes, 2); ``senders`` and ``receivers`` (arcs,) are indices of nodes.
    """
    offsets_m = positions_m[senders] - positions_m[receivers]
    distances_m = np.maximum(np.sqrt((offsets_m**2).sum(axis=1)), _SHORTEST_M)
    return np.rint(-100 * _EXPONENT * np.log10(distances_m)).astype(np.int32)


def threshold_ddB(capture_dB: float) -> int:
    """Return a threshold in tenths of a dB; 0 for none."""
    return round(10 * capture_dB)
