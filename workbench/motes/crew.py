"""The motes of one run: a mote for each node of the scenario, opened, greeted and made that node."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from workbench import draws
from workbench.errors import LinkError, ScenarioError
from workbench.motes.line import Greeting
from workbench.motes.mote import Mote

T = TypeVar("T")

_AT_ONCE = 32
# UDP ports that systems hardly give out by themselves: Linux's own choice ends at 60999.
_FIRST_PORT, _PORTS = 61000, 4000

Tell = Callable[[int, str, Any], None]  # node, kind, value: see `mote.Mote`


class Crew:
    """Motes by node number; nodes without a URL are simulated. ``tell(node, kind, value)`` hears what the motes say,
    from their reading threads.

    ``radio``: settings for radios of the motes' own, besides what the scenario says of them.
    """

    def __init__(
        self,
        scenario: Any,
        urls: Mapping[int, str],
        now_us: Callable[[], float],
        tell: Tell,
        radio: Mapping[str, Any] | None = None,
    ) -> None:
        self.scenario = scenario
        # Of this run alone, so that motes of two runs do not take each other's frames.
        run = secrets.randbits(32)
        self._radio = {"run": run, "port": _FIRST_PORT + run % _PORTS, **(radio or {})}
        self.motes = {node: Mote(url, _telling(tell, node), now_us) for node, url in urls.items()}
        self.first_boots: dict[int, int] = {}  # how often each mote had begun before this run
        self._keys = scenario.user_keys()

    def open(self, timeout_s: float = 10.0) -> None:
        """Open and greet all motes; LinkError if one does not answer, or if only some have a radio of their own."""
        try:
            greetings = self.each(lambda _, mote: mote.open(timeout_s))
            _check_radios(greetings)
        except BaseException:
            self.close()
            raise
        self.first_boots = {node: greeting.boot for node, greeting in greetings.items()}

    def each(self, do: Callable[[int, Mote], T]) -> dict[int, T]:
        """``do(node, mote)`` for all motes at the same time; what came of it, by node, or the first failure."""
        with ThreadPoolExecutor(max(1, min(_AT_ONCE, len(self.motes)))) as pool:
            return dict(zip(self.motes, pool.map(do, self.motes, self.motes.values()), strict=True))

    def boards(self) -> dict[int, str]:
        """What each mote's board calls itself, by node."""
        return {node: mote.greeting.board for node, mote in self.motes.items() if mote.greeting is not None}

    @property
    def has_radios(self) -> bool:
        """Whether the motes have radios of their own; if not, their frames go over the host link."""
        return any(mote.greeting is not None and mote.greeting.has_radio for mote in self.motes.values())

    def configuration(self, node: int, boot: int = 0) -> dict[str, Any]:
        """What `Mote.configure` is to be given for a node; ``boot``: how often it began before and lost its memory.

        A run in lockstep leaves that at 0, as the simulator does. A live one counts from `first_boots` on: a mote that
        began again while no host looked on is new to neighbors that are not in the run, too.
        """
        key = draws.make_key(self.scenario.seed, draws.PROTOCOL, node)
        more: dict[str, Any] = {"keys": self._keys} if self._keys else {}
        if self.has_radios:
            # Motes on one table all hear each other: who hears whom is the topology's to say.
            neighbors = sorted(self.scenario.topology.predecessors(node))
            more["radio"] = {"jitter_ms": self.scenario.radio.jitter_ms[1], "neighbors": neighbors, **self._radio}
        protocol = protocol_on_a_mote(self.scenario.protocol, node)
        return {"address": node, "protocol": protocol, "key": key, "boot": boot, **more}

    def close(self) -> None:
        """Let all motes go."""
        self.each(lambda _, mote: mote.close())


def protocol_on_a_mote(protocol: Any, node: int | None = None) -> dict[str, Any]:
    """A protocol as the configuration of a node's mote names it: the class of its nodes, and all their settings.

    ScenarioError, with the reason, if its nodes cannot run on a mote.
    """
    if protocol.why_not_on_motes:
        raise ScenarioError(f"{type(protocol).__name__} cannot run on motes: {protocol.why_not_on_motes}")
    kind = protocol.kind_of_node()
    return {"node": f"{kind.__module__}:{kind.__name__}", "settings": protocol.on_a_mote(node)}


def _telling(tell: Tell, node: int) -> Callable[[str, Any], None]:
    return lambda kind, value: tell(node, kind, value)


def _check_radios(greetings: dict[int, Greeting]) -> None:
    kinds = {greeting.has_radio: node for node, greeting in greetings.items()}
    if len(kinds) > 1:
        raise LinkError(
            f"node {kinds[True]} has a radio of its own and node {kinds[False]} has none: they cannot hear each other"
        )
