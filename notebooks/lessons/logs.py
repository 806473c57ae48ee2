"""Exercises of lesson 7: a threshold for links, links that work in one direction, rules for readings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx as nx
import pandas as pd

from workbench.pipelines import clean
from workbench.topology import from_links

from .exercise import Exercise, Verdict, is_number

GOOD, BAD = 0.75, 0.25  # delivery ratios of the two directions of an uneven link


def threshold(answer: Any, links: pd.DataFrame, thresholds: Sequence[float], sink: int) -> Verdict:
    """Judge a value of ``min_pdr``: it must be the largest with which every node still has a path to the sink."""
    if answer not in thresholds:
        return Verdict(False, f"{answer!r:.40} is not one of {', '.join(map(str, thresholds))}.")
    nodes = len({*links["transmitter"], *links["receiver"]})
    reaching = {value: _reaching(links, value, sink) for value in thresholds}
    if reaching[answer] < nodes:
        return Verdict(False, f"With {answer} only {reaching[answer]} of {nodes} nodes have a path to node {sink}.")
    if any(value > answer for value, number in reaching.items() if number == nodes):
        return Verdict(False, f"With {answer} all {nodes} nodes have a path, but also with a larger threshold.")
    return Verdict(True, f"With {answer} all {nodes} nodes have a path to node {sink}; with more, some lose it.")


def uneven_links(answer: Any, links: pd.DataFrame, channel: int) -> Verdict:
    """Judge the number of links that deliver at least `GOOD` in one direction and less than `BAD` in the other."""
    pdr = links[links["channel"] == channel].set_index(["transmitter", "receiver"])["pdr"]
    uneven = [pair for pair in pdr[pdr >= GOOD].index if pdr.get(pair[::-1], 0.0) < BAD]
    if float(answer) != len(uneven):
        return Verdict(False, f"There are not {float(answer):g} such links. Compare each link with its reverse.")
    pairs = ", ".join(f"{transmitter} to {receiver}" for transmitter, receiver in uneven)
    return Verdict(True, f"The {len(uneven)} links are: {pairs}.")


def rules(answer: dict[str, Any], log: Any, column: str, low: float, high: float) -> Verdict:
    """Judge rules for `clean` that leave out the values outside of [low, high] in one column, and no others."""
    # A value that is left out is missing afterwards; its row stays.
    cleaned = clean(log, rules=answer).rows[column].dropna()
    before = log.rows[column].dropna()
    wanted = int(before.between(low, high).sum())
    if (outside := int((~cleaned.between(low, high)).sum())) > 0:
        return Verdict(False, f"{outside} values outside of {low:g} to {high:g} remain.")
    if len(cleaned) < wanted:
        return Verdict(False, f"{wanted - len(cleaned)} possible values are left out as well.")
    return Verdict(True, f"{len(before) - wanted} values are left out, {wanted:,} remain.")


def _reaching(links: pd.DataFrame, min_pdr: float, sink: int) -> int:
    """Return the number of nodes with a path to the sink, the sink included."""
    network = from_links(links, min_pdr=min_pdr)
    return len(nx.ancestors(network, sink)) + 1 if sink in network else 0


EXERCISES = {
    "07.1": Exercise("one of the thresholds", is_number, threshold),
    "07.2": Exercise("a number of links", is_number, uneven_links),
    "07.3": Exercise("a mapping of rules for wb.pipelines.clean", lambda answer: isinstance(answer, dict), rules),
}
