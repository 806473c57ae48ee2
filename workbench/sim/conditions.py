"""The conditions under which a protocol ran, to be checked before its metrics are compared with another protocol's.

conditions(scenario)      a `Conditions`, one line of text
warnings(conditions)      sentences about advantages that only some of the protocols have
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from workbench.attributes.interests import interval_us
from workbench.attributes.text import parse
from workbench.protocols.protocol import Protocol
from workbench.sim.radio import is_ideal, knows_links, own_retries, uses_quality
from workbench.sim.workload import Reinforce, Subscribe


class Conditions(NamedTuple):
    """The conditions under which one protocol runs in a comparison.

    name            the protocol, as charts name it
    link_quality    "known" (the true delivery ratios: an oracle), "learned" (from beacons) or "unused"
    own_retries     how often the protocol itself repeats a message, in addition to the radio's retries
    roles           a text: each setting that gives nodes a role, how many nodes it names and which; "" if the protocol
                    has no such setting
    frame           the largest frame in bytes and number of fragments, as text; "" without a limit
    filters         names of the protocol's filters, which change or drop messages
    changed         settings that differ from the defaults, as "name=value"; roles and filters are left out
    ignored         parts of the workload that the protocol ignores: "INTERVAL", "reinforcements"
    """

    name: str
    link_quality: str
    own_retries: int
    roles: str
    frame: str
    filters: tuple[str, ...]
    changed: tuple[str, ...]
    ignored: tuple[str, ...] = ()

    def __str__(self) -> str:
        quality = {
            "known": "link qualities known from the start (an oracle)",
            "learned": "link qualities learned from beacons",
            "unused": "link qualities not used",
        }[self.link_quality]
        clauses = [quality, f"own retries: {self.own_retries}" if self.own_retries else "no retries of its own"]
        clauses += [clause for clause in (self.roles, self.frame) if clause]
        clauses.append(f"filters: {', '.join(self.filters)}" if self.filters else "no filters")
        clauses.append(f"settings: {', '.join(self.changed)}" if self.changed else "default settings")
        clauses += [f"ignores {', '.join(self.ignored)}"] if self.ignored else []
        return f"{self.name}: {'; '.join(clauses)}"


def conditions(scenario: Any, name: str = "", rule: str = "") -> Conditions:
    """Return the conditions under which a scenario's protocol runs: link qualities, retries, roles, limits, settings.

    ``name``: the protocol's name in charts, by default the name of its class. ``rule``: a text that describes how the
    nodes with a role were chosen; without it, `Conditions.roles` lists these nodes.
    """
    protocol, radio = scenario.protocol, scenario.radio
    quality = "unused"
    if uses_quality(protocol):
        quality = "known" if radio.link_quality == "true" else "learned"
        if quality == "known" and not knows_links(radio, protocol, scenario.topology):
            quality = "unused"  # No link loses frames, so the ratios do not help.
    nodes_of_setting = protocol.named_nodes()
    roles = "; ".join(
        f"{setting} ({len(nodes)}) {rule or f'given: {_join_names(nodes)}'}"
        for setting, nodes in nodes_of_setting.items()
    )
    frame_limit = ""
    if radio.max_frame_B:
        most_fragments = protocol.max_fragments
        frame_limit = f"frames up to {radio.max_frame_B} B" + (
            f", up to {most_fragments} fragments" if most_fragments > 1 else ""
        )
    filters = tuple(protocol_part.name for protocol_part in protocol.parts())
    changed_settings = tuple(
        f"{parameter.name}={_format_value(protocol.settings[parameter.name])}"
        for parameter in protocol.parameters
        if parameter.name not in nodes_of_setting
        and parameter.unit != "Filter"
        and protocol.settings[parameter.name] != parameter.default
    )
    chart_name = name or type(protocol).public_class().__name__
    ignored = tuple(_find_ignored(scenario))
    return Conditions(
        chart_name, quality, own_retries(protocol), roles, frame_limit, filters, changed_settings, ignored
    )


def _find_ignored(scenario: Any) -> Iterator[str]:
    """Yield the features of the workload that the scenario's protocol ignores: "INTERVAL", "reinforcements".

    INTERVAL is the attribute by which a subscription requests fewer samples.
    """
    workload_items = scenario.workload
    subscriptions = (item for item in workload_items if isinstance(item, Subscribe))
    if not scenario.protocol.withholds and any(interval_us(parse(item.what)) for item in subscriptions):
        yield "INTERVAL"
    has_own_rule = type(scenario.protocol).reinforce is not Protocol.reinforce
    if not has_own_rule and any(isinstance(item, Reinforce) for item in workload_items):
        yield "reinforcements"


def warnings(compared: Sequence[Conditions]) -> list[str]:
    """Return a sentence for each advantage that only some of the ``compared`` protocols have."""
    advantages: tuple[tuple[str, Callable[[Conditions], Any]], ...] = (
        ("the true link qualities from the start (an oracle)", lambda entry: entry.link_quality == "known"),
        ("filters, which change what is sent", lambda entry: entry.filters),
        ("retries of their own, besides the radio's", lambda entry: entry.own_retries),
        ("the INTERVAL of subscriptions, so fewer readings", lambda entry: "INTERVAL" not in entry.ignored),
    )
    sentences = []
    for advantage_name, has_advantage in advantages:
        names_with = [entry.name for entry in compared if has_advantage(entry)]
        names_without = [entry.name for entry in compared if not has_advantage(entry)]
        if names_with and names_without:
            sentences.append(f"With {advantage_name}: {', '.join(names_with)}. Without: {', '.join(names_without)}.")
    return sentences


def shared(scenarios: Mapping[str, Any]) -> str:
    """Return a sentence that warns if the radios of all scenarios are ideal (without losses and collisions), or ""."""
    if scenarios and all(is_ideal(scenario.radio, scenario.topology) for scenario in scenarios.values()):
        return "The radio is ideal: no frame is lost and none collide, so costs and delays look better than on motes."
    return ""


def _join_names(names: Sequence[Any]) -> str:
    *first_names, last_name = map(str, names)
    return f"{', '.join(first_names)} and {last_name}" if first_names else last_name


def _format_value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
