"""The lab: all parts around one scenario.

    wb.lab()                what was composed here before, or a scenario to begin with
    wb.lab(scenario)        that scenario
    wb.lab(name="two")      another lab beside: each name has a file of its own

``lab.scenario`` and ``lab.run`` are what is shown; the lab is an ordinary widget.
"""

from __future__ import annotations

import sys
from typing import Any

import ipywidgets as widgets
import traitlets

from workbench import public_names, topology
from workbench.errors import ScenarioError, WorkbenchError
from workbench.keywords import checked
from workbench.notice import notebook_kernel
from workbench.protocols.protocol import Protocol
from workbench.sim.file_format import known_protocols, protocol_from_dict
from workbench.sim.run import Run
from workbench.sim.scenario import Scenario
from workbench.sim.workload import Item, Outage, Publish, Subscribe, publish, subscribe
from workbench.widgets.cards import Cards, Differences
from workbench.widgets.compare import Compare
from workbench.widgets.controls import error_html, words
from workbench.widgets.filters import Filters
from workbench.widgets.history import History, State
from workbench.widgets.network import Network
from workbench.widgets.part import close_all
from workbench.widgets.protocol import ProtocolForm
from workbench.widgets.radio import Conditions, RadioForm
from workbench.widgets.run_panel import HERE, RunPanel
from workbench.widgets.skin import one_for_all, skins
from workbench.widgets.store import Store
from workbench.widgets.sweep import SweepPanel
from workbench.widgets.take_away import TakeAway
from workbench.widgets.why_not import WhyNot
from workbench.widgets.workload import Workload

LARGEST = 2000  # nodes; larger ones are run when asked for, not at every change
_ALONE = "nothing"
_NOT_A_NOTEBOOK = (
    "wb.lab() is shown in a notebook only: `workbench lab` in a terminal opens one, `workbench app` the lab alone"
)
_CLOSING_S = 5.0  # a run that is given up ends at its next look at progress
# What the map's buttons ask for -> the workload's kind of item.
_KINDS = {"sink": "subscribe", "subscribe": "subscribe", "source": "publish", "publish": "publish", "fail": "outage"}
_open: dict[str, Lab] = {}


@checked
def lab(scenario: Scenario | None = None, name: str = "lab") -> Lab:
    """The lab, with what was composed under this name before; with ``scenario``, if it was opened with that one.

    There is one of a name: one that is open already, as when a cell is run again, is closed. Outside of a notebook it
    cannot be seen; a line on standard error names the command that opens one.
    """
    if not isinstance(scenario, Scenario | None):
        raise ScenarioError(f"scenario is {scenario!r:.60}; it must be a scenario, or None for what was there before")
    if notebook_kernel() is None:
        print(_NOT_A_NOTEBOOK, file=sys.stderr)
    before = _open.pop(name, None)
    if before is not None:
        before.close()
    _open[name] = made = Lab(scenario, name)
    return made


def first_scenario() -> Scenario:
    """What a lab begins with: some forty nodes, a sink, two sources."""
    graph = topology.disc(40, 100, 60, radius_m=22, seed=3)
    protocol = protocol_named(public_names.FIRST_PROTOCOL)
    workload: tuple[Item, ...] = (
        subscribe(0, "TEMP GE 20", start_s=1),
        publish([31, 37], "TEMP IS 25", start_s=4, every_s=5, stagger=True),
    )
    return Scenario(graph, protocol, workload, duration_s=60)


def protocol_named(name: str) -> Protocol:
    """A protocol with its defaults, by its public name."""
    return protocol_from_dict({"name": name})


@checked
class Lab(widgets.VBox):
    """All parts around one scenario; see the module's page."""

    _is_closed = True  # until it is made: of one that is refused there is nothing to close

    def __init__(self, scenario: Scenario | None = None, name: str = "lab") -> None:
        self._store = Store(name)
        opened = scenario or first_scenario()
        self._opened_with = opened.hash
        self._history = History(self._store.read(scenario) or State(opened))
        self._is_showing = self._is_closed = False
        self._text = ""  # of a closed lab: its scenario
        self._before: Any = None  # metrics of the run before
        with one_for_all():
            self._make_parts()
        self._make_frame()
        self._wire()
        self._show_state()
        self._play()

    @property
    def scenario(self) -> Scenario:
        """The scenario as it is now."""
        return Scenario.from_json(self._text) if self._text else self._history.scenario

    @property
    def run(self) -> Run | None:
        """The run that is shown, on the left if there are two; None before the first, and of a closed lab."""
        return self.runs[0] if self.runs else None

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs that are shown: one, or two side by side."""
        return () if self._is_closed else self._panel.runs

    @property
    def selection(self) -> dict[str, Any]:
        """What is picked in the player: node, row (of the trace: a frame), time_s."""
        return {} if self._is_closed else dict(self._players.selection)

    def change(self, **fields: Any) -> bool:
        """Change the scenario as a part would: topology, protocol, workload, radio, duration_s, seed, beside."""
        return not self._is_closed and self._history.change(**fields)

    def undo(self) -> None:
        """Back to what was before the last change."""
        if not self._is_closed:
            self._history.undo()

    def redo(self) -> None:
        """To what was undone."""
        if not self._is_closed:
            self._history.redo()

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait until the run of what is shown is there; False if that took too long."""
        return self._is_closed or self._panel.wait(timeout_s)

    def close(self) -> None:
        """End what runs, write what was composed, and close all widgets."""
        if self._is_closed:
            super().close()
            return
        self._is_closed = True
        self._store.flush()
        self._panel.close()
        self._sweep.stop()
        for part in (self._why_not, self._filters, self._players):
            part.drop()
        for player in self._players.players:
            player.close()
            player.wire.parcel = b""
        close_all(self)
        self._become_a_husk()

    def _become_a_husk(self) -> None:
        """Let go of all parts and runs: a notebook keeps what its cells have answered. The scenario stays, as text."""
        self._panel.wait(_CLOSING_S)  # what is being shown may still look for its parts
        try:
            self._text, self._before = self.scenario.to_json(indent=None), None
        except WorkbenchError:  # it has no text: the lab keeps what it is made of
            return
        for name, held in list(vars(self).items()):
            if isinstance(held, traitlets.HasTraits):
                delattr(self, name)
        self.children = ()

    def __repr__(self) -> str:
        return f"Lab({self.scenario!r})"

    # What it is made of

    def _make_parts(self) -> None:
        now = self.scenario
        self._network = Network(now.topology, undo=False)
        self._workload = Workload(now.workload)
        self._filters = Filters(now.protocol)
        self._protocol = ProtocolForm(now.protocol)
        self._radio = RadioForm(Conditions(now.radio, now.duration_s, now.seed))
        self._panel = RunPanel(self._history.state)
        self._players = Compare()
        self._cards = Cards()
        self._differences = Differences()
        self._why_not = WhyNot()
        self._sweep = SweepPanel(now)
        self._take_away = TakeAway(lambda: self.run, lambda: self._players.selection.get("time_s"))

    def _make_frame(self) -> None:
        self._undo = widgets.Button(icon="undo", tooltip="Undo", layout={"width": "2.6em"})
        self._redo = widgets.Button(icon="repeat", tooltip="Redo", layout={"width": "2.6em"})
        names = [_ALONE, *known_protocols()]
        self._beside = widgets.Dropdown(options=names, description="beside it:", layout={"width": "15em"})
        self._beside.tooltip = "Another protocol on the same workload, side by side"
        self._drawer = widgets.ToggleButton(description="Forms", icon="bars", layout={"width": "6.5em"})
        self._drawer.tooltip = "Show what the scenario is made of, or hide it"
        self._drawer.add_class("wb-drawer")
        back = widgets.HBox((self._undo, self._redo))
        bar = widgets.HBox((self._drawer, self._panel, back, self._beside))
        bar.add_class("wb-bar")
        self._left = widgets.Tab(
            (self._network, self._workload, self._filters, self._protocol, self._radio),
            titles=("Network", "Data", "Filters", "Protocol", "Radio and time"),
        )
        self._left.add_class("wb-forms")
        self._below = widgets.Tab(
            (self._why_not, self._differences, self._sweep, self._take_away),
            titles=("Why not", "Differences", "Sweep", "Take away"),
        )
        self._below.add_class("wb-below")
        right = widgets.VBox((self._players, self._cards, self._below))
        right.add_class("wb-looks")
        self._middle = widgets.HBox((self._left, right))
        self._middle.add_class("wb-middle")
        notice = words(error_html(self._store.said))
        super().__init__((*skins(), bar, notice, self._middle))
        self.add_class("wb-lab")

    def _wire(self) -> None:
        history = self._history
        history.observe(lambda _: self._state_changed(), "state")
        history.observe(lambda _: self._tell_error(), "error")
        self._undo.on_click(lambda _: self.undo())
        self._redo.on_click(lambda _: self.redo())
        self._beside.observe(self._choose_beside, "value")
        self._drawer.observe(self._draw_drawer, "value")
        for part, field in (
            (self._network, "topology"),
            (self._workload, "workload"),
            (self._filters, "protocol"),
            (self._protocol, "protocol"),
        ):
            part.observe(lambda change, field=field: self._offered(**{field: change.new}), "value")
        self._radio.observe(lambda change: self._offered(**change.new._asdict()), "value")
        for form in (self._protocol, self._radio):
            form.observe(self._vary, "varied")
        self._network.observe(self._asked, "asked")
        self._network.observe(lambda change: self._share_picked(tuple(change.new)), "picked")
        self._panel.observe(lambda change: self._show_runs(change.new), "runs")
        self._panel.observe(self._show_live, "live")
        self._panel.observe(lambda _: self._players.complete(), "failed")
        self._players.observe(self._say_again, "selection")
        self._below.observe(lambda _: self._look_below(), "selected_index")
        self._look_below()

    # From the parts to the state, and back

    def _offered(self, **fields: Any) -> None:
        if not self._is_showing and not self._history.change(**fields):
            # What cannot be stays in its field; what the scenario has is told beside it.
            self._tell_error()

    def _state_changed(self) -> None:
        for part in (self._why_not, self._filters, self._players):
            part.drop()
        self._show_state()
        self._store.write(self._history.state, self._opened_with)
        self._play()

    def _show_state(self) -> None:
        """Bring all parts into line with the state."""
        now, beside = self._history.state
        self._is_showing = True
        try:
            for part, value in (
                (self._network, now.topology),
                (self._workload, now.workload),
                (self._filters, now.protocol),
                (self._protocol, now.protocol),
                (self._radio, Conditions(now.radio, now.duration_s, now.seed)),
                (self._sweep, now),
            ):
                if part.value is not value and part.value != value:
                    part.value = value
            self._workload.nodes = self._filters.nodes = tuple(sorted(now.topology))
            self._workload.protocol = now.protocol
            self._network.marks = roles(now)
            name = _ALONE if beside is None else type(beside).public_class().__name__
            if name not in self._beside.options:
                self._beside.options = (*self._beside.options, name)
            self._beside.value = name
            for one in (self._middle, self._drawer):  # two players take the forms' room where there is little
                (one.remove_class if beside is None else one.add_class)("wb-two")
        finally:
            self._is_showing = False
        self._undo.disabled, self._redo.disabled = not self._history.can_undo, not self._history.can_redo

    def _tell_error(self) -> None:
        self._panel.say(self._history.error, is_error=True) if self._history.error else self._panel.say("")

    def _choose_beside(self, change: Any) -> None:
        if self._is_showing:
            return
        known = self._history.state.beside
        if known is not None and type(known).public_class().__name__ == change.new:
            return
        beside = None if change.new == _ALONE else protocol_named(change.new)
        if self._history.change(beside=beside):
            self._below.selected_index = self._below.titles.index("Why not" if beside is None else "Differences")

    def _draw_drawer(self, change: Any) -> None:
        """Where the page is narrow the forms are a drawer; where it is wide they are always there."""
        (self._middle.add_class if change.new else self._middle.remove_class)("wb-open")

    def _share_picked(self, nodes: tuple[int, ...]) -> None:
        self._workload.picked = self._filters.picked = nodes

    def _asked(self, change: Any) -> None:
        """The map's buttons: make the picked nodes sinks, sources or failing, or no longer."""
        wish = change.new
        if wish:
            time_s = self._players.selection.get("time_s")
            self._workload.toggle(_KINDS[wish["do"]], tuple(wish["nodes"]), time_s)

    def _vary(self, change: Any) -> None:
        """A form's field is to be varied: the sweep is shown, with values for it."""
        self._sweep.path.value = change.new[0]
        self._below.selected_index = self._below.titles.index("Sweep")

    # Runs

    def _play(self) -> None:
        if self._panel.where.value == HERE and len(self.scenario.topology) <= LARGEST:
            self._panel.play(self._history.state)
        else:
            self._panel.state = self._history.state

    def _show_runs(self, runs: tuple[Run, ...]) -> None:
        if not runs:
            return
        self._players.glimpse(runs)
        if self._panel.is_outdated:
            return  # What takes longer is made of the run that comes.
        metrics = runs[0].metrics
        self._cards.show(metrics, self._before, runs[0].scenario.protocol)
        self._before = metrics
        self._players.complete()
        self._filters.told(runs[0])
        self._why_not.show(runs[0])
        if len(runs) == 2:
            self._differences.show(*runs)

    def _show_live(self, change: Any) -> None:
        if change.new is not None:
            run, now_s = change.new
            self._players.show((run,), now_s=now_s)

    def _say_again(self, _: Any) -> None:
        """A page has been opened. Voilà's misses what changed while it loaded, as the first run does."""
        self._players.unobserve(self._say_again, "selection")
        for widget in (*self._panel.children, self._cards, *self._why_not.children):
            widget.send_state()

    def _look_below(self) -> None:
        self._why_not.is_seen = self._below.selected_index == 0


def roles(scenario: Scenario) -> dict[Any, str]:
    """What the nodes of a scenario do, by number: "sink", "source", "down" (at some time)."""
    found: dict[Any, str] = {}
    for kind, role in ((Publish, "source"), (Subscribe, "sink"), (Outage, "down")):
        for item in scenario.workload:
            if isinstance(item, kind):
                found.update(dict.fromkeys(scenario.topology if isinstance(item.at, str) else item.at, role))
    return found
