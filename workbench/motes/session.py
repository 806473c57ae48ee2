"""The session of one run with its motes: it opens their lines, greets them, and builds their configurations."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from workbench import draws
from workbench.errors import LinkError, ScenarioError
from workbench.motes.line import Greeting
from workbench.motes.mote import Mote
from workbench.sim.radio import uses_quality

T = TypeVar("T")

_MOST_THREADS = 32
# UDP ports that systems rarely assign by themselves: Linux's own range ends at 60999.
_FIRST_PORT, _PORTS = 61000, 4000

Report = Callable[[int, str, Any], None]  # node, kind, value: see `mote.Mote`


class MoteSession:
    """A run's connections to its motes. ``urls`` is {node: URL of its mote}; nodes without a URL are simulated.

    ``now_us()`` returns the host's time in µs. Reading threads call ``report(node, kind, value)`` with the motes'
    messages. ``radio`` has settings for the motes' own radios, in addition to the scenario's.
    """

    def __init__(
        self,
        scenario: Any,
        urls: Mapping[int, str],
        now_us: Callable[[], float],
        report: Report,
        radio: Mapping[str, Any] | None = None,
    ) -> None:
        self.scenario = scenario
        # Random, so that motes of two runs do not accept each other's frames.
        run_id = secrets.randbits(32)
        self._radio = {"run": run_id, "port": _FIRST_PORT + run_id % _PORTS, **(radio or {})}
        self.motes = {node: Mote(url, _make_report(report, node), now_us) for node, url in urls.items()}
        self.first_boots: dict[int, int] = {}  # each mote's number of starts before this run
        self._keys = scenario.user_keys()

    def open(self, timeout_s: float = 10.0) -> None:
        """Open the lines and greet all motes.

        Raises LinkError if a mote does not answer, or if only some motes have radios of their own.
        """
        try:
            greetings = self.each(lambda _, mote: mote.open(timeout_s))
            _check_radios(greetings)
            if self.has_radios and self._uses_learned_quality and len(self.motes) < len(self.scenario.topology):
                raise LinkError(
                    'link_quality is "learned", which is not possible if some nodes are boards with radios and others '
                    "are simulated; use another link_quality, or a board for each node"
                )
        except BaseException:
            self.close()
            raise
        self.first_boots = {node: greeting.boot for node, greeting in greetings.items()}

    def each(self, do: Callable[[int, Mote], T]) -> dict[int, T]:
        """Call ``do(node, mote)`` for all motes in parallel threads; return {node: result} or raise the first error."""
        with ThreadPoolExecutor(max(1, min(_MOST_THREADS, len(self.motes)))) as thread_pool:
            return dict(zip(self.motes, thread_pool.map(do, self.motes, self.motes.values()), strict=True))

    def boards(self) -> dict[int, str]:
        """Return {node: name of its mote's board}."""
        return {node: mote.greeting.board for node, mote in self.motes.items() if mote.greeting is not None}

    @property
    def _uses_learned_quality(self) -> bool:
        return self.scenario.radio.link_quality == "learned" and uses_quality(self.scenario.protocol)

    @property
    def has_radios(self) -> bool:
        """True if the motes have radios of their own. Otherwise their frames go over the host link."""
        return any(mote.greeting is not None and mote.greeting.has_radio for mote in self.motes.values())

    def configuration(self, node: int, boot: int = 0) -> dict[str, Any]:
        """Return the arguments of `Mote.configure` for a node as a dict.

        ``boot`` is the number of earlier starts that the node gets. In lockstep the caller counts only the starts in
        this run. In a live run it also counts the starts before the run (`first_boots`), which neighbors outside of
        the run may remember.
        """
        key = draws.make_key(self.scenario.seed, draws.PROTOCOL, node)
        optional_fields: dict[str, Any] = {"keys": self._keys} if self._keys else {}
        if self.has_radios:
            # Motes on one table all hear each other; the topology restricts them to its links.
            neighbors = sorted(self.scenario.topology.predecessors(node))
            radio: dict[str, Any] = {"jitter_ms": self.scenario.radio.jitter_ms[1], "neighbors": neighbors}
            simulated = sorted(set(self.scenario.topology.successors(node)).difference(self.motes))
            if simulated:
                radio["simulated"] = simulated  # The mote sends the host a copy of each frame for these nodes.
            if self._uses_learned_quality:
                radio["link_quality"] = "learned"
            optional_fields["radio"] = {**radio, **self._radio}
        protocol = protocol_on_a_mote(self.scenario.protocol, node)
        return {"address": node, "protocol": protocol, "key": key, "boot": boot, **optional_fields}

    def close(self) -> None:
        """Close the lines to all motes."""
        self.each(lambda _, mote: mote.close())


def protocol_on_a_mote(protocol: Any, node: int | None = None) -> dict[str, Any]:
    """Return the part of a mote's configuration that sets its protocol: {"node": "module:class", "settings": {...}}.

    ``node`` is the node on the mote, so that a protocol can leave out settings that only other nodes need. None: the
    settings of all nodes. Raises ScenarioError, with the reason, if the protocol's nodes cannot run on a mote.
    """
    if protocol.why_not_on_motes:
        raise ScenarioError(f"{type(protocol).__name__} cannot run on motes: {protocol.why_not_on_motes}")
    kind = protocol.kind_of_node()
    return {"node": f"{kind.__module__}:{kind.__name__}", "settings": protocol.on_a_mote(node)}


def _make_report(report: Report, node: int) -> Callable[[str, Any], None]:
    return lambda kind, value: report(node, kind, value)


def _check_radios(greetings: dict[int, Greeting]) -> None:
    kinds = {greeting.has_radio: node for node, greeting in greetings.items()}
    if len(kinds) > 1:
        raise LinkError(
            f"node {kinds[True]} has a radio of its own, node {kinds[False]} does not; use motes of one kind"
        )
