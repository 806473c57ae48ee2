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
    """Yield a sentence on publishers whose neighbors send at most as many combinations as an event has chunks."""
    protocol = scenario.protocol
    if protocol.max_requests:
        return
    few = []
    for publisher in dict.fromkeys(missing.publisher[missing.hops > 1].tolist()):
        neighbors = scenario.topology.out_degree(publisher)
        sent, size = protocol.bootstrap_factor * neighbors, protocol.generation_size
        if sent <= size:
            begin = f"Readings of node {publisher} begin with {counted(sent, 'combination')}"
            begin += f" ({counted(neighbors, 'neighbor')}, bootstrap_factor {protocol.bootstrap_factor})"
            lost = (
                "none may be lost or depend on others" if sent == size else "a node that hears them alone decodes none"
            )
            few.append(f"{begin}, and have {counted(size, 'chunk')}: {lost}")
    if few:
        yield f"{few[0]}{more(len(few))}."


def clause(scenario: Any, account: Any) -> str | None:
    """Return the explanation's clause on a node that had too few combinations, or None."""
    if account.cause != "incomplete":
        return None
    node, graph = account.node, scenario.topology
    hears = set(graph.predecessors(node))
    why = f"it hears {counted(len(hears), 'neighbor')}"
    if not scenario.protocol.max_requests:
        why += ", and with max_requests=0 it asks none of them"
    elif not hears & set(graph.successors(node)):
        why += ", none of which hears it, so it cannot ask"
    else:
        why += ", and no answer to its requests came"
    return (
        f"node {node} had {account.detail} of {scenario.protocol.generation_size} combinations and got no more; {why}"
    )
