"""Frames and bytes by the nature of messages: set-up, upkeep and use.

    set_up   sent once for a node, a subscription or a change of the network
    upkeep   repeated while nothing changes, such as interests that are refreshed and beacons
    use      sent for a publication: readings, and the answers to them

A protocol declares the nature of its messages (`Protocol.natures`); all other messages have the nature "use".
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.sim.trace import Counts, Sizes

SET_UP, UPKEEP, USE = "set_up", "upkeep", "use"
NATURES = (SET_UP, UPKEEP, USE)
_RADIO_NATURES = {"beacon": UPKEEP}  # of radios that learn link qualities


def nature_of(protocol: Any, message: str) -> str:
    """Return the nature (purpose) of a protocol's message: "set_up", "upkeep" or "use"."""
    return (_RADIO_NATURES | protocol.natures).get(message, USE)


def by_nature(protocol: Any, counts: Counts, sizes: Sizes) -> dict[str, float]:
    """Return {"frames_set_up": ..., "bytes_set_up": ..., ...}: frames and bytes sent, for each of `NATURES`."""
    totals: Counter[str] = Counter()
    for unit, amounts in (("frames", counts), ("bytes", sizes)):
        for (event, message, _), amount in amounts.items():
            if event == "sent":
                totals[f"{unit}_{nature_of(protocol, message)}"] += amount
    return {f"{unit}_{nature}": totals[f"{unit}_{nature}"] for unit in ("frames", "bytes") for nature in NATURES}


def usefulness(protocol: Any, counts: Counts) -> float:
    """Return the share of received data messages (nature "use") that were new to their receivers.

    A reception is not new if the node drops the message with a reason of ``Protocol.known_already``. The result is NaN
    without receptions, and for protocols that lack such a reason.
    """
    receptions = sum(
        count
        for (event, message, _), count in counts.items()
        if event == "received" and nature_of(protocol, message) == USE
    )
    known_receptions = sum(
        count for (event, _, reason), count in counts.items() if event == "dropped" and reason in protocol.known_already
    )
    return (receptions - known_receptions) / receptions if receptions and protocol.known_already else float("nan")
