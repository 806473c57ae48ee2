"""Measurements of the flood: on an ideal channel, and with CSMA/CA and collisions."""

from collections.abc import Sequence
from importlib import import_module

from contender import Contender
from flood_workbench import CSMA_FAST, CSMA_REFERENCE, FAST, FAST_TRACE, REFERENCE, REFERENCE_TRACE
from networks import Network
from tables import ratio, table
from timing import interleaved

HEADER = ["contender", "floods", "runs", "receptions", "heard", "receptions/s", "ours / it"]
PEERS = (
    ("flood_plain_c", "PLAIN_C"),
    ("flood_ns3_graph", "NS3_GRAPH"),
    ("flood_simpy_callbacks", "CALLBACKS"),
    ("flood_simpy", "SIMPY"),
    ("flood_wsnsimpy", "WSNSIMPY"),
)
CSMA_PEERS = (("flood_ns3_lrwpan", "NS3_LRWPAN"),)


def _find_available(ours: Sequence[Contender], peers: Sequence[tuple[str, str]]) -> tuple[list[Contender], list[str]]:
    """Return (the contenders that can run here, a line with the reason for each that cannot).

    ``peers`` are (module, name of the contender in it) of other simulators.
    """
    contenders, lines = list(ours), []
    for module, name in peers:
        try:
            contenders.append(getattr(import_module(module), name))
        except ImportError as error:
            lines.append(f"{module} is skipped: {error.name} is missing; pip install -e '.[bench]' installs it")
    reasons = {contender.name: contender.absent() for contender in contenders}
    lines += [f"{name} is skipped: {reason}" for name, reason in reasons.items() if reason]
    return [contender for contender in contenders if not reasons[contender.name]], lines


def ideal_contenders() -> tuple[list[Contender], list[str]]:
    """Return the contenders of the flood on an ideal channel, and a line for each that is skipped."""
    return _find_available((FAST, FAST_TRACE, REFERENCE, REFERENCE_TRACE), PEERS)


def csma_contenders() -> tuple[list[Contender], list[str]]:
    """Return the contenders of the flood with CSMA/CA and collisions, and a line for each that is skipped."""
    return _find_available((CSMA_FAST, CSMA_REFERENCE), CSMA_PEERS)


def measure(
    network: Network, contenders: Sequence[Contender], repetitions: int, quick: bool = False, all_hear: bool = True
) -> list[list[str]]:
    """Measure a flood in each contender and return a table row for each.

    The last column is the ratio to the first contender, the workbench. With ``all_hear``, raises AssertionError if a
    contender has another number of receptions than floods x arcs, because it then does other work.
    """
    floods = {contender.name: contender.floods(network, quick) for contender in contenders}
    jobs = {contender.name: contender.prepare(network, floods[contender.name]) for contender in contenders}
    results = interleaved(jobs, repetitions)
    ours = _rate(results[contenders[0].name])
    rows = []
    for name, result in results.items():
        everything = floods[name] * network.arcs
        if all_hear:
            assert result.receptions == everything, f"{name}: {result.receptions} receptions, {everything} expected"
        heard = f"{100 * result.receptions / everything:.1f}%"
        figures = [f"{number:,}" for number in (floods[name], result.runs, result.receptions)]
        rows.append([name, *figures, heard, f"{_rate(result):,.0f}", ratio(ours / _rate(result))])
    return rows


def _rate(result) -> float:
    return result.receptions / max(result.seconds, 1e-9)


def granularity_table(contenders: Sequence[Contender]) -> str:
    """Return a table with what each contender counts as one event, and which parts of a radio it models."""
    rows = [[contender.name, contender.event, contender.models] for contender in contenders]
    return table(["contender", "one event is", "modelled"], rows)
