"""The workload of a scenario: subscriptions, publications and changes of the network, with their nodes and times.

Each item is a frozen value with a plain form for JSON. Times are in seconds from the start of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any

from workbench import attributes as attributes_module
from workbench import draws, mobility, purposes
from workbench.attributes.interests import is_within
from workbench.errors import AttributeFormatError, ScenarioError, WorkbenchError
from workbench.keywords import checked
from workbench.sensor_field import SensorField
from workbench.sim.actions import (
    ALL,
    CRASH,
    FAIL,
    PUBLISH,
    RECOVER,
    REINFORCE,
    SUBSCRIBE,
    UNSUBSCRIBE,
    Action,
    At,
    check_at,
    check_flag,
    check_interval,
    check_period,
    count_nodes,
    select_nodes,
    to_us,
)
from workbench.sim.changes.items import (
    BurstLoss,
    Crash,
    Jam,
    Join,
    Leave,
    LinkTrace,
    Move,
    NetworkItem,
    Outage,
    Partition,
    burst_loss,
    count_absent,
    crash,
    jam,
    join,
    leave,
    link_trace,
    move,
    outage,
    partition,
)
from workbench.sim.changes.measured import LinkQualities
from workbench.sim.readings import Readings
from workbench.suggestion import meant
from workbench.topology.edits import has_link_rule

# The limit of actions in a run. Each takes some 120 B before the run begins, and a publication has rows of the trace
# after that. The largest known log of readings has 2.3 million.
MOST_ACTIONS = 3_000_000


@dataclass(frozen=True)
class Subscribe:
    """A workload item: node(s) ``at`` subscribe to ``what`` at ``start_s``.

    The subscription expires ``expires_s`` later, or the nodes end it at ``stop_s``. ``match_all`` permits a
    subscription without constraints.
    """

    at: At
    what: str
    expires_s: float | None = None
    start_s: float = 0.0
    stop_s: float | None = None
    match_all: bool = False

    def actions(self, index: int, nodes: tuple[int, ...], duration_us: int, seed: int) -> Iterable[Action]:
        """Yield the subscribe action of each node and, if ``stop_s`` is given, its unsubscribe action.

        ``index``: this item's position in the workload. ``nodes``: all nodes of the network.
        """
        for node in select_nodes(self.at, nodes):
            yield Action(to_us(self.start_s), SUBSCRIBE, node, self, index)
            if self.stop_s is not None:
                yield Action(to_us(self.stop_s), UNSUBSCRIBE, node, self, index)

    def most_actions(self, nodes: int, duration_us: int) -> int:
        """Return an upper limit of the number of actions that the item causes in a network of ``nodes`` nodes."""
        return count_nodes(self.at, nodes) * (1 if self.stop_s is None else 2)


@dataclass(frozen=True)
class Publish:
    """A workload item: node(s) ``at`` publish ``what`` at ``start_s``; with ``every_s``, repeatedly until ``stop_s``.

    ``what``: text ("TEMP IS 26.5"); a SensorField, which computes the reading of a node from its position and the time;
    or Readings, which have their own times: those in [``start_s``, ``stop_s``) are published. The text has constraints
    only if the protocol allows them. ``stagger`` gives each node its own phase within ``every_s``, so that many sources
    do not publish at once.
    """

    at: At
    what: str | SensorField | Readings
    every_s: float | None = None
    start_s: float = 0.0
    stop_s: float | None = None
    payload: bytes = b""
    stagger: bool = False

    def actions(self, index: int, nodes: tuple[int, ...], duration_us: int, seed: int) -> Iterable[Action]:
        """Yield one publish action per reading and node.

        ``index``: this item's position in the workload. ``nodes``: all nodes of the network. ``seed``: the
        seed of the random phases that ``stagger`` causes.
        """
        stop_us = duration_us if self.stop_s is None else min(duration_us, to_us(self.stop_s))
        period_us = None if self.every_s is None else to_us(self.every_s)
        for node in select_nodes(self.at, nodes):
            if isinstance(self.what, Readings):
                start_us = to_us(self.start_s)
                for at_us in self.what.times_us:
                    if start_us <= at_us < stop_us:
                        yield Action(at_us, PUBLISH, node, self, index)
                continue
            time_us = to_us(self.start_s)
            if self.stagger and period_us:
                time_us += draws.below(draws.make_key(seed, purposes.JITTER, index, node), 0, period_us)
            while time_us < stop_us:
                yield Action(time_us, PUBLISH, node, self, index)
                if period_us is None:
                    break
                time_us += period_us

    def most_readings(self, nodes: int, duration_us: int) -> int:
        """Return the number of publications of the item in a network of ``nodes`` nodes during ``duration_us``.

        With ``stagger``, the result is an upper limit: each node's last reading may be omitted.
        """
        stop_us = duration_us if self.stop_s is None else min(duration_us, to_us(self.stop_s))
        start_us = to_us(self.start_s)
        if stop_us <= start_us:
            return 0
        if isinstance(self.what, Readings):
            per_node = self.what.count(start_us, stop_us)
        else:
            per_node = 1 if self.every_s is None else -(-(stop_us - start_us) // to_us(self.every_s))
        return per_node * count_nodes(self.at, nodes)

    def most_actions(self, nodes: int, duration_us: int) -> int:
        """Return an upper limit of the number of actions that the item causes in a network of ``nodes`` nodes."""
        return self.most_readings(nodes, duration_us)


@dataclass(frozen=True)
class Reinforce:
    """A workload item: sink(s) ``at`` reinforce the paths to some of their sources at ``start_s``, or repeatedly.

    ``what``: constraints at least as strict as those of a subscription of the sink. They select the sources whose last
    reading meets the constraints, for example all sources in a region. An INTERVAL among the constraints applies to
    these sources as long as the reinforced gradients last. With ``every_s`` the reinforcement is repeated until
    ``stop_s``. Protocols without reinforcement ignore the item.
    """

    at: At
    what: str
    every_s: float | None = None
    start_s: float = 0.0
    stop_s: float | None = None

    def actions(self, index: int, nodes: tuple[int, ...], duration_us: int, seed: int) -> Iterable[Action]:
        """Yield the reinforce actions of each node.

        ``index``: this item's position in the workload. ``nodes``: all nodes of the network.
        """
        first_us, last_us, period_us = self._times_us(duration_us)
        for node in select_nodes(self.at, nodes):
            for time_us in range(first_us, last_us, period_us):
                yield Action(time_us, REINFORCE, node, self, index)

    def most_actions(self, nodes: int, duration_us: int) -> int:
        """Return an upper limit of the number of actions that the item causes in a network of ``nodes`` nodes."""
        return len(range(*self._times_us(duration_us))) * count_nodes(self.at, nodes)

    def _times_us(self, duration_us: int) -> tuple[int, int, int]:
        """Return (first, end, step) in µs: the times of the reinforcements are ``range(first, end, step)``."""
        first_us = to_us(self.start_s)
        last_us = duration_us if self.stop_s is None else min(duration_us, to_us(self.stop_s))
        if self.every_s is None:
            return first_us, min(last_us, first_us + 1), 1
        return first_us, last_us, to_us(self.every_s)


Item = Subscribe | Publish | Reinforce | NetworkItem
KINDS: dict[str, type] = {
    "subscribe": Subscribe,
    "publish": Publish,
    "outage": Outage,
    "reinforce": Reinforce,
    "crash": Crash,
    "join": Join,
    "leave": Leave,
    "partition": Partition,
    "move": Move,
    "burst_loss": BurstLoss,
    "link_trace": LinkTrace,
    "jam": Jam,
}


@checked
def subscribe(
    at: int | Iterable[int] | str,
    what: str | Iterable[attributes_module.Attribute],
    expires_s: float | None = None,
    start_s: float = 0.0,
    stop_s: float | None = None,
    match_all: bool = False,
) -> Subscribe:
    """Return an item: node ``at`` (a number, several, or "all") subscribes to ``what``.

    Example: ``subscribe(at=1, what="TEMP GE 25")``. ``what``: text, or the result of ``wb.parse``. The other parameters
    are fields of `Subscribe`.
    """
    checked_times_s = check_period("expires_s", expires_s), *check_interval(start_s, stop_s)
    if isinstance(what, Mapping):
        raise ScenarioError(
            f"the argument `what` is {what!r:.60}; it must be text that compares values, "
            f"such as {_suggest_comparison(what)!r}"
        )
    text, attributes = _as_text_and_attributes(what, "TEMP GE 25")
    attributes_module.check_subscription(attributes, match_all)
    return Subscribe(check_at(at), text, *checked_times_s, check_flag("match_all", match_all))


@checked
def publish(
    at: int | Iterable[int] | str,
    what: str | Mapping[str, Any] | Iterable[attributes_module.Attribute] | SensorField | Readings,
    every_s: float | None = None,
    start_s: float = 0.0,
    stop_s: float | None = None,
    payload: bytes = b"",
    stagger: bool = False,
) -> Publish:
    """Return an item: node ``at`` publishes ``what``, once or every ``every_s`` seconds.

    Example: ``publish(at=17, what="TEMP IS 26.5")``. ``what``: text; a mapping such as {"TEMP": 26.5}, or
    ``wb.attributes(TEMP=26.5)``; a SensorField; or Readings. If the scenario's protocol allows constraints in
    publications, "TEMP IS 22, INSTANCE EQ 4" is only for subscriptions with "INSTANCE IS 4". ``payload``: bytes sent
    with each reading. ``at`` may also name several nodes, or be "all". The other parameters are fields of `Publish`.
    """
    checked_times_s = check_period("every_s", every_s), *check_interval(start_s, stop_s)
    if check_flag("stagger", stagger) and every_s is None:
        raise ScenarioError("stagger is True, but every_s is missing; stagger spreads the nodes over that period")
    published: str | SensorField | Readings
    if isinstance(what, Readings):
        published = what
        if every_s is not None:
            raise ScenarioError(f"every_s is {every_s}; it must be left out with Readings, which have their own times")
    elif isinstance(what, SensorField):
        published = what
        key = attributes_module.key_of(what.key)
        if key.type == attributes_module.BLOB:
            raise ScenarioError(
                f"the argument `what` is a SensorField of {key.name}, whose values are blobs; choose a key with "
                "numeric values"
            )
    else:
        published, attributes = _as_text_and_attributes(what, "TEMP IS 25")
        attributes_module.check_publication(attributes, constraints=True)
    return Publish(check_at(at), published, *checked_times_s, _check_payload(payload), stagger)


@checked
def reinforce(
    at: int | Iterable[int] | str,
    what: str | Iterable[attributes_module.Attribute],
    every_s: float | None = None,
    start_s: float = 0.0,
    stop_s: float | None = None,
) -> Reinforce:
    """Return an item: sink ``at`` reinforces the paths to the sources whose readings meet ``what``.

    Example: ``reinforce(at=1, what="TEMP GE 25, X LE 20, INTERVAL IS 1", start_s=10)``. ``what``: text, or the result
    of ``wb.parse``; its constraints must be at least as strict as those of a subscription of the sink.
    """
    checked_times_s = check_period("every_s", every_s), *check_interval(start_s, stop_s)
    text, attributes = _as_text_and_attributes(what, "TEMP GE 25, X LE 20")
    attributes_module.check_subscription(attributes, False)
    return Reinforce(check_at(at), text, *checked_times_s)


_MAKERS: dict[str, Callable[..., Any]] = {
    "subscribe": subscribe,
    "publish": publish,
    "outage": outage,
    "reinforce": reinforce,
    "crash": crash,
    "join": join,
    "leave": leave,
    "partition": partition,
    "move": move,
    "burst_loss": burst_loss,
    "link_trace": link_trace,
    "jam": jam,
}


def expand(items: Iterable[Item], nodes: tuple[int, ...], duration_us: int, seed: int) -> list[Action]:
    """Return all actions of a workload before ``duration_us``, in the order in which they happen."""
    items = list(items)
    actions = [
        action
        for index, item in enumerate(items)
        for action in item.actions(index, nodes, duration_us, seed)
        if action.time_us < duration_us
    ]
    if any(isinstance(item, Crash | Join) for item in items):
        actions += _repeat_subscriptions(items, actions, nodes)
    # Stable sorts, the last field first: tuples as keys would take more memory than the actions.
    for field in ("node", "index", "kind", "time_us"):
        actions.sort(key=attrgetter(field))
    return actions


def _repeat_subscriptions(items: list[Item], actions: list[Action], nodes: tuple[int, ...]) -> Iterator[Action]:
    """Yield the actions by which a node that starts without memory subscribes again.

    The node repeats its subscriptions that began before and have not ended; their times of expiry stay the same.
    ``actions``: the actions of ``items``.
    """
    subscriptions = [(index, item) for index, item in enumerate(items) if isinstance(item, Subscribe)]
    for node, start_us in _list_starts(items, actions, nodes):
        for index, item in subscriptions:
            begin_us, end_us = to_us(item.start_s), None if item.stop_s is None else to_us(item.stop_s)
            if begin_us >= start_us or (end_us is not None and end_us <= start_us):
                continue
            if item.at != ALL and node not in item.at:
                continue
            remaining_s = None
            if item.expires_s is not None:
                remaining_us = begin_us + int(item.expires_s * 1_000_000) - start_us
                if remaining_us <= 0:
                    continue
                remaining_s = (remaining_us + 0.5) / 1e6  # nodes round down to microseconds
            repeated_item = replace(item, start_s=start_us / 1e6, expires_s=remaining_s)
            yield Action(start_us, SUBSCRIBE, node, repeated_item, index)


def _list_starts(items: list[Item], actions: list[Action], nodes: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return (node, time in µs) of each start of a node without memory, except the starts at time 0."""
    down_counts = count_absent(items, nodes)
    lost_memory = set(down_counts)
    starts = []
    for action in sorted(actions, key=attrgetter("time_us", "kind")):
        if action.kind not in (RECOVER, FAIL, CRASH):
            continue
        node = action.node
        down_counts[node] = down_counts.get(node, 0) + (-1 if action.kind == RECOVER else 1)
        if action.kind == CRASH:
            lost_memory.add(node)
        elif action.kind == RECOVER and down_counts[node] == 0 and node in lost_memory:
            lost_memory.discard(node)
            starts.append((node, action.time_us))
    return starts


def to_dict(item: Item) -> dict[str, Any]:
    """Return an item as plain values, ready for JSON: {"subscribe": {...}}. Fields with their default are left out."""
    item_kind = next(name for name, cls in KINDS.items() if isinstance(item, cls))
    plain_values: dict[str, Any] = {}
    for field in fields(item):
        value = getattr(item, field.name)
        if value == field.default and type(value) is type(field.default):
            continue
        if isinstance(value, bytes):
            value = value.hex()
        elif hasattr(value, "to_dict"):  # a sensor field, readings, a model of movement, a link trace
            value = value.to_dict()
        elif isinstance(value, tuple):
            value = list(value) if len(value) != 1 else value[0]
        plain_values[field.name] = value
    return {item_kind: plain_values}


def from_dict(values: Any, where: str = "workload item") -> Item:
    """Return the workload item that plain values describe, such as {"subscribe": {...}} from a JSON file.

    Raises ScenarioError, which names the wrong field; its message begins with ``where``.
    """
    if not isinstance(values, Mapping) or len(values) != 1 or next(iter(values)) not in KINDS:
        kinds = " or ".join(f'"{item_kind}"' for item_kind in KINDS)
        raise ScenarioError(f"{where} is {values!r}; it must be an object with one key, {kinds}")
    ((item_kind, item_fields),) = values.items()
    if not isinstance(item_fields, Mapping):
        raise ScenarioError(f"{where}: {item_kind} is {item_fields!r}; it must be an object with fields")
    _check_fields(where, item_kind, item_fields)
    arguments = dict(item_fields)
    try:
        if "payload" in arguments:
            arguments["payload"] = _from_hex(arguments["payload"])
        if isinstance(arguments.get("what"), Mapping):
            reading_class = Readings if "times_s" in arguments["what"] else SensorField
            arguments["what"] = reading_class.from_dict(arguments["what"])
        if isinstance(arguments.get("along"), Mapping):
            arguments["along"] = mobility.from_dict(arguments["along"])
        if "trace" in arguments:
            arguments["trace"] = LinkQualities.from_dict(arguments["trace"])
        return _MAKERS[item_kind](**arguments)
    except WorkbenchError as error:
        raise ScenarioError(f"{where}: {error}") from None


def _check_fields(where: str, kind: str, item_fields: Mapping[str, Any]) -> None:
    known_fields = {field.name: field.default for field in fields(KINDS[kind])}
    for name in item_fields:
        if name not in known_fields:
            raise ScenarioError(
                f"{where}: {kind} has no field {name!r}{meant(name, known_fields)}; it has: {', '.join(known_fields)}"
            )
    for name, default in known_fields.items():
        if default is MISSING and name not in item_fields:
            raise ScenarioError(f"{where}: {kind} lacks the field {name}; its fields are: {', '.join(known_fields)}")


def keys_of(item: Item) -> set[int]:
    """Return the numbers of the attribute keys that a workload item uses."""
    content = getattr(item, "what", None)
    if isinstance(content, str):
        return {attribute.key for attribute in attributes_module.parse(content)}
    key_names = content.keys if isinstance(content, Readings) else (content.key,) if content is not None else ()
    return {attributes_module.key_of(name).number for name in key_names}


def check_nodes(items: Iterable[Item], nodes: Iterable[int]) -> None:
    """Raise ScenarioError for an item at a node that the topology does not have."""
    known_nodes = set(nodes)
    for index, item in enumerate(items):
        for node in () if item.at == ALL else item.at:
            if node not in known_nodes:
                raise ScenarioError(
                    f"workload item {index} is at node {node!r:.60}, which the topology does not have; "
                    f"its {len(known_nodes)} nodes are numbered {min(known_nodes)} to {max(known_nodes)}"
                )


def check_joins(items: Iterable[Item], nodes: Iterable[int]) -> None:
    """Raise ScenarioError for a node that leaves the network before it joins."""
    items = list(items)
    if not any(isinstance(item, Join) for item in items):
        return
    all_nodes = tuple(nodes)
    joins_s = {
        node: item.start_s for item in items if isinstance(item, Join) for node in select_nodes(item.at, all_nodes)
    }
    for index, item in enumerate(items):
        if isinstance(item, Leave):
            for node in select_nodes(item.at, all_nodes):
                if item.start_s < joins_s.get(node, 0.0):
                    raise ScenarioError(
                        f"workload item {index} lets node {node} leave for good at {item.start_s:g} s, before it joins "
                        f"at {joins_s[node]:g} s; use a crash or an outage for a node that comes back"
                    )


def check_movements(items: Iterable[Item], graph: Any) -> None:
    """Check all `Move` items of a workload in the network ``graph``.

    Raises ScenarioError if two items move the same node, if their ``radius_m`` differ, or if ``radius_m`` is missing
    and positions do not determine the links of the network.
    """
    moves = [(index, item) for index, item in enumerate(items) if isinstance(item, Move)]
    nodes = tuple(graph.nodes) if moves else ()
    item_of_node: dict[int, int] = {}
    for index, item in moves:
        if item.radius_m is None and not has_link_rule(graph):
            raise ScenarioError(
                f"workload item {index} moves nodes, but their positions do not determine the links of this network; "
                "give radius_m, or a topology made by disc, random_geometric, office or from_positions"
            )
        if item.radius_m != moves[0][1].radius_m:
            raise ScenarioError(
                f"workload item {index} has radius_m {item.radius_m}, and item {moves[0][0]} has "
                f"{moves[0][1].radius_m}; all movements must have the same"
            )
        for node in select_nodes(item.at, nodes):
            if item_of_node.setdefault(node, index) != index:
                raise ScenarioError(
                    f"workload items {item_of_node[node]} and {index} both move node {node}; leave one out"
                )


def check_unconstrained(items: Iterable[Item]) -> None:
    """Raise ScenarioError for the first publication that has constraints (attributes with an operator other than IS).

    This check is for protocols that do not allow constraints in publications.
    """
    for index, item in enumerate(items):
        if isinstance(item, Publish) and isinstance(item.what, str):
            sentence = _describe_constraints(item.what)
            if sentence:
                raise ScenarioError(
                    f"workload item {index}: {sentence}, or a protocol that allows constraints in publications"
                )


@lru_cache(maxsize=100_000)
def _describe_constraints(text: str) -> str:
    """Return a sentence that explains why the publication ``text`` is refused, or "" if it has no constraints.

    Constraints are attributes with another operator than IS.
    """
    attributes = attributes_module.parse(text)
    if all(attribute.operator == attributes_module.IS for attribute in attributes):
        return ""
    try:
        attributes_module.check_publication(attributes)
    except AttributeFormatError as error:
        return str(error)
    return ""


def describe_idle(items: Iterable[Item], nodes: Iterable[int]) -> str:
    """Return a warning about the first reinforcement without effect, or "".

    A reinforcement has an effect at a node only if its constraints are at least as strict as those of one of the node's
    subscriptions.
    """
    items = list(items)
    all_nodes = tuple(nodes) if any(isinstance(item, Reinforce) for item in items) else ()
    for index, item in enumerate(items):
        if not isinstance(item, Reinforce):
            continue
        attributes = attributes_module.parse(item.what)
        containing_items = [
            other_item
            for other_item in items
            if isinstance(other_item, Subscribe) and is_within(attributes, attributes_module.parse(other_item.what))
        ]
        for node in select_nodes(item.at, all_nodes):
            if not any(other_item.at == ALL or node in other_item.at for other_item in containing_items):
                return (
                    f"workload item {index} has no effect at node {node}: a reinforcement must be at least as strict "
                    f"as a subscription of the node, and {item.what!r:.60} is not; add constraints to it, or a "
                    "subscription"
                )
    return ""


def describe_late(items: Iterable[Item], duration_s: float) -> str:
    """Return a sentence that warns of items that start after the run's end, or "" if all items start before."""
    late_items = [(index, item.start_s) for index, item in enumerate(items) if item.start_s >= duration_s]
    if not late_items:
        return ""
    index, start_s = late_items[0]
    summary = (
        f"workload item {index} never happens"
        if len(late_items) == 1
        else f"{len(late_items)} workload items never happen"
    )
    return (
        f"{summary}: item {index} starts at {start_s:g} s, and the run ends at {duration_s:g} s; "
        "choose an earlier start_s or a longer duration_s"
    )


def check_size(items: Iterable[Item], nodes: int, duration_us: int) -> None:
    """Raise ScenarioError if a workload causes more than MOST_ACTIONS actions in a network of ``nodes`` nodes."""
    items = list(items)
    action_count = sum(item.most_actions(nodes, duration_us) for item in items)
    if action_count > MOST_ACTIONS:
        publications = sum(item.most_readings(nodes, duration_us) for item in items if isinstance(item, Publish))
        raise ScenarioError(
            f"the workload makes {action_count:,} actions, {publications:,} of them publications; at most "
            f"{MOST_ACTIONS:,} actions are allowed: choose a longer every_s, fewer nodes or a shorter duration_s"
        )


# Items are checked at construction, so that errors do not come in the middle of a run.


def _check_payload(value: Any) -> bytes:
    if not isinstance(value, (bytes, bytearray)):
        example = f" such as b{value!r:.60}" if isinstance(value, str) and value.isascii() else ""
        raise ScenarioError(f"payload is {value!r:.60}; it must be bytes{example}")
    if len(value) > attributes_module.LONGEST_PAYLOAD:
        raise ScenarioError(f"payload has {len(value)} bytes; it must have {attributes_module.LONGEST_PAYLOAD} at most")
    return bytes(value)


def _from_hex(value: Any) -> bytes:
    try:
        return bytes.fromhex(value)
    except (TypeError, ValueError):
        raise ScenarioError(f"payload is {value!r:.60}; it must be text of hex digits, two for each byte") from None


def _as_text_and_attributes(content: Any, example: str) -> tuple[str, tuple[Any, ...]]:
    """Return (text, attributes) of a subscription or publication.

    ``content``: the argument `what`: text, a mapping of keys to values, or attributes; other values raise
    ScenarioError. ``example``: a valid text, shown in error messages.
    """
    if isinstance(content, str):
        return content, attributes_module.parse(content)
    if isinstance(content, Mapping):
        attributes = attributes_module.describe(content)
    elif isinstance(content, (tuple, list)) and all(isinstance(item, attributes_module.Attribute) for item in content):
        attributes = tuple(attributes_module.check(attribute) for attribute in content)
    elif isinstance(content, (tuple, list)) and content and all(isinstance(part, str) for part in content):
        raise ScenarioError(
            f"the argument `what` is {content!r:.60}; pass one text with commas: {', '.join(content)!r:.60}"
        )
    else:
        raise ScenarioError(f"the argument `what` is {content!r:.60}; it must be text such as {example!r}")
    return attributes_module.to_text(attributes), attributes


def _suggest_comparison(values: Mapping[Any, Any]) -> str:
    """Return the text of a valid subscription, to be suggested in an error message.

    {"TEMP": 25} results in "TEMP EQ 25". If ``values`` is not valid, the text is a fixed example.
    """
    try:
        equal = (attribute._replace(operator=attributes_module.EQ) for attribute in attributes_module.describe(values))
        return attributes_module.to_text(tuple(equal)) or "TEMP GE 25"
    except WorkbenchError:
        return "TEMP GE 25"
