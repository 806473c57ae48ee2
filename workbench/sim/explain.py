"""Why a run delivered little or nothing, in sentences. Nothing here knows which protocol ran.

Theory of operation
    Each sentence is a fact that the scenario or the rows of the run prove: nobody asked, nobody published, one came too
    late for the other, no attribute fits, no arcs lead there, a node was off, frames were lost. What is left is
    *missing*: a publication that was owed to a subscription and did not arrive (`workbench.sim.missing`). What only the
    protocol can say of that, the module says that its class names (``explain``); it has
    ``explain(scenario, trace, missing) -> sentences``. ``trace`` (Rows) is None where the run kept none.

Limits
    Where several things went wrong, all of them are told, not which mattered most. What takes simulation to know, such
    as which of many lost frames was the one, is not told.

Cost
    That of `workbench.sim.missing`.
"""

from __future__ import annotations

import html
import importlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from workbench.attributes.model import EQ, IS, TOPIC, Attribute
from workbench.attributes.text import parse, to_text
from workbench.protocols.protocol import Protocol
from workbench.sim import workload
from workbench.sim.columns import positions
from workbench.sim.metrics.matching import matching_of
from workbench.sim.metrics.rows import Rows
from workbench.sim.metrics.workload import Asked, Published, down_times, spells
from workbench.sim.missing import Missing, Owed, accounts, by_text
from workbench.sim.readings import Readings

LOW = 0.9  # A delivery ratio below it is worth a word.
_SHOWN = 5  # subscriptions that nothing matches: each is compared with all that is published
_WORTH_TELLING = 0.05  # of receptions, where something is missing
_VERBS = {workload.SUBSCRIBE: "subscribe to", workload.PUBLISH: "publish"}


class Explanation:
    """Why a run delivered little or nothing: ``sentences``, which may be none. ``str()`` has them line by line."""

    def __init__(self, headline: str, sentences: Iterable[str]) -> None:
        self.headline = headline
        self.sentences = tuple(sentences)

    def __str__(self) -> str:
        return "\n".join((self.headline, *(f"- {sentence}" for sentence in self.sentences)))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        listed = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in self.sentences)
        return f"<p>{html.escape(self.headline)}</p>" + (f"<ul>{listed}</ul>" if listed else "")


def hint(delivery_ratio: float) -> str:
    """One line where delivery is low or not a number, which points to the explanation; else ""."""
    if delivery_ratio >= LOW:
        return ""
    is_number = delivery_ratio == delivery_ratio
    return f"{'Little was' if is_number else 'Nothing was expected to be'} delivered: run.explain() says why."


def explain(run: Any) -> Explanation:
    """Why a run delivered little or nothing."""
    scenario, metrics, rows = run.scenario, run.metrics, Rows(run._rows)
    asked, published, _, samples, owed, missing = accounts(scenario, rows)
    said = [
        *_without(scenario, asked, published),
        *_after_the_end(scenario),
        *_while_down(scenario, rows),
        *_without_a_match(scenario, asked, published, samples),
        *_at_other_times(rows, asked, published, samples, bool(metrics["expected"])),
        *_without_a_path(owed, asked, published),
    ]
    if len(missing.sink):
        said += _lost(metrics)
        module = scenario.protocol.explain
        if module:
            trace = rows if run.has_trace else None
            said += importlib.import_module(module).explain(scenario, trace, missing)
    return Explanation(_headline(run, metrics, len(said)), said)


def _headline(run: Any, metrics: Any, count: int) -> str:
    if not metrics["expected"]:
        return "No sample was expected to be delivered" + (":" if count else ".")
    counts = f"{metrics['delivered']:,.0f} of {metrics['expected']:,.0f} samples that were expected were delivered"
    if count:
        return f"{counts}:"
    if metrics["delivered"] == metrics["expected"]:
        return f"{counts}."
    hint_at_more = "" if run.has_trace else '; a run with record="trace" may tell more'
    return f"{counts}. Neither the scenario nor what was recorded proves why{hint_at_more}."


# Words


def seconds(time_us: int) -> str:
    """A time for people: "12.5 s"."""
    return f"{time_us / 1e6:.6g} s"


def more(count: int) -> str:
    """How many others there are like the first of ``count``: " (and 3 more like it)"; "" if there are none."""
    return f" (and {count - 1:,} more like it)" if count > 1 else ""


# What protocols share


def beyond(missing: Missing, most: int, what: str) -> Iterator[str]:
    """The sentence of the first of those whose path, there or back, has more hops than ``what`` a message lives for."""
    far = missing.those((missing.hops > most) | (missing.hops_back > most))
    if len(far.sink):
        hops = max(far.hops[0], far.hops_back[0])
        yield (
            f"{what} is shorter than the way: the shortest path between node {far.publisher[0]} and node "
            f"{far.sink[0]} has {hops} hops{more(len(far.sink))}."
        )


def unheard(missing: Missing, what: str) -> Iterator[str]:
    """The sentence of the first sink that hears its publisher and is not heard by it; ``what`` it sends in vain."""
    deaf = missing.those((missing.hops >= 0) & (missing.hops_back < 0))
    if len(deaf.sink):
        yield (
            f"Arcs lead from node {deaf.publisher[0]} to node {deaf.sink[0]} and none back, so {what} of node "
            f"{deaf.sink[0]} cannot come to it{more(len(deaf.sink))}."
        )


# Who asks, who publishes, and when


def _without(scenario: Any, asked: Asked, published: Published) -> Iterator[str]:
    kinds = {type(item) for item in scenario.workload}
    if workload.Subscribe not in kinds and not len(asked.node):
        yield "The workload has no subscriptions."
    if workload.Publish not in kinds and not len(published.node):
        yield "The workload has no publications."
    begun = [i for i in scenario.workload if isinstance(i, workload.Publish) and i.start_s < scenario.duration_s]
    if begun and not len(published.node) and not any(one.kind == workload.PUBLISH for one in _actions(scenario)):
        shown = "its stagger comes later" if begun[0].stagger else "it stops when it starts"
        yield f"No publication begins before its end: {shown} ({_shown(begun[0])}){more(len(begun))}."


def _actions(scenario: Any) -> list[workload.Action]:
    nodes, duration_us = tuple(sorted(scenario.topology)), round(scenario.duration_s * 1e6)
    return workload.expand(scenario.workload, nodes, duration_us, scenario.seed)


def _shown(item: Any) -> str:
    if isinstance(item.what, str):
        return item.what
    return "readings that were measured" if isinstance(item.what, Readings) else "readings of a sensor field"


def _after_the_end(scenario: Any) -> Iterator[str]:
    for cls, what in ((workload.Subscribe, "A subscription"), (workload.Publish, "A publication")):
        late = [i for i in scenario.workload if isinstance(i, cls) and i.start_s >= scenario.duration_s]
        if late:
            ends = f"the run ends at {scenario.duration_s:g} s"
            yield f"{what} ({_shown(late[0])}) starts at {late[0].start_s:g} s, and {ends}{more(len(late))}."


def _while_down(scenario: Any, rows: Rows) -> Iterator[str]:
    down = down_times(rows)
    if not down:
        return
    actions = _actions(scenario)
    for kind, verb in _VERBS.items():
        in_vain = [
            one
            for one in actions
            if one.kind == kind and any(first <= one.time_us < last for first, last in down.get(one.node, ()))
        ]
        if in_vain:
            first = in_vain[0]
            yield (
                f"Node {first.node} was down at {seconds(first.time_us)}, when it was to {verb} {_shown(first.item)}"
                f"{more(len(in_vain))}."
            )


def _at_other_times(
    rows: Rows, asked: Asked, published: Published, samples: list[np.ndarray], is_any_expected: bool
) -> Iterator[str]:
    """Subscriptions that publications match, but none in the time in which they last and their node is up.

    What was delivered all the same, as messages may wait for a sink, is spoken of only where nothing was expected.
    """
    got = positions((asked.node, asked.number), tuple(rows.columns("delivered", "node", "value"))) >= 0
    got &= is_any_expected
    lasting = spells(asked, rows)
    found: dict[str, list[str]] = {"late": [], "early": [], "between": [], "down": []}
    for numbers, mine in zip(samples, by_text(asked.what, asked), strict=True):
        times = published.time_us[numbers[published.what] > 0]
        for index in mine[~got[mine]].tolist() if len(times) else ():
            ups = slice(*np.searchsorted(lasting.subscription, (index, index + 1)).tolist())
            up = np.searchsorted(times, (lasting.first_us[ups], lasting.last_us[ups]))
            kind, sentence = _timing(asked, index, times, int((up[1] - up[0]).sum()))
            if kind:
                found[kind].append(sentence)
    yield from (f"{told[0]}{more(len(told))}." for told in found.values() if told)


def _timing(asked: Asked, index: int, times: np.ndarray, up: int) -> tuple[str, str]:
    """(kind, sentence) of a subscription, by the times of all that matches, ``up`` of them while its node was up."""
    node, what = asked.node[index], asked.texts[asked.what[index]]
    first_us, last_us = int(asked.first_us[index]), int(asked.last_us[index])
    first, last = np.searchsorted(times, (first_us, last_us)).tolist()
    subscribed = f"Node {node} subscribed to {what}"
    if first == len(times):
        ended = seconds(times[-1])
        return "late", f"{subscribed} at {seconds(first_us)}, after the last publication that matches, at {ended}"
    if last == 0:
        began = seconds(times[0])
        ended = f"Node {node}'s subscription to {what} ended at {seconds(last_us)}"
        return "early", f"{ended}, before the first publication that matches, at {began}"
    if first == last:
        lasted = f"from {seconds(first_us)} to {seconds(last_us)}"
        return "between", f"{subscribed} {lasted}, when nothing that matches was published"
    if up < last - first:
        counts = f"{last - first - up:,} of the {last - first:,} publications that match"
        return "down", f"Node {node}, which subscribed to {what}, was down when {counts} were made"
    return "", ""


# What is asked for


def _without_a_match(scenario: Any, asked: Asked, published: Published, samples: list[np.ndarray]) -> Iterator[str]:
    if not len(published.node):
        return
    unmet = [what for what, numbers in zip(asked.texts, samples, strict=True) if not numbers.any()]
    for what in unmet[:_SHOWN]:
        yield f"No publication matches {what}: {mismatch(scenario.protocol, what, published.texts)}."
    if len(unmet) > _SHOWN:
        yield f"Nor does one match {len(unmet) - _SHOWN:,} other things that are asked for."


def mismatch(protocol: Protocol, what: str, texts: list[str]) -> str:
    """Why none of these publications matches a subscription, by the protocol's rule: the first attribute that fails."""
    matching = matching_of(protocol)
    for one in parse(what):
        if one.operator != IS and not any(matching.is_match(to_text((one,)), text) for text in texts):
            return _failing(protocol, one, texts)
    return "each of its attributes is met, but never all of them by one publication"


def _failing(protocol: Protocol, one: Attribute, texts: list[str]) -> str:
    said = to_text((one,))
    stated = [other for text in texts for other in parse(text) if other.key == one.key and other.operator == IS]
    if not stated:
        return f"nothing published has what {said} asks for"
    if one.key == TOPIC and one.operator == EQ and _is_pattern(one.value) and _compares_bytes(protocol):
        name = type(protocol).public_class().__name__
        return f"{said} is a pattern, and {name} has no patterns: it compares topics byte by byte"
    if isinstance(one.value, int):
        lowest, highest = (to_text((end(stated, key=_value),)) for end in (min, max))
        shown = lowest if lowest == highest else f"from {lowest} to {highest}"
        return f"{said} fails, for what is published is {shown}"
    return f"{said} fails, for what is published is {to_text((stated[0],))}{more(len({o.value for o in stated}))}"


def _value(attribute: Attribute) -> Any:
    return attribute.value


def _is_pattern(topic: bytes) -> bool:
    return b"+" in topic or b"#" in topic


def _compares_bytes(protocol: Protocol) -> bool:
    return type(protocol).matching_samples is Protocol.matching_samples


# What is missing


def _without_a_path(owed: Owed, asked: Asked, published: Published) -> Iterator[str]:
    apart = np.flatnonzero(owed.hops < 0)
    if len(apart):
        publisher, sink = published.node[owed.publication[apart]], asked.node[owed.subscription[apart]]
        ways = {*zip(publisher.tolist(), sink.tolist(), strict=True)}
        yield (
            f"No path leads from node {publisher[0]}, which publishes, to node {sink[0]}, which subscribes to "
            f"{asked.texts[asked.what[owed.subscription[apart[0]]]]}{more(len(ways))}; what is published there is not "
            "expected here."
        )


def _lost(metrics: Any) -> Iterator[str]:
    """What the radio lost."""
    if not metrics["transmissions"]:
        yield "No frame was sent."
    lost, received = metrics["lost"], metrics["receptions"]
    if lost and lost >= _WORTH_TELLING * (lost + received):
        reasons = _by_reason(metrics, "lost_")
        yield f"{lost / (lost + received):.0%} of {lost + received:,.0f} receptions failed: {reasons}."
    sent = metrics["transmissions"]
    given_up = sum(metrics[name] for name in metrics.index if name.startswith("given_up_"))
    if given_up and given_up >= _WORTH_TELLING * (given_up + sent):
        reasons = _by_reason(metrics, "given_up_")
        yield f"{given_up:,.0f} of {given_up + sent:,.0f} frames were given up before they were sent: {reasons}."


def _by_reason(metrics: Any, prefix: str) -> str:
    counts = {name.removeprefix(prefix): metrics[name] for name in metrics.index if name.startswith(prefix)}
    return ", ".join(f"{counts[name]:,.0f} {name}" for name in sorted(counts, key=lambda name: -counts[name]))
