"""Explanations of undelivered readings for coded diffusion: a node got too few coded packets to decode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.analysis.expected import Pairs
from workbench.analysis.sentences import counted, more
from workbench.analysis.steps import broadcast_step as last_step

__all__ = ["CARRIERS", "last_step", "sentences"]
CARRIERS = ("event", "coded")
HARMLESS = ("duplicate", "decoded", "not_innovative", "expired")


def sentences(scenario: Any, missing: Pairs) -> Iterator[str]:
    """Yield one sentence if the neighbors of an undelivered reading's publisher send too few coded packets of it.

    A node needs m independent packets to decode a reading of m chunks. If the neighbors together send at most m
    packets, a single loss prevents decoding. Yields nothing if nodes send requests for more packets. ``missing``: the
    undelivered readings, each with its publisher, its subscriber and the hops between them.
    """
    protocol = scenario.protocol
    if protocol.max_requests:
        return
    warnings = []
    for publisher in dict.fromkeys(missing.publisher[missing.hops > 1].tolist()):
        neighbors = scenario.topology.out_degree(publisher)
        combination_count, generation_size = protocol.bootstrap_factor * neighbors, protocol.generation_size
        if combination_count <= generation_size:
            combinations = f"{counted(combination_count, 'combination')}"
            combinations += f" ({counted(neighbors, 'neighbor')}, bootstrap_factor {protocol.bootstrap_factor})"
            consequence = (
                "all must arrive and be independent"
                if combination_count == generation_size
                else "a node that hears only these cannot decode"
            )
            warnings.append(
                f"The neighbors of node {publisher} send {combinations} of each reading of "
                f"{counted(generation_size, 'chunk')}: {consequence}"
            )
    if warnings:
        yield f"{warnings[0]}{more(len(warnings))}."


def clause(scenario: Any, account: Any) -> str | None:
    """Return the clause that explains why a node could not decode an event: it received too few coded packets.

    The clause is part of a sentence of `run.explain`. ``account``: the `Account` of a missing reading. Returns None if
    its ``cause`` is not "incomplete".
    """
    if account.cause != "incomplete":
        return None
    node, graph = account.node, scenario.topology
    heard_neighbors = set(graph.predecessors(node))
    reason = f"it hears {counted(len(heard_neighbors), 'neighbor')}"
    if not scenario.protocol.max_requests:
        reason += ", and with max_requests=0 it sends no requests"
    elif not heard_neighbors & set(graph.successors(node)):
        reason += ", none of which hears its requests"
    else:
        reason += ", and received no answer to its requests"
    generation_size = scenario.protocol.generation_size
    return f"node {node} had {account.detail} of {generation_size} combinations and got no more; {reason}"
