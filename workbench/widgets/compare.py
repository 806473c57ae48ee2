"""A panel with the player of a run, or with two players that show two runs at the same simulated time."""

from __future__ import annotations

from functools import partial
from typing import Any

import ipywidgets as widgets
import traitlets

from workbench.sim.run import Run
from workbench.views.player.embed import new_id
from workbench.views.player.living import PlayerView
from workbench.widgets.controls import words
from workbench.widgets.deferred import Deferred
from workbench.widgets.style_sheet import style_sheets


class Compare(widgets.HBox):
    """One player, or two players side by side that share a clock.

    `show` replaces the runs in the players. `preview` and `complete` do the same in two steps: `preview` shows a single
    moment of each run, `complete` then shows the whole runs.

    clock: the name of the playback clock that the players share, so that both show the same time.
    selection: the user's last selection in a player: node, row (of a frame in the trace) and time_s, as in
        `PlayerView.selection`.

    When the user selects a frame, its bytes are fetched in the background; `cancel` stops the fetch, and `wait` waits
    for its end.
    """

    selection = traitlets.Dict()

    def __init__(self, *runs: Run) -> None:
        self.players: list[PlayerView] = []
        self.clock = new_id()
        self._deferred = Deferred()
        self._placeholder = words("<p class='wb-said'>The run appears here when it is finished.</p>")
        self._style_sheets = style_sheets()
        super().__init__((self._placeholder, *self._style_sheets))
        self.add_class("wb-players")
        if runs:
            self.show(runs)

    def show(self, runs: tuple[Run, ...], **live: Any) -> None:
        """Show one or two runs in the players.

        ``live``: for a run in progress, its current time (``now_s``) and sentences about problems (``notes``).
        """
        self.preview(runs, **live)
        self.complete()

    def complete(self) -> None:
        """Show the whole runs in the players, after `preview` has shown a single moment of each run."""
        for player in self.players:
            player.complete()

    def preview(self, runs: tuple[Run, ...], **live: Any) -> None:
        """Show one or two runs at the time that the players display now; `complete` then shows the whole runs.

        ``live``: for a run in progress, its current time (``now_s``) and sentences about problems (``notes``).
        """
        self.cancel()
        for run, player in zip(runs, self.players, strict=False):
            player.preview(run, **live)
        for run in runs[len(self.players) :]:
            player = PlayerView(run, **live)
            player.wire.observe(self._fetch_bytes, "selection")
            player.wire.add_class("wb-player-box")
            self.players.append(player)
        for player in self.players[len(runs) :]:
            player.close()
        del self.players[len(runs) :]
        for player in self.players:
            player.wire.clock = self.clock
        wires = (*(player.wire for player in self.players), *self._style_sheets)
        if tuple(self.children) != wires:  # type: ignore[has-type]
            self.children = wires

    def cancel(self) -> None:
        """Stop fetching the bytes of the selected frame."""
        self._deferred.cancel()

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait for the bytes of the selected frame; return False on timeout."""
        return self._deferred.wait(timeout_s)

    def __repr__(self) -> str:
        return f"Compare({', '.join(repr(player.run)[:60] for player in self.players)})"

    def _fetch_bytes(self, change: Any) -> None:
        self.selection = dict(change.new)
        row = change.new.get("row")
        player = next((candidate for candidate in self.players if candidate.wire is change.owner), None)
        if row is not None and row != (change.old or {}).get("row") and player is not None:
            self._deferred.submit(partial(player.dissect, row))
