"""Exercises of lesson 3: the strings of a query, the nodes that store it, and the keys after a failure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import workbench as wb
from workbench.protocols.protocol import Protocol
from workbench.sim.scenario import Scenario
from workbench.sim.workload import Subscribe, outage, subscribe

from .exercise import Exercise, Verdict, compared, is_collection, is_text
from .figures.mapping import mapping_strings, mapping_table
from .measured import run_of

SETTLED_S = 30.0
LASTS_S = 80.0


def strings(answer: Iterable[str], protocol: Protocol, query: str) -> Verdict:
    """The strings of a query."""
    truth = mapping_strings(protocol, query)
    table = mapping_table(protocol, query).to_dict("records")
    cells = "; ".join(f"{row['dimension']} has the cells {row['cells']}" for row in table)
    wrong = compared(
        answer,
        truth,
        lambda one: f"{one!r} is not among them: {cells}.",
        lambda one: f"{one!r} is missing: {cells}, and each cell of one goes with each of the other.",
    )
    return Verdict(not wrong, wrong or f"{', '.join(truth)}: {cells}.")


def stores(answer: Iterable[int], scenario: Scenario, sink: int, query: str) -> Verdict:
    """The nodes that store a query, in all trees."""
    run = run_of(scenario.replace(workload=[subscribe(sink, query, start_s=3)]))
    truth = set(wb.tinymq.views.route(run, ("query", sink, 0)).nodes("stored"))
    keys = _keys(run, scenario.duration_s)
    wanted = ", ".join(mapping_strings(scenario.protocol, query))

    def said(node: int) -> str:
        return f"its key is {keys[node][1]!r} in tree {keys[node][0]}" if node in keys else "it has no key"

    wrong = compared(
        answer,
        truth,
        lambda node: f"Node {node!r} does not store it: {said(node)}, and the strings are {wanted}.",
        lambda node: f"Node {node} stores it too: {said(node)}, and its zone has some of {wanted}.",
    )
    return Verdict(not wrong, wrong or "; ".join(f"node {node}: {said(node)}" for node in sorted(truth)) + ".")


def new_keys(answer: Iterable[int], scenario: Scenario, node: int) -> Verdict:
    """The nodes that have another key when a node has failed for good."""
    asked = [one for one in scenario.workload if isinstance(one, Subscribe)]
    failing = scenario.replace(workload=[*asked, outage(node, start_s=SETTLED_S)], duration_s=LASTS_S)
    run = run_of(failing)
    before, after = _keys(run, SETTLED_S - 1), _keys(run, LASTS_S)
    truth = {one for one in before if one != node and before[one] != after.get(one)}

    def said(one: int) -> str:
        (tree, key), new = before[one], after.get(one)
        now = "no key" if new is None else f"{new[1]!r} in tree {new[0]}"
        return f"it had {key!r} in tree {tree} and has {now}"

    def too_many(one: Any) -> str:
        if one == node:
            return f"Node {node} is the one that failed; asked are those that stay."
        return f"Node {one!r} keeps its key: {said(one)}." if one in before else f"There is no node {one!r} with a key."

    wrong = compared(answer, truth, too_many, lambda one: f"Node {one} is missing: {said(one)}.")
    return Verdict(not wrong, wrong or "; ".join(f"node {one}: {said(one)}" for one in sorted(truth)) + ".")


def _keys(run: Any, time_s: float) -> dict[int, tuple[int, str]]:
    """{node: (tree, key)} just before a time."""
    places = wb.tinymq.views.overlay_of(run).places_at(round(time_s * 1e6) - 1)
    return {one.node: (one.tree, one.key) for one in places}


EXERCISES = {
    "03.1": Exercise('the strings as a set, such as {"00", "01"}', lambda one: _is_set_of(one, is_text), strings),
    "03.2": Exercise("the nodes as a set, such as {1, 2}", lambda one: _is_set_of(one, _is_node), stores),
    "03.3": Exercise("the nodes as a set, such as {1, 2}", lambda one: _is_set_of(one, _is_node), new_keys),
}


def _is_set_of(answer: Any, is_one: Any) -> bool:
    return is_collection(answer) and all(map(is_one, answer))


def _is_node(one: Any) -> bool:
    return isinstance(one, int) and not isinstance(one, bool)
