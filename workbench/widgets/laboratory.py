"""The lab: a widget with all panels, which compose, run and show one scenario.

    wb.lab()                opens the last scenario that was composed in this folder, or else a small example
    wb.lab(scenario)        opens this scenario
    wb.lab(name="two")      opens another lab; labs with different names have different files

``lab.scenario`` and ``lab.run`` are the present scenario and its run.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

import ipywidgets as widgets
import traitlets

from workbench import gallery, public_names, topology
from workbench.errors import ScenarioError, WorkbenchError
from workbench.keywords import checked
from workbench.notice import notebook_kernel
from workbench.protocols.protocol import Protocol
from workbench.sim.changes.items import Crash, Join, Leave, Outage
from workbench.sim.file_format import known_protocols, protocol_from_dict
from workbench.sim.radios import cc2420
from workbench.sim.run import Run
from workbench.sim.scenario import Scenario
from workbench.sim.workload import Item, Publish, Subscribe, publish, subscribe
from workbench.views.protocols import node_drawing_of
from workbench.widgets.cards import Cards, Differences
from workbench.widgets.compare import Compare
from workbench.widgets.controls import below, error_html, show_below, words
from workbench.widgets.filters import Filters
from workbench.widgets.gallery import Gallery, Labs, question_html
from workbench.widgets.history import FIELDS, History, State
from workbench.widgets.network import Network
from workbench.widgets.page_link import PageLink
from workbench.widgets.panel import close_all
from workbench.widgets.protocol import ProtocolForm
from workbench.widgets.radio import Conditions, RadioForm
from workbench.widgets.run_panel import HERE, RunPanel
from workbench.widgets.saved_output import SavedOutput
from workbench.widgets.selected_node import SelectedNode
from workbench.widgets.store import Store, stored_names
from workbench.widgets.style_sheet import shared_style_sheet, style_sheets
from workbench.widgets.sweep import SweepPanel
from workbench.widgets.take_away import TakeAway
from workbench.widgets.why_not import WhyNot
from workbench.widgets.workload import Workload
from workbench.widgets.workload.measured import is_trace
from workbench.widgets.workload.overlay import overlay_of

LARGEST = 2000  # nodes; larger networks run only on request, not at every change
_ALONE = "nothing"
_NOT_A_NOTEBOOK = (
    "wb.lab() needs a notebook: `workbench lab` in a terminal opens one, `workbench app` opens the lab alone"
)
# The style sheet shows this text if the widget manager has lost the kernel.
_ENDED = (
    "<p role='alert'>The kernel of this lab has ended, so its controls do nothing; the player shows the last run. Run "
    "the cell again to continue with the same scenario.</p>"
)
_CLOSING_S = 5.0  # a cancelled run ends at its next progress check
# When the list of players is sent again to a page that has not shown one: seconds after the run, then after each other.
_RESEND_S = (1, 2, 4, 8, 16, 32)
# Action of the map's buttons -> kind of item in the workload.
_KINDS = {
    "sink": "subscribe",
    "subscribe": "subscribe",
    "source": "publish",
    "publish": "publish",
    "fail": "outage",
    "crash": "crash",
    "join": "join",
    "leave": "leave",
    "partition": "partition",
}
_open: dict[str, Lab] = {}


@checked
def lab(scenario: Scenario | None = None, name: str = "lab") -> Lab:
    """Open the lab with the name ``name`` and return it. A lab of this name that is already open is closed first.

    A lab that is stored under this name is restored, with its last composed scenario, if ``scenario`` is None or equals
    the scenario with which the stored lab was opened. In all other cases the new lab shows ``scenario``, or a small
    example if ``scenario`` is None.

    Outside of a notebook the lab is not visible; a line on standard error then names the commands that open a visible
    lab.
    """
    if not isinstance(scenario, Scenario | None):
        raise ScenarioError(
            f"scenario is {scenario!r:.60}; it must be a Scenario, or None for the last composed scenario"
        )
    if notebook_kernel() is None:
        print(_NOT_A_NOTEBOOK, file=sys.stderr)
    open_lab = _open.pop(name, None)
    if open_lab is not None:
        open_lab.close()
    _open[name] = new_lab = Lab(scenario, name)
    return new_lab


def first_scenario() -> Scenario:
    """Return the scenario of a new lab: 40 nodes with CC2420 radios, one of them a sink and two of them sources."""
    graph = topology.disc(40, 100, 60, radius_m=22, seed=3)
    protocol = protocol_named(public_names.FIRST_PROTOCOL)
    workload: tuple[Item, ...] = (
        subscribe(0, "TEMP GE 20", start_s=1),
        publish([31, 37], "TEMP IS 25", start_s=4, every_s=5, stagger=True),
    )
    return Scenario(graph, protocol, workload, cc2420(), duration_s=60)


def protocol_named(name: str) -> Protocol:
    """Return the protocol with this public name, with its default settings."""
    return protocol_from_dict({"name": name})


@checked
class Lab(widgets.VBox):
    """The lab: all panels, which compose, run and show one scenario. See the module's docstring."""

    _is_closed = True  # until it is complete: a lab that failed to open has nothing to close

    def __init__(self, scenario: Scenario | None = None, name: str = "lab") -> None:
        self._store = Store(name)
        opened = scenario or first_scenario()
        self._opened_with = opened.hash
        self._history = History(self._store.read(scenario) or State(opened))
        self._is_showing = self._is_closed = False
        self._saved_output = SavedOutput()
        self._scenario_text = ""  # the scenario of a closed lab
        self._previous_metrics: Any = None
        with shared_style_sheet():
            self._make_panels()
        self._lay_out_panels()
        self._connect_panels()
        self._show_state()
        self._run_state()

    @property
    def scenario(self) -> Scenario:
        """The present scenario."""
        return Scenario.from_json(self._scenario_text) if self._scenario_text else self._history.scenario

    @property
    def run(self) -> Run | None:
        """The present run, or the left one of two runs; None before the first run and in a closed lab."""
        return self.runs[0] if self.runs else None

    @property
    def runs(self) -> tuple[Run, ...]:
        """The present runs: one, or two side by side."""
        return () if self._is_closed else self._panel.runs

    @property
    def selection(self) -> dict[str, Any]:
        """The user's selection in the player: node, row (of a frame in the trace) and time_s."""
        return {} if self._is_closed else dict(self._players.selection)

    def change(self, **fields: Any) -> bool:
        """Change fields of the scenario: topology, protocol, workload, radio, duration_s, seed, or beside.

        ``beside`` is a second protocol, for comparison. Returns False if the change is invalid or the lab is closed.
        """
        return not self._is_closed and self._history.change(**fields)

    def open_model(self, name: str) -> bool:
        """Replace the scenario by a model of `workbench.gallery`, as one change that can be undone.

        Returns False if the lab is closed. Raises ScenarioError for an unknown name.
        """
        model = gallery.model(name)
        if self._is_closed:
            return False
        self._open_scenario(model.scenario, model.beside)
        self._question.value = question_html(model)
        return True

    def _open_scenario(self, scenario: Scenario | None, beside: Protocol | None = None) -> None:
        """Replace the scenario in one step that can be undone. None means the scenario with which a new lab begins."""
        self._gallery_button.value = False
        scenario = scenario or first_scenario()
        self.change(**{field: getattr(scenario, field) for field in FIELDS}, beside=beside)

    def _open_stored_lab(self, name: str) -> str:
        """Open the lab stored under ``name``, and store later changes in its file; return a sentence for the user."""
        store = Store(name)
        state = store.read(None)
        if state is None:
            return store.message or f"No lab is stored under the name {name}."
        self._store.flush()
        self._store, self._opened_with = store, store.opened_with
        self._gallery_button.value = False
        self._history.restart(state)  # an undo would store the other lab's scenario in this file
        return f"The lab {name} is open; later changes are stored in {store.path}."

    def _save_under(self, name: str) -> str:
        """Store the present scenario as ``name``, which becomes this lab's name; return a sentence for the user.

        Raises ScenarioError if another lab is stored under this name, or if the name is not valid.
        """
        store = Store(name.strip())
        if store.path.exists() and store.path != self._store.path:
            raise ScenarioError(
                f"a lab is stored under the name {name.strip()} already; open it, or choose another name"
            )
        store.write_now(self._history.state, self._opened_with)
        self._store.flush()
        self._store = store
        return f"This lab is stored in {store.path}; later changes are stored there too."

    def _open_dropped(self, name: str, content: bytes) -> None:
        """Open a file that the user dropped on the lab.

        A link trace is added to the workload. Any other file is opened as a scenario.
        """
        if is_trace(content):
            error = self._workload.take_trace(name, content)
        else:
            error = self._gallery.open_bytes(name, content)
        if error:
            self._panel.show_message(error, is_error=True)

    def undo(self) -> None:
        """Undo the last change."""
        if not self._is_closed:
            self._history.undo()

    def redo(self) -> None:
        """Redo the last undone change."""
        if not self._is_closed:
            self._history.redo()

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait for the run of the present scenario; return False on timeout."""
        return self._is_closed or self._panel.wait(timeout_s)

    def close(self) -> None:
        """End all runs, save the scenario, and close all widgets of the lab."""
        if self._is_closed:
            super().close()
            return
        self._is_closed = True
        self._resend_timer.cancel()
        self._store.flush()
        self._saved_output.flush()
        self._panel.close()
        self._sweep.stop()
        for panel in (self._why_not, self._selected_node, self._filters, self._players, self._gallery):
            panel.cancel()
        for player in self._players.players:
            player.close()
            player.wire.payload = b""
        close_all(self)
        self._release_memory()

    def _release_memory(self) -> None:
        """Release the memory of a closed lab: all panels and runs, but not the scenario, which is stored as text.

        A notebook keeps the outputs of its cells, so the panels and runs would otherwise stay in memory.
        """
        self._panel.wait(_CLOSING_S)  # a run that is being shown may still use the panels
        try:
            self._scenario_text, self._previous_metrics = self.scenario.to_json(indent=None), None
        except WorkbenchError:  # the scenario has no text form: keep the panels
            return
        for name, value in list(vars(self).items()):
            if isinstance(value, traitlets.HasTraits):
                delattr(self, name)
        self.children = ()

    def __repr__(self) -> str:
        return f"Lab({self.scenario!r})"

    def _ipython_display_(self) -> None:
        from IPython.display import display

        if not self._is_closed:
            self._saved_output.display(self.runs)
        display(self._repr_mimebundle_(), raw=True)

    # Construction

    def _make_panels(self) -> None:
        scenario = self.scenario
        self._network = Network(scenario.topology, undo=False)
        self._workload = Workload(self._history.state.workload)
        self._filters = Filters(scenario.protocol)
        self._protocol = ProtocolForm(scenario.protocol)
        self._radio = RadioForm(Conditions(scenario.radio, scenario.duration_s, scenario.seed))
        self._panel = RunPanel(self._history.state)
        self._players = Compare()
        self._network.map.clock = self._players.clock  # the network is edited on the map of the player
        self._cards = Cards()
        self._differences = Differences()
        self._why_not = WhyNot()
        self._selected_node = SelectedNode()
        self._sweep = SweepPanel(scenario)
        labs = Labs(stored_names, lambda: self._store.path.stem, self._open_stored_lab, self._save_under)
        self._gallery = Gallery(self.open_model, self._open_scenario, labs)
        self._page_link = PageLink(
            self._open_scenario,
            self._open_dropped,
            lambda sentence: self._panel.show_message(sentence, is_error=True),
        )
        self._question = words()  # of the model that was opened last, until the next change
        self._take_away = TakeAway(lambda: self.run, lambda: self._players.selection.get("time_s"), self._page_link)

    def _lay_out_panels(self) -> None:
        self._undo = widgets.Button(description="↶", tooltip="Undo", layout={"width": "2.6em"})
        self._redo = widgets.Button(description="↷", tooltip="Redo", layout={"width": "2.6em"})
        protocol_names = [_ALONE, *known_protocols()]
        self._beside = widgets.Dropdown(
            options=protocol_names,
            description="compare with:",
            style={"description_width": "initial"},
            layout={"width": "17em"},
        )
        self._beside.tooltip = "Another protocol on the same workload, side by side"
        self._drawer = widgets.ToggleButton(description="☰ Forms", layout={"width": "6.5em"})
        self._drawer.tooltip = "Show or hide the forms of the scenario"
        self._drawer.add_class("wb-drawer")
        self._gallery_button = widgets.ToggleButton(description="Open", layout={"width": "6em"})
        self._gallery_button.tooltip = "A new scenario, a file, a stored lab, or a model of the gallery"
        undo_buttons = widgets.HBox((self._undo, self._redo))
        top_row = widgets.HBox((self._drawer, self._gallery_button, self._panel, undo_buttons, self._beside))
        top_row.add_class("wb-bar")
        self._form_tabs = widgets.Tab(
            (self._network, self._workload, self._filters, self._protocol, self._radio),
            titles=("Network", "Data", "Filters", "Protocol", "Radio and time"),
        )
        self._form_tabs.add_class("wb-forms")
        self._below = widgets.Tab(
            (self._why_not, self._differences, self._sweep, self._take_away),
            titles=("Why not", "Differences", "Sweep", "Take away"),
        )
        self._below.add_class("wb-below")
        right = widgets.VBox((self._players, self._below))
        right.add_class("wb-looks")
        self._middle = widgets.HBox((self._form_tabs, right))
        self._middle.add_class("wb-middle")
        notice = below()
        show_below(notice, error_html(self._store.message))
        ended_notice = words(_ENDED).add_class("wb-ended")
        super().__init__(
            (*style_sheets(), ended_notice, top_row, notice, self._gallery, self._question, self._cards, self._middle)
        )
        self.add_class("wb-lab")

    def _connect_panels(self) -> None:
        history = self._history
        history.observe(lambda _: self._apply_new_state(), "state")
        history.observe(lambda _: self._show_error(), "error")
        self._undo.on_click(lambda _: self.undo())
        self._redo.on_click(lambda _: self.redo())
        self._beside.observe(self._choose_compared_protocol, "value")
        self._drawer.observe(self._toggle_forms, "value")
        self._gallery_button.observe(lambda change: self._gallery.toggle(change.new), "value")
        for panel, field in (
            (self._network, "topology"),
            (self._workload, "workload"),
            (self._filters, "protocol"),
            (self._protocol, "protocol"),
        ):
            panel.observe(lambda change, field=field: self._apply_change(**{field: change.new}), "value")
        self._radio.observe(lambda change: self._apply_change(**change.new._asdict()), "value")
        for form in (self._network.sources, self._protocol, self._radio):
            form.observe(self._open_sweep, "varied")
        self._network.observe(self._toggle_role, "asked")
        self._network.observe(self._apply_overlay_edit, "overlay_edit")
        self._network.observe(lambda change: self._share_selected_nodes(tuple(change.new)), "picked")
        self._panel.observe(lambda change: self._show_runs(change.new), "runs")
        self._panel.observe(self._show_live_run, "live")
        self._panel.observe(lambda _: self._players.complete(), "failed")
        self._is_displayed = False  # whether a page has shown a player
        self._resend_s = list(_RESEND_S)
        self._resend_timer = threading.Timer(0, self._resend_players)
        self._players.observe(self._resend_panels, "selection")
        self._players.observe(lambda _: self._show_selected_node(), "selection")
        self._below.observe(lambda _: self._update_visible_tab(), "selected_index")
        self._update_visible_tab()

    # From the panels to the state, and back

    def _apply_change(self, **fields: Any) -> None:
        if not self._is_showing and not self._history.change(**fields):
            # An invalid input stays in its field, and the error is shown again.
            self._show_error()

    def _apply_new_state(self) -> None:
        self._question.value = ""
        for panel in (self._why_not, self._selected_node, self._filters, self._players):
            panel.cancel()
        self._show_state()
        self._store.write(self._history.state, self._opened_with)
        self._run_state()

    def _show_state(self) -> None:
        """Update all panels for the present state."""
        state = self._history.state
        scenario, beside = state.scenario, state.beside
        self._is_showing = True
        try:
            for panel, value in (
                (self._network, scenario.topology),
                (self._workload, state.workload),
                (self._filters, scenario.protocol),
                (self._protocol, scenario.protocol),
                (self._radio, Conditions(scenario.radio, scenario.duration_s, scenario.seed)),
                (self._sweep, scenario),
            ):
                if panel.value is not value and panel.value != value:
                    panel.value = value
            with self._workload.hold_trait_notifications():
                self._workload.nodes = self._filters.nodes = tuple(sorted(scenario.topology))
                self._workload.network, self._workload.duration_s = scenario.topology, scenario.duration_s
            self._workload.protocol = scenario.protocol
            self._network.marks = roles(scenario)
            self._network.overlay = overlay_of(state.workload)
            self._offer_selected_node(scenario.protocol)
            name = _ALONE if beside is None else type(beside).public_class().__name__
            # A protocol is not offered beside itself, unless it is there with other settings.
            own_name = type(scenario.protocol).public_class().__name__
            other_protocol_names = [protocol_name for protocol_name in known_protocols() if protocol_name != own_name]
            protocol_names = (
                (_ALONE, *other_protocol_names)
                if name in (_ALONE, *other_protocol_names)
                else (_ALONE, *other_protocol_names, name)
            )
            if self._beside.options != protocol_names:
                self._beside.options = protocol_names
            self._beside.value = name
            for form_box in (self._middle, self._drawer):  # two players take the space of the forms on narrow pages
                (form_box.remove_class if beside is None else form_box.add_class)("wb-two")
        finally:
            self._is_showing = False
        self._undo.disabled, self._redo.disabled = not self._history.can_undo, not self._history.can_redo

    def _show_error(self) -> None:
        self._panel.show_message(
            self._history.error, is_error=True
        ) if self._history.error else self._panel.show_message("")

    def _choose_compared_protocol(self, change: Any) -> None:
        if self._is_showing:
            return
        current_protocol = self._history.state.beside
        if current_protocol is not None and type(current_protocol).public_class().__name__ == change.new:
            return
        beside = None if change.new == _ALONE else protocol_named(change.new)
        if self._history.change(beside=beside):
            self._below.selected_index = self._below.titles.index("Why not" if beside is None else "Differences")

    def _toggle_forms(self, change: Any) -> None:
        """Show or hide the forms on a narrow page. On a wide page, the forms are always visible."""
        (self._middle.add_class if change.new else self._middle.remove_class)("wb-open")

    def _share_selected_nodes(self, nodes: tuple[int, ...]) -> None:
        self._workload.picked = self._filters.picked = nodes

    def _toggle_role(self, change: Any) -> None:
        """Give the selected nodes the role (sink, source or failing node) whose button was pressed on the map.

        If all of these nodes have the role already, remove it from them.
        """
        press = change.new
        if press:
            self._workload.toggle(_KINDS[press["do"]], tuple(press["nodes"]), self._find_shown_time_s())

    def _find_shown_time_s(self) -> float | None:
        """Return the time in s that the player shows, rounded to 10 ms, or None before the first run."""
        time_s = self._players.selection.get("time_s")
        return None if time_s is None else round(time_s, 2)

    def _apply_overlay_edit(self, change: Any) -> None:
        """Add, move or remove a waypoint or a jammer, as the user did on the map."""
        edit = change.new
        place_m = (edit["x_m"], edit["y_m"]) if "x_m" in edit else (0.0, 0.0)
        if edit["do"] == "add":
            self._workload.add_waypoint(edit["nodes"], place_m, self._find_shown_time_s())
        elif edit["do"] == "move":
            self._workload.move_point(edit["item"], edit["point"], place_m)
        else:
            self._workload.erase_point(edit["item"], edit["point"])

    def _open_sweep(self, change: Any) -> None:
        """Open the panel for sweeps, and select the parameter whose button in a form the user pressed.

        If a sweep cannot vary the parameter, the panel keeps its selection. For example, a sweep cannot vary an
        argument of the network's generator that the scenario does not specify.
        """
        if change.new[0] in self._sweep.path.options:
            self._sweep.path.value = change.new[0]
        self._below.selected_index = self._below.titles.index("Sweep")

    # Runs

    def _run_state(self) -> None:
        if self._panel.where.value == HERE and len(self.scenario.topology) <= LARGEST:
            self._panel.play(self._history.state)
        else:
            self._panel.state = self._history.state

    def _show_runs(self, runs: tuple[Run, ...]) -> None:
        if not runs:
            return
        self._players.preview(runs)
        if self._panel.is_outdated:
            return  # Slower panels wait for the next run, which is pending.
        metrics = runs[0].metrics
        self._cards.show(runs[0], self._previous_metrics, *runs[1:])
        self._previous_metrics = metrics
        self._players.complete()
        self._resend_later()
        self._filters.show_results(runs[0])
        self._why_not.show(*runs)
        self._show_selected_node()
        if len(runs) == 2:
            self._differences.show(*runs)
        else:
            self._differences.show_none()
        self._saved_output.update(runs)

    def _show_live_run(self, change: Any) -> None:
        if change.new is not None:
            run, now_s = change.new
            self._players.show((run,), now_s=now_s)
            self._cards.show(run)
            self._differences.show_live()

    def _resend_later(self) -> None:
        """Start a timer that sends the list of players to the page again, unless a page already shows a player.

        A page that is still loading misses changes. For example, it would go on showing "The run appears here when it
        is finished" instead of the player. Each timer runs longer than the previous one, see `_RESEND_S`.
        """
        if self._is_displayed or self._is_closed or not self._resend_s:
            return
        self._resend_timer.cancel()
        self._resend_timer = threading.Timer(self._resend_s.pop(0), self._resend_players)
        self._resend_timer.daemon = True
        self._resend_timer.start()

    def _resend_players(self) -> None:
        if not self._is_displayed and not self._is_closed:
            self._players.send_state("children")
            self._resend_later()

    def _resend_panels(self, _: Any) -> None:
        """Send the contents of panels again when a page is opened.

        While Voilà's page loads, it misses changes, such as those after the first run.
        """
        self._is_displayed = True
        self._players.unobserve(self._resend_panels, "selection")
        for widget in (*self._panel.children, self._cards, *self._why_not.children):
            widget.send_state()

    def _show_selected_node(self) -> None:
        if self.run is not None:
            self._selected_node.show(self.run, self._players.selection)

    def _update_visible_tab(self) -> None:
        visible = self._below.children[self._below.selected_index or 0]
        for panel in (self._why_not, self._selected_node):
            panel.is_seen = visible is panel

    def _offer_selected_node(self, protocol: Protocol) -> None:
        """Show the tab of the selected node if the protocol can draw a node, else hide it."""
        is_offered = node_drawing_of(protocol) is not None
        if is_offered == (self._selected_node in self._below.children):
            return
        opened = self._below.children[self._below.selected_index or 0]
        tabs = dict(zip(self._below.children, self._below.titles, strict=True))
        tabs = {panel: title for panel, title in tabs.items() if panel is not self._selected_node}
        if is_offered:
            tabs[self._selected_node] = "Selected node"
        self._below.children, self._below.titles = tuple(tabs), tuple(tabs.values())
        self._below.selected_index = self._below.children.index(opened) if opened in tabs else 0


def roles(scenario: Scenario) -> dict[Any, str]:
    """Return {node: role} for all nodes with a role: "sink", "source" or "down" (not in the network at some time).

    If a node has several roles, "down" takes precedence over "sink", and "sink" over "source".
    """
    role_of_node: dict[Any, str] = {}
    for kinds, role in ((Publish, "source"), (Subscribe, "sink"), (Outage | Crash | Join | Leave, "down")):
        for item in scenario.workload:
            if isinstance(item, kinds):
                role_of_node.update(dict.fromkeys(scenario.topology if isinstance(item.at, str) else item.at, role))
    return role_of_node
