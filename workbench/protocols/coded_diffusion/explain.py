"""Explanations of undelivered readings that are specific to coded diffusion: a node had too few combinations."""

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
    """Yield one sentence if all neighbors of some publisher together send at most m combinations of each reading.

    ``missing``: the readings that were not delivered. A reading with m chunks needs m independent combinations, so a
    single loss prevents decoding. With requests no sentence is yielded, as nodes then request lost combinations.
    """
    protocol = scenario.protocol
    if protocol.max_requests:
        return
    warnings = []
    for publisher in dict.fromkeys(missing.publisher[missing.hops > 1].tolist()):
        neighbors = scenario.topology.out_degree(publisher)
        sent, size = protocol.bootstrap_factor * neighbors, protocol.generation_size
        if sent <= size:
            combinations = f"{counted(sent, 'combination')}"
            combinations += f" ({counted(neighbors, 'neighbor')}, bootstrap_factor {protocol.bootstrap_factor})"
            consequence = (
                "all must arrive and be independent" if sent == size else "a node that hears only these cannot decode"
            )
            warnings.append(
                f"The neighbors of node {publisher} send {combinations} of each reading of {counted(size, 'chunk')}: "
                f"{consequence}"
            )
    if warnings:
        yield f"{warnings[0]}{more(len(warnings))}."


def clause(scenario: Any, account: Any) -> str | None:
    """Return the clause, part of an explanation's sentence, about a node with too few combinations to decode.

    ``account``: the cause of a missing reading. Returns None if that cause is not "incomplete".
    """
    if account.cause != "incomplete":
        return None
    node, graph = account.node, scenario.topology
    hears = set(graph.predecessors(node))
    reason = f"it hears {counted(len(hears), 'neighbor')}"
    if not scenario.protocol.max_requests:
        reason += ", and with max_requests=0 it sends no requests"
    elif not hears & set(graph.successors(node)):
        reason += ", none of which hears its requests"
    else:
        reason += ", and received no answer to its requests"
    size = scenario.protocol.generation_size
    return f"node {node} had {account.detail} of {size} combinations and got no more; {reason}"
