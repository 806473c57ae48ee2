"""One run, or two side by side with one clock."""

from __future__ import annotations

from functools import partial
from typing import Any

import ipywidgets as widgets
import traitlets

from workbench.sim.run import Run
from workbench.views.player.living import PlayerView
from workbench.widgets.controls import words
from workbench.widgets.later import Later
from workbench.widgets.skin import skins


class Compare(widgets.HBox):
    """Players of one or two runs: ``show(runs)`` feeds them. Two have one clock, and the selection of the last used.

    ``glimpse(runs)`` and ``complete()`` are the same in two steps: first a picture of each, then the runs.

    ``selection``: what is picked: node, row (of the trace: a frame), time_s, as `PlayerView.selection` has it. Of a
    frame that is picked the player shows the bytes; `drop` gives up those under way, `wait` waits for them.
    """

    selection = traitlets.Dict()

    def __init__(self, *runs: Run) -> None:
        self.players: list[PlayerView] = []
        self._clock = f"clock-{id(self)}"
        self._later = Later()
        self._first = words("<p class='wb-said'>There is no run yet.</p>")
        self._skins = skins()
        super().__init__((self._first, *self._skins))
        self.add_class("wb-players")
        if runs:
            self.show(runs)

    def show(self, runs: tuple[Run, ...], **live: Any) -> None:
        """Show one or two runs in the players that are there. ``live``: as for `PlayerView.feed`."""
        self.glimpse(runs, **live)
        self.complete()

    def complete(self) -> None:
        """Show the whole runs of which glimpses are shown."""
        for player in self.players:
            player.complete()

    def glimpse(self, runs: tuple[Run, ...], **live: Any) -> None:
        """Show what is to be seen of one or two runs at the time that is looked at."""
        self.drop()
        for run, player in zip(runs, self.players, strict=False):
            player.glimpse(run, **live)
        for run in runs[len(self.players) :]:
            player = PlayerView(run, **live)
            player.wire.observe(self._picked, "selection")
            player.wire.add_class("wb-player-box")
            self.players.append(player)
        for player in self.players[len(runs) :]:
            player.close()
        del self.players[len(runs) :]
        for player in self.players:
            player.wire.clock = self._clock if len(runs) > 1 else ""
        wires = (*(player.wire for player in self.players), *self._skins)
        if tuple(self.children) != wires:  # type: ignore[has-type]
            self.children = wires

    def drop(self) -> None:
        """The bytes of the message that was picked are not fetched any more."""
        self._later.drop()

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait until the bytes of the message that is picked are there; False if that took too long."""
        return self._later.wait(timeout_s)

    def __repr__(self) -> str:
        return f"Compare({', '.join(repr(player.run)[:60] for player in self.players)})"

    def _picked(self, change: Any) -> None:
        self.selection = dict(change.new)
        row = change.new.get("row")
        player = next((one for one in self.players if one.wire is change.owner), None)
        if row is not None and row != (change.old or {}).get("row") and player is not None:
            self._later.want(partial(player.dissect, row))
