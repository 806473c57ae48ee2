"""A panel for the filters of a protocol, which change or drop messages on their way through the network.

The user adds and orders filters, chooses their nodes, and sees their effect in a run. The panel works for each protocol
that has a parameter with the unit "Filter", which contains the filters, and a class attribute ``catalogue``: the name
of the module that lists the kinds of filters.
"""

from __future__ import annotations

import html
import importlib
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import ipywidgets as widgets
import traitlets

from workbench import public_names
from workbench.analysis.decisions import Decision, count_changes, decisions
from workbench.attributes import FIRST_FILTER_KEY, LAST_FILTER_KEY
from workbench.errors import ParameterError, WorkbenchError
from workbench.protocols.protocol import Protocol
from workbench.sim.file_format import protocol_from_dict
from workbench.widgets.attributes import CHOICE, Attributes
from workbench.widgets.controls import (
    NAME_WIDTH,
    ListPanel,
    TextField,
    button,
    error_html,
    known_nodes,
    nodes_of,
    nodes_text,
    quiet,
    refresh_after_cells,
    replaced,
    status_html,
    without,
    words,
)
from workbench.widgets.deferred import Cancelled, Deferred
from workbench.widgets.fields import Field, fields_of

UNIT = "Filter"  # unit of the parameter that holds filters
_MOST_ROWS = 200  # rows of the table of filters' decisions
_HOW_TO_WRITE = (
    'Write your own in Python: <code>wb.register_filter("mine", function)</code> in a cell, where <code>function('
    "attributes)</code> returns the attributes to pass on, or <code>None</code> to drop the message; then "
    "select it here."
)
_HOW_TO_COMPLETE = (
    "for a filter of your own, give the parameter a default; for a built-in filter, first register the function "
    "that it calls (wb.register_filter)"
)
_NO_FILTERS = "has no filters, so no node changes or drops data on purpose."
_DECISION_NAMES = {"pass": "passed", "replace": "replaced", "drop": "dropped"}


def setting_of(protocol: Protocol | None) -> str:
    """Return the name of the protocol's parameter that contains its filters, or "" if it has no such parameter."""
    table = protocol.parameters if protocol is not None and protocol.catalogue else ()
    return next((parameter.name for parameter in table if parameter.unit == UNIT), "")


class Filters(ListPanel):
    """A panel whose ``value`` is a protocol: it shows and edits the protocol's filters.

    Without an argument, the protocol is `public_names.FIRST_PROTOCOL`. For a protocol without filters, the panel only
    shows a sentence.

    nodes     the nodes of the network; () if unknown
    selected  index of the selected filter in ``filters``, or -1
    """

    nodes = traitlets.Any(())
    error = traitlets.Unicode()

    def __init__(self, value: Protocol | None = None, nodes: Iterable[int] = ()) -> None:
        self.nodes = tuple(nodes)
        self._kind = widgets.Dropdown(options=(), tooltip="which filter to add", layout={"width": "14em"})
        self._add = button(
            "+ Filter",
            "add it after the other filters, at the nodes selected on the map, or else at all nodes",
            self.add,
        )
        self._summary, self._no_filters, self._message = words(), words(), words()
        self._make_list("filters, in the order in which they see a message", "Add a filter above.", "filter")
        self._form = _Form(self._apply_form)
        self._results = _Results()
        adding = widgets.HBox((self._kind, self._add), layout={"flex_flow": "row wrap"})
        how = words(_HOW_TO_WRITE)
        self._editor = widgets.VBox(
            (adding, self._summary, self._lines, self._message, self._form, self._move_button, how)
        )
        value = value or protocol_from_dict({"name": public_names.FIRST_PROTOCOL})
        super().__init__(value, (self._no_filters, self._editor, self._results))
        self.add_class("wb-filters")
        self._kind.observe(self._show_summary, "value")
        self._watch_list()
        self.observe(self._draw_form, "nodes")
        self.observe(self._show_error, "error")
        self.draw(self.value)
        refresh_after_cells(self)

    @property
    def items(self) -> tuple[Any, ...]:
        """The protocol's filters, in the order of the list."""
        return self.filters

    @property
    def filters(self) -> tuple[Any, ...]:
        """The protocol's filters: first those for data, then those for interests, each in the order of processing.

        A message passes the filters for its kind in the order of their keys, from the lowest.
        """
        setting = setting_of(self.value)
        configured = getattr(self.value, setting) if setting else ()
        return tuple(sorted(configured, key=lambda item: (item.messages, item.key)))

    def draw(self, value: Protocol | None) -> None:
        """Show the filters of a protocol, and the form of the selected filter."""
        has_filters = bool(setting_of(value))
        self._no_filters.value = "" if has_filters else _explain_no_filters(value)
        self._editor.layout.display = None if has_filters else "none"
        self.error = ""
        if not has_filters:
            return
        self._offer_kinds()
        filters = self.filters
        with quiet(self):
            index = min(self.selected, len(filters) - 1)
            self._lines.show([line_of(item) for item in filters], 0 if index < 0 and filters else index)
            self.selected = self._lines.selected
        self._draw_form()
        self._update_move_button()

    def refresh(self) -> None:
        """Update the menu with kinds of filters that were registered since the last call."""
        if setting_of(self.value):
            self._offer_kinds()

    def show_results(self, run: Any) -> None:
        """Show how many messages the filters replaced and dropped in a run.

        Passed messages are not in the trace. If the user requests them, the run is executed again, and all messages
        that the filters received are counted and listed.
        """
        self._results.show(run)

    def cancel(self) -> None:
        """Stop fetching the messages of the last run, because a newer run is in progress."""
        self._results.cancel()

    # Actions of the user

    def add(self, name: str | None = None) -> None:
        """Add a filter of the kind ``name``, by default the kind that is selected in the menu.

        Messages pass the new filter after all other filters for data. The filter is at the nodes that are selected on
        the map; without a selection, at all nodes.
        """
        name = name or self._kind.value
        if not setting_of(self.value) or name is None:
            return
        kind = self._find_kinds()[name]
        if kind.missing_settings:
            self.error = f"{name} has no default for its parameter {kind.missing_settings[0]}; {_HOW_TO_COMPLETE}"
            return
        try:
            filter_fields = {"name": name, "key": _next_free_key(self.filters), "at": list(self.picked) or None}
            new_filter = self._catalogue_module().make({**filter_fields, "settings": kind.initial_settings})
        except WorkbenchError as error:
            self.error = str(error)
            return
        self.error = self._offer_filters((*self.filters, new_filter), new_filter)

    def _button_actions(self) -> tuple[tuple[str, str, Callable[[], None]], ...]:
        return (
            ("Remove", "remove the filter", self._remove_filter),
            ("↑", "let the filter see messages earlier", lambda: self._move_filter(-1)),
            ("↓", "let the filter see messages later", lambda: self._move_filter(1)),
        )

    def _remove_filter(self) -> None:
        self.error = self._offer_filters(without(self.filters, self.selected), None)

    def _move_filter(self, step: int) -> None:
        """Swap the selected filter with the previous filter in the list (``step`` is -1) or the next one (1).

        Messages pass filters in the order of their keys, so the two filters exchange keys. Nothing changes if the two
        filters are for different kinds of messages.
        """
        filters, index = self.filters, self.selected
        target_index = index + step
        if not 0 <= target_index < len(filters) or filters[target_index].messages != filters[index].messages:
            return
        selected_filter, neighbor = filters[index], filters[target_index]
        moved_filter = self._make_changed(selected_filter, key=neighbor.key)
        self.error = self._offer_filters(
            replaced(
                replaced(filters, index, self._make_changed(neighbor, key=selected_filter.key)),
                target_index,
                moved_filter,
            ),
            moved_filter,
        )

    def _move_to_picked_nodes(self) -> None:
        if self.picked and self.selected >= 0:
            self.error = self._apply_changes({"at": list(self.picked)})

    def _apply_changes(self, changes: dict[str, Any], is_in_form: bool = False) -> str:
        """Change the selected filter; return an error message, or "" if the result is valid.

        changes: {field of the filter: new value}.
        is_in_form: whether the form already shows the new values, so that it need not be redrawn.
        """
        try:
            changed_filter = self._make_changed(self.filters[self.selected], **changes)
        except WorkbenchError as error:
            return str(error)
        if is_in_form:
            self._form.keep(changed_filter)
        return self._offer_filters(replaced(self.filters, self.selected, changed_filter), changed_filter)

    def _apply_form(self, values: dict[str, Any]) -> str:
        return self._apply_changes(values, is_in_form=True)

    def _make_changed(self, current: Any, **changes: Any) -> Any:
        return self._catalogue_module().make({**current.to_dict(), **changes})

    def _offer_filters(self, filters: tuple[Any, ...], selected: Any) -> str:
        """Replace the filters of the panel's protocol; return an error message, or "" if the filters are valid.

        ``selected``: the filter to select afterwards; None leaves the selection unchanged.
        """
        new_settings = {
            **self.value.settings,
            setting_of(self.value): tuple(sorted(filters, key=lambda item: item.key)),
        }
        try:
            protocol = type(self.value).public_class()(**new_settings)
        except WorkbenchError as error:
            return str(error).partition(": ")[2] or str(error)
        self.offer(protocol)
        if selected is not None:
            self.selected = next(index for index, item in enumerate(self.filters) if item is selected)
        self.draw(protocol)
        return ""

    # Display

    def _catalogue_module(self) -> Any:
        return importlib.import_module(self.value.catalogue)

    def _find_kinds(self) -> dict[str, Any]:
        return {kind.name: kind for kind in self._catalogue_module().kinds()}

    def _offer_kinds(self) -> None:
        names, selected_kind = tuple(self._find_kinds()), self._kind.value
        if self._kind.options != names:
            self._kind.options = names
            self._kind.value = selected_kind if selected_kind in names else names[0]
        self._show_summary()

    def _show_summary(self, _: Any = None) -> None:
        kind = self._find_kinds().get(self._kind.value) if setting_of(self.value) else None
        self._summary.value = "" if kind is None else f"<span class='wb-unit'>{html.escape(kind.summary)}</span>"

    def _draw_form(self, _: Any = None) -> None:
        filters = self.filters
        if not 0 <= self.selected < len(filters):
            self._form.layout.display = "none"
            return
        self._form.layout.display = None
        item = filters[self.selected]
        self._form.show(item, self._find_kinds().get(item.name), tuple(self.nodes))

    def _show_error(self, change: Any) -> None:
        self._message.value = error_html(change.new)


def _explain_no_filters(protocol: Protocol | None) -> str:
    if protocol is None:
        return "No protocol is chosen."
    return html.escape(f"{type(protocol).public_class().__name__} {_NO_FILTERS}")


def line_of(item: Any) -> str:
    """Return one line of text about a filter: its key, name and settings, its messages, and its nodes."""
    settings_text = ", ".join(f"{name} {value}" for name, value in sorted(item.settings.items()))
    match = f" with {item.match}" if item.match else ""
    place = "every node" if item.at is None else f"nodes {nodes_text(item.at)}"
    return (
        f"{item.key}  {item.name}{f' ({settings_text})' if settings_text else ''}: {item.messages}{match}, at {place}"
    )


def _next_free_key(filters: tuple[Any, ...]) -> int:
    taken_keys = {item.key for item in filters}
    next_key = max(taken_keys, default=FIRST_FILTER_KEY - 1) + 1
    candidate_keys = [next_key, *range(FIRST_FILTER_KEY, LAST_FILTER_KEY + 1)]
    free_key = next((key for key in candidate_keys if key <= LAST_FILTER_KEY and key not in taken_keys), None)
    if free_key is None:
        raise ParameterError(
            f"all keys from {FIRST_FILTER_KEY} to {LAST_FILTER_KEY} are taken by filters; remove a filter first"
        )
    return free_key


class _Form(widgets.VBox):
    """The form of one filter: its messages, nodes and parameters.

    ``apply(values)`` is called after each change; it returns an error message, or "". ``values``: a dict of the
    filter's fields, with the keys at (its nodes), messages (their kind), match (attributes) and settings (parameters).
    """

    def __init__(self, apply: Callable[[dict[str, Any]], str]) -> None:
        self._apply_values = apply
        self._is_drawing = False
        self._filter: Any = None
        self._shown_filter: Any = None
        self._nodes: tuple[int, ...] = ()
        self._required_settings: frozenset[str] = frozenset()
        self._tables: dict[Any, dict[str, Field]] = {}  # fields are made once for each table
        self.fields: dict[str, Field] = {}
        self._title, self._message = words(), words()
        self.at = TextField(
            "nodes", "", 'the nodes that have the filter: numbers, as in "0, 5" or "3-7", or "all"', "all"
        )
        self.messages = widgets.Dropdown(
            options=["data", "interest"], tooltip="kind of messages that the filter sees", layout={"width": "8em"}
        )
        self.match = Attributes("", kind=CHOICE)
        self._settings = widgets.VBox()
        match_label = words("that match all of (none: every message)")
        message_row = widgets.HBox((words("it sees", width=NAME_WIDTH), self.messages, match_label))
        super().__init__((self._title, self.at, self._settings, message_row, self.match, self._message))
        self.add_class("wb-item")
        self.at.observe(self._apply_changes, "text")
        for control in (self.messages, self.match):
            control.observe(self._apply_changes, "value")

    def show(self, item: Any, kind: Any, nodes: tuple[int, ...]) -> None:
        """Show the filter ``item``. If the form shows this filter already, invalid input remains.

        kind: the entry for this kind of filter in the catalogue of filters, or None if the kind is not registered.
        nodes: the nodes of the network.
        """
        self._nodes = nodes
        is_shown = self._filter is not None and (item == self._filter or item == self._shown_filter)
        self._filter, self._shown_filter = item, None
        if is_shown:
            return
        with quiet(self):
            summary = html.escape(kind.summary) if kind else "registered in another session; register it again"
            self._title.value = f"<b>{html.escape(item.name)}</b> <span class='wb-unit'>{summary}</span>"
            self.at.text, self.at.error = nodes_text(item.at), ""
            self.messages.value = item.messages
            self.match.value = item.match
            self._fill_fields(item, kind)
            self._show_message("")

    def _fill_fields(self, item: Any, kind: Any) -> None:
        parameter_table = kind.parameters if kind else ()
        self._required_settings = frozenset(kind.initial_settings if kind else ())
        setting_values = {
            parameter.name: item.settings.get(parameter.name, parameter.default) for parameter in parameter_table
        }
        if (item.name, parameter_table) not in self._tables:
            fields = fields_of(parameter_table, setting_values, f"filter {item.name}")
            for field in fields.values():
                field.observe(self._apply_changes, "value")
            self._tables[item.name, parameter_table] = fields
        self.fields = self._tables[item.name, parameter_table]
        for name, field in self.fields.items():
            field.value = setting_values[name]
            field.error = ""
        self._settings.children = tuple(self.fields.values())

    def _apply_changes(self, _: Any = None) -> None:
        if self._is_drawing:
            return
        self.at.error = ""
        try:
            filter_fields = self._read_form()
        except ParameterError as error:
            self.at.error = str(error)
            return
        self._show_message(self._apply_values(filter_fields))

    def _read_form(self) -> dict[str, Any]:
        """Return the filter in the form as a dict with these keys; ParameterError if the nodes are invalid.

        at: "all", or a list of the nodes that have the filter.
        messages: "data" or "interest", the kind of messages that the filter receives.
        match: attributes as text; the filter receives only messages that match them.
        settings: {name of a parameter of the filter: value}, without optional parameters that have their default.
        """
        at = known_nodes(nodes_of(self.at.text), self._nodes)
        changed_settings = {
            name: field.value
            for name, field in self.fields.items()
            if field.value != field.parameter.default or name in self._required_settings
        }
        return {
            "at": at if isinstance(at, str) else list(at),
            "messages": self.messages.value,
            "match": self.match.value,
            "settings": changed_settings,
        }

    def keep(self, item: Any) -> None:
        """Record ``item`` as the filter that the form shows, so that ``show(item)`` leaves the fields unchanged."""
        self._shown_filter = item

    def _show_message(self, sentence: str) -> None:
        self._message.value = error_html(sentence)


class _Results(widgets.VBox):
    """Tables of what filters did in a run: counts of messages and, on request, each message before and after."""

    def __init__(self) -> None:
        self._run: Any = None
        self._deferred = Deferred()
        self._table = words()
        self._fetch_button = button(
            "Show the data before and after", "the run is executed again and observed", self._fetch_messages
        )
        self._rows = words()
        super().__init__((self._table, self._fetch_button, self._rows))
        self._fetch_button.layout.display = "none"

    def show(self, run: Any) -> None:
        """Show how many messages the filters replaced and dropped in a run, counted in its trace.

        The messages themselves are fetched on request.
        """
        self.cancel()
        self._run, self._rows.value = run, ""
        protocol = run.scenario.protocol
        has_filters = bool(setting_of(protocol)) and bool(getattr(protocol, setting_of(protocol)))
        self._fetch_button.layout.display = None if has_filters and run.has_trace else "none"
        if not has_filters:
            name = type(protocol).public_class().__name__
            why = "carried no filter in this run." if setting_of(protocol) else _NO_FILTERS
            self._table.value = html.escape(f"{name} {why}")
        elif not run.has_trace:
            self._table.value = "This run has no trace, so the decisions of its filters are unknown."
        else:
            self._table.value = _counts_html(protocol, count_changes(run), is_whole=False)

    def cancel(self) -> None:
        """Stop fetching messages, because a newer run is in progress."""
        self._deferred.cancel()
        self._fetch_button.disabled = False

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait for the messages that were requested; return False on timeout."""
        return self._deferred.wait(timeout_s)

    def _fetch_messages(self) -> None:
        run = self._run
        self._fetch_button.disabled, self._rows.value = True, status_html("The run is executed again.")
        self._deferred.submit(lambda check: self._show_messages(run, check), at_once=True)

    def _show_messages(self, run: Any, check: Callable[[], None]) -> None:
        """Execute the run again, in a background thread, and show the messages that its filters received.

        ``check()`` raises `Cancelled` if the messages are no longer needed.
        """
        try:
            first_decisions, counts = decisions(run, progress=lambda _: check())
        except Cancelled:
            raise
        except WorkbenchError as error:
            content = error_html(str(error))
        except Exception as error:  # for example in a user's filter
            content = error_html(f"the run ended with {type(error).__name__}: {error}")
        else:
            check()
            self._table.value = _counts_html(run.scenario.protocol, counts, is_whole=True)
            self._fetch_button.layout.display = "none"
            content = _decisions_html(run.scenario.protocol, first_decisions, sum(counts.values()))
        check()
        self._rows.value, self._fetch_button.disabled = content, False


def _names_by_key(protocol: Protocol) -> dict[tuple[str, int], str]:
    return {(item.messages, item.key): item.name for item in getattr(protocol, setting_of(protocol))}


def _counts_html(protocol: Protocol, counts: Counter[tuple[str, int, str]], is_whole: bool) -> str:
    """Return an HTML table with a row for each filter: how many messages it passed, replaced and dropped.

    counts: {(kind of messages, key of the filter, decision): count}.
    is_whole: whether ``counts`` includes passed messages. A trace records only replaced and dropped messages; the
        passed ones are counted when the run is executed again.
    """
    decision_kinds = tuple(_DECISION_NAMES) if is_whole else ("replace", "drop")
    headings = ("key", "filter", "messages", *(_DECISION_NAMES[decision] for decision in decision_kinds))
    row_htmls = []
    for (messages, key), name in sorted(_names_by_key(protocol).items()):
        count_cells = "".join(f"<td>{counts[messages, key, decision]:,}</td>" for decision in decision_kinds)
        row_htmls.append(f"<tr><td>{key}</td><td>{html.escape(name)}</td><td>{messages}</td>{count_cells}</tr>")
    caption = "<caption>Decisions of the filters</caption>"
    return f"<table class='wb-told'>{caption}{_head_html(headings)}{''.join(row_htmls)}</table>"


def _head_html(words: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<th scope='col'>{word}</th>" for word in words) + "</tr>"


def _decisions_html(protocol: Protocol, first_decisions: tuple[Decision, ...], count: int) -> str:
    if not count:
        return "No filter received a message."
    names = _names_by_key(protocol)
    header_row = _head_html(("time", "node", "filter", "message", "did", "before", "after"))
    table_rows = []
    for decision in _select_decisions(first_decisions):
        message = f"{decision.messages} {decision.sequence} of node {decision.origin}"
        columns_of_row = (
            f"{decision.time_us / 1e6:.6g} s",
            decision.node,
            names.get((decision.messages, decision.key), decision.key),
            message,
        )
        cell_texts = (
            *columns_of_row,
            _DECISION_NAMES[decision.did],
            decision.before,
            "" if decision.after == decision.before else decision.after,
        )
        cells_html = "".join(f"<td>{html.escape(str(cell))}</td>" for cell in cell_texts)
        table_rows.append(f"<tr class='wb-{decision.did}'>{cells_html}</tr>")
    summary = (
        f"<p>{len(table_rows):,} of {count:,} decisions, preferably those that changed a message.</p>"
        if len(table_rows) < count
        else ""
    )
    return f"{summary}<div class='wb-told-rows'><table class='wb-told'>{header_row}{''.join(table_rows)}</table></div>"


def _select_decisions(first_decisions: tuple[Decision, ...]) -> list[Decision]:
    """Return at most `_MOST_ROWS` of the decisions, in their order.

    A decision states whether a filter passed, replaced or dropped a message. If there are too many, passed messages are
    omitted first, then the latest decisions.
    """
    chosen_indices = sorted(range(len(first_decisions)), key=lambda index: first_decisions[index].did == "pass")[
        :_MOST_ROWS
    ]
    return [first_decisions[index] for index in sorted(chosen_indices)]
