"""A panel to run a scenario in the simulator or on virtual or connected motes, with progress and a stop button."""

from __future__ import annotations

import threading
import time
from collections import Counter
from itertools import cycle, islice
from typing import Any

import ipywidgets as widgets
import traitlets

from workbench import motes
from workbench.errors import WorkbenchError
from workbench.sim import fast
from workbench.sim.run import Run
from workbench.sim.scenario import Scenario
from workbench.widgets.controls import status_html, words
from workbench.widgets.history import State
from workbench.widgets.panel import close_all
from workbench.widgets.runs import Runs
from workbench.widgets.style_sheet import style_sheets

HERE, VIRTUAL, BOARDS = "here", "virtual motes", "connected motes"
MIXED = "all kinds in turn"
_KIND_TEXTS = {
    motes.MICROPYTHON: "each node gets a MicroPython of its own",
    motes.C: "each node is a process in C",
    motes.CORTEX_M3: "each node is a Cortex-M3 that QEMU emulates, with its program in C",
    MIXED: "the nodes get the kinds in turn",
}
_SLOW_S = 0.3  # a longer run shows its progress
_SILENT_S = 1.0  # a run that takes longer is named beside the buttons
_LIVE_EVERY_S = 1.0


class RunPanel(widgets.HBox):
    """Buttons that run a scenario and stop it, with a menu of where to run, progress, and messages.

    runs: the runs of the last lab state (`history.State`), one or two.
    live: (run, seconds so far) while a run on motes is in progress, else None.
    busy: whether a run is in progress.
    failed: number of runs so far that ended without a result.
    """

    runs = traitlets.Tuple()
    live = traitlets.Any(allow_none=True)
    busy = traitlets.Bool(False)
    failed = traitlets.Int()

    def __init__(self, scenario: Scenario | State | None = None) -> None:
        self.state = State(scenario) if isinstance(scenario, Scenario) else scenario
        self._began_s = 0.0
        self._running_timer = threading.Timer(_SILENT_S, self._show_running)
        self._motes: Any = None
        self._is_on_motes = self._is_stopping = False
        self._runs = Runs(self._show_results, self._show_failure, self._show_progress)
        self.run_button = widgets.Button(description="▶ Run", button_style="primary", layout={"width": "5.5em"})
        self.stop_button = widgets.Button(description="■ Stop", disabled=True, layout={"width": "5.5em"})
        self.where = widgets.Dropdown(options=[HERE, VIRTUAL, BOARDS], layout={"width": "10em"})
        self.where.add_class("wb-where")
        self.kind = widgets.Dropdown(layout={"width": "11em", "display": "none"})
        self.kind.add_class("wb-kind")
        self.bar = widgets.FloatProgress(min=0, max=1, layout={"width": "8em", "visibility": "hidden"})
        self.message = words()
        self.run_button.tooltip = "Run the scenario now; if it is simulated here, it also runs after every change"
        self.stop_button.tooltip = "End the run now, and keep its result so far"
        self.where.tooltip = "Where the nodes run: simulated here, or on motes"
        self.kind.tooltip = "Kind of the motes; the player's inspector shows it for each node"
        self.run_button.on_click(lambda _: self.play())
        self.stop_button.on_click(lambda _: self.stop())
        self.where.observe(lambda _: self._show_location_fields(), "value")
        self.kind.observe(lambda _: self._show_kind(), "value")
        controls = self.run_button, self.stop_button, self.where, self.kind, self.bar, self.message
        super().__init__((*controls, *style_sheets()))
        self.add_class("wb-part")

    def play(self, state: State | None = None) -> None:
        """Run the one or two scenarios of ``state``, a state of the lab; None: the state of the last call.

        A run of this panel that is in progress is cancelled.
        """
        self.state = state or self.state
        if self.state is None:
            self.show_message(
                "The panel has nothing to run; give it a scenario, as in RunPanel(scenario).", is_error=True
            )
        elif self._is_on_motes:
            self.show_message("Motes are running; stop them first.", is_error=True)
        elif self.where.value == HERE:
            self._show_start()
            self._runs.request(self.state)
        else:
            self._show_start()
            self._is_on_motes, self._is_stopping = True, False
            threading.Thread(target=self._play_on_motes, args=(self.state,), name="lab-motes", daemon=True).start()

    @property
    def is_outdated(self) -> bool:
        """True if a newer simulation is requested and has not begun yet, or if the panel is closed."""
        return self._runs.is_outdated

    def stop(self) -> None:
        """End the present run; its result so far is kept."""
        self._runs.stop()
        self._is_stopping = True
        live_run = self._motes
        if live_run is not None:
            threading.Thread(target=live_run.stop, daemon=True).start()

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait until no simulation is in progress; return False on timeout. Runs on motes are ignored."""
        return self._runs.wait(timeout_s)

    def close(self) -> None:
        """End all runs and close the widget."""
        self.stop()
        self._running_timer.cancel()
        self._runs.close()
        close_all(self)

    def show_message(self, sentence: str, is_error: bool = False) -> None:
        """Show a sentence beside the buttons."""
        self.message.value = status_html(sentence, is_error)

    def _show_location_fields(self) -> None:
        self.kind.layout.display = "" if self.where.value == VIRTUAL else "none"
        if self.where.value == BOARDS:
            ports = motes.listing()
            port_list = ", ".join(f"{url} ({description})" for url, description in ports) or "none are connected"
            self.show_message(f"Motes: {port_list}.")
        elif self.where.value == VIRTUAL:
            self._offer_kinds()
            self._show_kind()
        else:
            self.show_message("")

    def _offer_kinds(self) -> None:
        """Update the menu of kinds of virtual motes. A kind whose tools are not installed is marked as "missing"."""
        kinds = [kind for kind in motes.KINDS if kind != motes.SIMULATED]
        menu_entries = [(f"{kind}, missing" if motes.missing(kind) else kind, kind) for kind in kinds]
        if len(self._available_kinds()) > 1:
            menu_entries.append((MIXED, MIXED))
        if tuple(menu_entries) != tuple(self.kind.options):
            selected_kind = self.kind.value
            self.kind.options = menu_entries
            self.kind.value = selected_kind if selected_kind in dict(menu_entries).values() else kinds[0]

    def _available_kinds(self) -> list[str]:
        return [kind for kind in motes.KINDS if kind != motes.SIMULATED and motes.missing(kind) is None]

    def _show_kind(self) -> None:
        selected_kind = self.kind.value
        if selected_kind is None or self.where.value != VIRTUAL:
            return
        reason = None if selected_kind == MIXED else motes.missing(selected_kind)
        self.show_message(
            f"{reason}." if reason else f"Press Run: {_KIND_TEXTS[selected_kind]}, in real time.",
            is_error=reason is not None,
        )

    def __repr__(self) -> str:
        return f"RunPanel({self.state!r:.80})"

    # Runs on this machine

    def _show_start(self) -> None:
        self._began_s = time.monotonic()
        self.busy = True
        self.stop_button.disabled = False
        self._running_timer.cancel()
        self._running_timer = threading.Timer(_SILENT_S, self._show_running)
        self._running_timer.daemon = True
        self._running_timer.start()

    def _show_running(self) -> None:
        """Show which protocols are running. Called if a run takes long, for example because code is compiled."""
        state = self.state
        if self.busy and state is not None:
            protocols = [state.scenario.protocol, *([] if state.beside is None else [state.beside])]
            names = " and ".join(type(protocol).public_class().__name__ for protocol in protocols)
            self.show_message(f"running {names} ...")

    def _show_end(self) -> None:
        self._running_timer.cancel()
        self.busy = False
        self.stop_button.disabled = True
        self.bar.layout.visibility = "hidden"

    def _show_progress(self, share: float) -> None:
        if time.monotonic() - self._began_s > _SLOW_S:
            self.bar.value = share
            self.bar.layout.visibility = "visible"

    def _show_results(self, state: State, runs: tuple[Run, ...]) -> None:
        if state is not self.state:
            self._report_discarded_runs()
            return
        taken_s = time.monotonic() - self._began_s
        self._show_end()
        self.show_message(_describe_runs(state, runs, taken_s))
        self.runs = runs

    def _show_failure(self, state: State, sentence: str) -> None:
        if state is not self.state:
            self._report_discarded_runs()
            return
        self._show_end()
        self.show_message(sentence, is_error=True)
        self.failed += 1

    def _report_discarded_runs(self) -> None:
        """Increment ``failed`` after a run whose result is discarded because the lab's state changed meanwhile.

        The lab observes ``failed``: after an increment, it completes players that show only a preview of the previous
        run. If a newer run is pending, do nothing, because the players will show the newer run.
        """
        if not self.is_outdated:
            self.failed += 1

    # On motes

    def _play_on_motes(self, state: State) -> None:
        try:
            self._follow_live_run(self._choose_motes(len(state.scenario.topology)).play(state.scenario))
        except (WorkbenchError, OSError) as error:
            self._show_end()
            self.show_message(str(error), is_error=True)
        except Exception as error:
            self._show_end()
            self.show_message(f"the motes ended with {type(error).__name__}: {error}", is_error=True)
        finally:
            self._motes, self._is_on_motes, self.live = None, False, None

    def _choose_motes(self, nodes: int) -> Any:
        if self.where.value == VIRTUAL and self.kind.value == MIXED:
            return motes.virtual(kind=list(islice(cycle(self._available_kinds()), nodes)))
        if self.where.value == VIRTUAL:
            return motes.virtual(kind=self.kind.value)
        return motes.boards([url for url, _ in motes.listing()])

    def _follow_live_run(self, live: Any) -> None:
        self._motes = live
        if self._is_stopping:
            live.stop()
        while live.is_running:
            self.bar.value = live.now_s / live.scenario.duration_s
            self.bar.layout.visibility = "visible"
            self.show_message(
                f"{len(live.scenario.topology)} motes, {live.now_s:.0f} s of {live.scenario.duration_s:g} s"
            )
            self.live = live.so_far(), live.now_s
            live.join(_LIVE_EVERY_S)
        self._show_end()
        self.live = None
        note_text = f" {live.notes[-1]}." if live.notes else ""
        motes_per_kind = Counter(live.kinds.values())
        kinds = (
            f" ({', '.join(f'{count} {kind}' for kind, count in motes_per_kind.items())})"
            if len(motes_per_kind) > 1
            else ""
        )
        summary = f"Ran on {len(live.scenario.topology)} motes{kinds} for {live.now_s:.1f} s.{note_text}"
        self.show_message(summary, live.error is not None)
        self.runs = (live.so_far(),)


def _describe_runs(state: State, runs: tuple[Run, ...], taken_s: float) -> str:
    """Return a sentence about completed runs: the engine, the reason for this engine, and the computing time.

    ``state``: the lab state that was run. ``taken_s``: the computing time in s.
    """
    engines = {run.engine for run in runs}
    summary = f"{' and '.join(sorted(engines))} engine, {1000 * taken_s:,.0f} ms"
    if runs[0].scenario.duration_s < state.scenario.duration_s:
        return f"Stopped after {runs[0].scenario.duration_s:.1f} s of {state.scenario.duration_s:g} s ({summary})."
    if any(_is_being_compiled(run) for run in runs):
        return f"{summary}: the fast engine is being compiled in the background"
    reasons = [
        run.engine_reason for run in runs if run.engine == "reference" and not run.engine_reason.startswith("engine=")
    ]
    return f"{summary}{f': {reasons[0]}' if reasons else ''}"


def _is_being_compiled(run: Run) -> bool:
    """Return whether a run used the reference engine only because the fast engine is not compiled yet."""
    try:
        return run.engine == "reference" and not fast.is_warm(run.scenario.protocol)
    except fast.NoFastTwinError:
        return False
