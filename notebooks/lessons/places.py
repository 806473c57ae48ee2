"""Exercises of lesson 3: the strings of a query, the nodes that store it, and the keys after a failure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import workbench as wb
from workbench.protocols.protocol import Protocol
from workbench.sim.changes.items import outage
from workbench.sim.scenario import Scenario
from workbench.sim.workload import Subscribe, subscribe

from .exercise import Exercise, Verdict, compare_sets, is_collection, is_text
from .figures.mapping import mapping_strings, mapping_table
from .measured import run_of

FAILURE_S = 30.0  # when a node fails; the overlay is complete before
DURATION_S = 80.0


def strings(answer: Iterable[str], protocol: Protocol, query: str) -> Verdict:
    """Judge the set of the strings that a query covers."""
    truth = mapping_strings(protocol, query)
    table = mapping_table(protocol, query).to_dict("records")
    cells = "; ".join(f"{row['dimension']} has the cells {row['cells']}" for row in table)
    mistake = compare_sets(
        answer,
        truth,
        lambda string: f"{string!r} is not among them: {cells}.",
        lambda string: f"{string!r} is missing: {cells}; each cell of one dimension goes with each cell of the other.",
    )
    return Verdict(not mistake, mistake or f"{', '.join(truth)}: {cells}.")


def stores(answer: Iterable[int], scenario: Scenario, sink: int, query: str) -> Verdict:
    """Judge the set of the nodes that store a query, over all trees."""
    run = run_of(scenario.replace(workload=[subscribe(sink, query, start_s=3)]))
    truth = set(wb.tinymq.views.route(run, ("query", sink, 0)).nodes("stored"))
    keys = _keys(run, scenario.duration_s)
    wanted = ", ".join(mapping_strings(scenario.protocol, query))

    def describe_key(node: int) -> str:
        return f"its key is {keys[node][1]!r} in tree {keys[node][0]}" if node in keys else "it has no key"

    mistake = compare_sets(
        answer,
        truth,
        lambda node: f"Node {node!r} does not store it: {describe_key(node)}, and the strings are {wanted}.",
        lambda node: f"Node {node} stores it too: {describe_key(node)}, and its zone has some of {wanted}.",
    )
    return Verdict(
        not mistake, mistake or "; ".join(f"node {node}: {describe_key(node)}" for node in sorted(truth)) + "."
    )


def new_keys(answer: Iterable[int], scenario: Scenario, node: int) -> Verdict:
    """Judge the set of the nodes that get another key after a node has failed for good."""
    subscriptions = [action for action in scenario.workload if isinstance(action, Subscribe)]
    failing = scenario.replace(workload=[*subscriptions, outage(node, start_s=FAILURE_S)], duration_s=DURATION_S)
    run = run_of(failing)
    before, after = _keys(run, FAILURE_S - 1), _keys(run, DURATION_S)
    truth = {other for other in before if other != node and before[other] != after.get(other)}

    def describe_change(other: int) -> str:
        (tree, key), new = before[other], after.get(other)
        now = "no key" if new is None else f"{new[1]!r} in tree {new[0]}"
        return f"it had {key!r} in tree {tree} and has {now}"

    def too_many(other: Any) -> str:
        if other == node:
            return f"Node {node} is the one that failed; only the remaining nodes count."
        if other not in before:
            return f"Node {other!r} has no key."
        return f"Node {other!r} keeps its key: {describe_change(other)}."

    mistake = compare_sets(answer, truth, too_many, lambda other: f"Node {other} is missing: {describe_change(other)}.")
    return Verdict(
        not mistake, mistake or "; ".join(f"node {other}: {describe_change(other)}" for other in sorted(truth)) + "."
    )


def _keys(run: Any, time_s: float) -> dict[int, tuple[int, str]]:
    """Return {node: (tree, key)} just before a time."""
    positions = wb.tinymq.views.overlay_of(run).places_at(round(time_s * 1e6) - 1)
    return {position.node: (position.tree, position.key) for position in positions}


EXERCISES = {
    "03.1": Exercise('the strings as a set, such as {"00", "01"}', lambda answer: _is_set_of(answer, is_text), strings),
    "03.2": Exercise("the nodes as a set, such as {1, 2}", lambda answer: _is_set_of(answer, _is_node), stores),
    "03.3": Exercise("the nodes as a set, such as {1, 2}", lambda answer: _is_set_of(answer, _is_node), new_keys),
}


def _is_set_of(answer: Any, accepts: Any) -> bool:
    return is_collection(answer) and all(map(accepts, answer))


def _is_node(element: Any) -> bool:
    return isinstance(element, int) and not isinstance(element, bool)
