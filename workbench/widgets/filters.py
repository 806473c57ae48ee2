"""The filters of a protocol: pick, order and place them, and see what they did in a run.

Nothing here knows which protocol has filters. Its table of parameters has a setting whose unit is "Filter", and its
class names the module that says which filters there are (``catalogue``).
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
    ListPart,
    TextField,
    button,
    error_html,
    known_nodes,
    nodes_of,
    nodes_text,
    quiet,
    refresh_after_cells,
    replaced,
    said_html,
    without,
    words,
)
from workbench.widgets.fields import Field, fields_of
from workbench.widgets.later import GivenUp, Later

UNIT = "Filter"  # of the setting that holds filters
_MOST_ROWS = 200  # of the table of what filters did
_HOW = (
    'Write your own in Python: <code>wb.register_filter("mine", function)</code> in a cell, where <code>function('
    "attributes)</code> answers the attributes that go on, or <code>None</code>; then pick it here."
)
_LACKS = "register a function that it can call, or give the parameter of your class a default"
_WITHOUT = "has no filters: nothing in its network changes or drops data on the way on purpose."
_DID = {"pass": "passed", "replace": "replaced", "drop": "dropped"}


def setting_of(protocol: Protocol | None) -> str:
    """The name of the setting that holds filters; "" if the protocol has none."""
    table = protocol.parameters if protocol is not None and protocol.catalogue else ()
    return next((one.name for one in table if one.unit == UNIT), "")


class Filters(ListPart):
    """``value``: a protocol, the first of the public ones by default, whose filters are shown and edited. One without
    filters says so, and stays as it is.

    nodes     the nodes that there are; () if that is not known
    selected  the place of a filter is that in the order in which messages meet them
    """

    nodes = traitlets.Any(())
    error = traitlets.Unicode()

    def __init__(self, value: Protocol | None = None, nodes: Iterable[int] = ()) -> None:
        self.nodes = tuple(nodes)
        self._kind = widgets.Dropdown(options=(), tooltip="which filter to add", layout={"width": "14em"})
        self._add = button("+ Filter", "add it behind the others, on the nodes that are picked or on all", self.add)
        self._says, self._without, self._said = words(), words(), words()
        self._make_list("filters, in the order in which they see a message", "There is no filter.", "filter")
        self._form = _Form(self._form_edited)
        self._did = _Did()
        adding = widgets.HBox((self._kind, self._add), layout={"flex_flow": "row wrap"})
        how = words(_HOW)
        self._editor = widgets.VBox((adding, self._says, self._lines, self._said, self._form, self._put, how))
        value = value or protocol_from_dict({"name": public_names.FIRST_PROTOCOL})
        super().__init__(value, (self._without, self._editor, self._did))
        self.add_class("wb-filters")
        self._kind.observe(self._describe, "value")
        self._watch_list()
        self.observe(self._draw_form, "nodes")
        self.observe(self._tell, "error")
        self.draw(self.value)
        refresh_after_cells(self)

    @property
    def items(self) -> tuple[Any, ...]:
        """What the list shows."""
        return self.filters

    @property
    def filters(self) -> tuple[Any, ...]:
        """The filters of the protocol, in the order in which messages meet them: by kind of message and key."""
        setting = setting_of(self.value)
        found = getattr(self.value, setting) if setting else ()
        return tuple(sorted(found, key=lambda one: (one.messages, one.key)))

    def draw(self, value: Protocol | None) -> None:
        """The list and the form of the selected filter."""
        has_filters = bool(setting_of(value))
        self._without.value = "" if has_filters else _why_without(value)
        self._editor.layout.display = None if has_filters else "none"
        self.error = ""
        if not has_filters:
            return
        self._list_kinds()
        found = self.filters
        with quiet(self):
            place = min(self.selected, len(found) - 1)
            self._lines.show([line_of(one) for one in found], 0 if place < 0 and found else place)
            self.selected = self._lines.selected
        self._draw_form()
        self._draw_put()

    def refresh(self) -> None:
        """List the filters that have been registered meanwhile."""
        if setting_of(self.value):
            self._list_kinds()

    def told(self, run: Any) -> None:
        """Show what the filters passed, replaced and dropped in a run; the data before and after when asked for."""
        self._did.show(run)

    def drop(self) -> None:
        """A newer run is under way: what is made of the last one is given up."""
        self._did.drop()

    # What the user does

    def add(self, name: str | None = None) -> None:
        """Add a filter, the one that is picked in the list by default, behind the others of data."""
        name = name or self._kind.value
        if not setting_of(self.value) or name is None:
            return
        kind = self._kinds()[name]
        if kind.missing_settings:
            self.error = f"{name} needs a {kind.missing_settings[0]}, and has no default for it; {_LACKS}"
            return
        try:
            values = {"name": name, "key": _free_key(self.filters), "at": list(self.picked) or None}
            made = self._module().make({**values, "settings": kind.initial_settings})
        except WorkbenchError as error:
            self.error = str(error)
            return
        self.error = self._set((*self.filters, made), made)

    def _acts(self) -> tuple[tuple[str, str, Callable[[], None]], ...]:
        return (
            ("Remove", "take the filter away", self._remove),
            ("↑", "let the filter see messages earlier", lambda: self._move(-1)),
            ("↓", "let the filter see messages later", lambda: self._move(1)),
        )

    def _remove(self) -> None:
        self.error = self._set(without(self.filters, self.selected), None)

    def _move(self, by: int) -> None:
        """Change keys with the neighbor: keys are the order."""
        found, place = self.filters, self.selected
        to = place + by
        if not 0 <= to < len(found) or found[to].messages != found[place].messages:
            return
        one, other = found[place], found[to]
        moved = self._made(one, key=other.key)
        self.error = self._set(replaced(replaced(found, place, self._made(other, key=one.key)), to, moved), moved)

    def _put_onto(self) -> None:
        if self.picked and self.selected >= 0:
            self.error = self._edited({"at": list(self.picked)})

    def _edited(self, changes: dict[str, Any], is_in_form: bool = False) -> str:
        """Make the selected filter anew with these plain values; what is wrong with them, or ""."""
        try:
            made = self._made(self.filters[self.selected], **changes)
        except WorkbenchError as error:
            return str(error)
        if is_in_form:
            self._form.keep(made)
        return self._set(replaced(self.filters, self.selected, made), made)

    def _form_edited(self, values: dict[str, Any]) -> str:
        """As `_edited`, of all that stands in the form."""
        return self._edited(values, is_in_form=True)

    def _made(self, one: Any, **changes: Any) -> Any:
        return self._module().make({**one.to_dict(), **changes})

    def _set(self, found: tuple[Any, ...], selected: Any) -> str:
        """Offer the protocol with these filters; what is wrong with it, or ""."""
        settings = {**self.value.settings, setting_of(self.value): tuple(sorted(found, key=lambda one: one.key))}
        try:
            protocol = type(self.value).public_class()(**settings)
        except WorkbenchError as error:
            return str(error).partition(": ")[2] or str(error)
        self.offer(protocol)
        if selected is not None:
            self.selected = next(place for place, one in enumerate(self.filters) if one is selected)
        self.draw(protocol)
        return ""

    # What is shown

    def _module(self) -> Any:
        return importlib.import_module(self.value.catalogue)

    def _kinds(self) -> dict[str, Any]:
        return {kind.name: kind for kind in self._module().kinds()}

    def _list_kinds(self) -> None:
        names, picked = tuple(self._kinds()), self._kind.value
        if self._kind.options != names:
            self._kind.options = names
            self._kind.value = picked if picked in names else names[0]
        self._describe()

    def _describe(self, _: Any = None) -> None:
        kind = self._kinds().get(self._kind.value) if setting_of(self.value) else None
        self._says.value = "" if kind is None else f"<span class='wb-unit'>{html.escape(kind.summary)}</span>"

    def _draw_form(self, _: Any = None) -> None:
        found = self.filters
        if not 0 <= self.selected < len(found):
            self._form.layout.display = "none"
            return
        self._form.layout.display = None
        one = found[self.selected]
        self._form.show(one, self._kinds().get(one.name), tuple(self.nodes))

    def _tell(self, change: Any) -> None:
        self._said.value = error_html(change.new)


def _why_without(protocol: Protocol | None) -> str:
    if protocol is None:
        return "No protocol is chosen."
    return html.escape(f"{type(protocol).public_class().__name__} {_WITHOUT}")


def line_of(one: Any) -> str:
    """A filter in a line: its key, its name and settings, which messages, where."""
    settings = ", ".join(f"{name} {value}" for name, value in sorted(one.settings.items()))
    about = f" with {one.match}" if one.match else ""
    where = "every node" if one.at is None else f"nodes {nodes_text(one.at)}"
    return f"{one.key}  {one.name}{f' ({settings})' if settings else ''}: {one.messages}{about}, at {where}"


def _free_key(found: tuple[Any, ...]) -> int:
    taken = {one.key for one in found}
    last = max(taken, default=FIRST_FILTER_KEY - 1) + 1
    keys = [last, *range(FIRST_FILTER_KEY, LAST_FILTER_KEY + 1)]
    free = next((key for key in keys if key <= LAST_FILTER_KEY and key not in taken), None)
    if free is None:
        raise ParameterError(f"all keys from {FIRST_FILTER_KEY} to {LAST_FILTER_KEY} are taken by filters; remove one")
    return free


class _Form(widgets.VBox):
    """The form of a filter: which messages, where, and its own parameters. ``edited(values) -> what is wrong``."""

    def __init__(self, edited: Callable[[dict[str, Any]], str]) -> None:
        self._edited_values = edited
        self._is_drawing = False
        self._filter: Any = None
        self._made: Any = None
        self._nodes: tuple[int, ...] = ()
        self._always: frozenset[str] = frozenset()
        self._tables: dict[Any, dict[str, Field]] = {}  # fields are made once for each table
        self.fields: dict[str, Field] = {}
        self._title, self._said = words(), words()
        self.at = TextField("nodes", "", 'that carry it: numbers, as in "0, 5" or "3-7", or "all"', "all")
        self.messages = widgets.Dropdown(
            options=["data", "interest"], tooltip="which messages it sees", layout={"width": "8em"}
        )
        self.match = Attributes("", kind=CHOICE)
        self._settings = widgets.VBox()
        which = words("that match all of (none: every message)")
        sees = widgets.HBox((words("it sees", width=NAME_WIDTH), self.messages, which))
        super().__init__((self._title, self.at, self._settings, sees, self.match, self._said))
        self.add_class("wb-item")
        self.at.observe(self._edited, "text")
        for control in (self.messages, self.match):
            control.observe(self._edited, "value")

    def show(self, one: Any, kind: Any, nodes: tuple[int, ...]) -> None:
        """Show a filter. What stands in the form of the same filter stays, if it is wrong."""
        self._nodes = nodes
        is_shown = self._filter is not None and (one == self._filter or one == self._made)
        self._filter, self._made = one, None
        if is_shown:
            return
        with quiet(self):
            says = html.escape(kind.summary) if kind else "registered in another session; register it again"
            self._title.value = f"<b>{html.escape(one.name)}</b> <span class='wb-unit'>{says}</span>"
            self.at.text, self.at.error = nodes_text(one.at), ""
            self.messages.value = one.messages
            self.match.value = one.match
            self._fill(one, kind)
            self._say("")

    def _fill(self, one: Any, kind: Any) -> None:
        table = kind.parameters if kind else ()
        self._always = frozenset(kind.initial_settings if kind else ())
        values = {parameter.name: one.settings.get(parameter.name, parameter.default) for parameter in table}
        if (one.name, table) not in self._tables:
            made = fields_of(table, values, f"filter {one.name}")
            for field in made.values():
                field.observe(self._edited, "value")
            self._tables[one.name, table] = made
        self.fields = self._tables[one.name, table]
        for name, field in self.fields.items():
            field.value = values[name]
            field.error = ""
        self._settings.children = tuple(self.fields.values())

    def _edited(self, _: Any = None) -> None:
        if self._is_drawing:
            return
        self.at.error = ""
        try:
            values = self._read()
        except ParameterError as error:
            self.at.error = str(error)
            return
        self._say(self._edited_values(values))

    def _read(self) -> dict[str, Any]:
        """What stands in the form; ParameterError for nodes that are none."""
        at = known_nodes(nodes_of(self.at.text), self._nodes)
        given = {
            name: field.value
            for name, field in self.fields.items()
            if field.value != field.parameter.default or name in self._always
        }
        return {
            "at": at if isinstance(at, str) else list(at),
            "messages": self.messages.value,
            "match": self.match.value,
            "settings": given,
        }

    def keep(self, made: Any) -> None:
        """This filter is what stands in the form: when it is shown next, fields are left as they are."""
        self._made = made

    def _say(self, sentence: str) -> None:
        self._said.value = error_html(sentence)


class _Did(widgets.VBox):
    """What filters did in a run."""

    def __init__(self) -> None:
        self._run: Any = None
        self._later = Later()
        self._table = words()
        self._more = button("Show the data before and after", "the run is played once more and watched", self._watch)
        self._rows = words()
        super().__init__((self._table, self._more, self._rows))
        self._more.layout.display = "none"

    def show(self, run: Any) -> None:
        """Counts of the trace; the data when they are asked for."""
        self.drop()
        self._run, self._rows.value = run, ""
        protocol = run.scenario.protocol
        has_filters = bool(setting_of(protocol)) and bool(getattr(protocol, setting_of(protocol)))
        self._more.layout.display = None if has_filters and run.has_trace else "none"
        if not has_filters:
            name = type(protocol).public_class().__name__
            why = "carried no filter in this run." if setting_of(protocol) else _WITHOUT
            self._table.value = html.escape(f"{name} {why}")
        elif not run.has_trace:
            self._table.value = "This run kept no trace, so what its filters did is not known."
        else:
            self._table.value = _counts_html(protocol, count_changes(run), is_whole=False)

    def drop(self) -> None:
        """A newer run is under way: the last one is not played once more."""
        self._later.drop()
        self._more.disabled = False

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait until the data that were asked for are there; False if that took too long."""
        return self._later.wait(timeout_s)

    def _watch(self) -> None:
        run = self._run
        self._more.disabled, self._rows.value = True, said_html("The run is played once more.")
        self._later.want(lambda look: self._tell(run, look), at_once=True)

    def _tell(self, run: Any, look: Callable[[], None]) -> None:
        """Play the run once more, in a thread of its own, and show what its filters were given."""
        try:
            first, counts = decisions(run, progress=lambda _: look())
        except GivenUp:
            raise
        except WorkbenchError as error:
            said = error_html(str(error))
        except Exception as error:  # a filter of the user's, say
            said = error_html(f"the run ended with {type(error).__name__}: {error}")
        else:
            look()
            self._table.value = _counts_html(run.scenario.protocol, counts, is_whole=True)
            self._more.layout.display = "none"
            said = _decisions_html(run.scenario.protocol, first, sum(counts.values()))
        look()
        self._rows.value, self._more.disabled = said, False


def _names(protocol: Protocol) -> dict[tuple[str, int], str]:
    return {(one.messages, one.key): one.name for one in getattr(protocol, setting_of(protocol))}


def _counts_html(protocol: Protocol, counts: Counter[tuple[str, int, str]], is_whole: bool) -> str:
    """A row per filter; how many it passed is known only of a run that was watched."""
    did = tuple(_DID) if is_whole else ("replace", "drop")
    words = ("key", "filter", "messages", *(_DID[one] for one in did))
    rows = []
    for (messages, key), name in sorted(_names(protocol).items()):
        numbers = "".join(f"<td>{counts[messages, key, one]:,}</td>" for one in did)
        rows.append(f"<tr><td>{key}</td><td>{html.escape(name)}</td><td>{messages}</td>{numbers}</tr>")
    caption = "<caption>What filters did</caption>"
    return f"<table class='wb-told'>{caption}{_head(words)}{''.join(rows)}</table>"


def _head(words: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<th scope='col'>{word}</th>" for word in words) + "</tr>"


def _decisions_html(protocol: Protocol, first: tuple[Decision, ...], count: int) -> str:
    if not count:
        return "No message came to a filter."
    names = _names(protocol)
    head = _head(("time", "node", "filter", "message", "did", "before", "after"))
    rows = []
    for one in _most_telling(first):
        message = f"{one.messages} {one.sequence} of node {one.origin}"
        told = (f"{one.time_us / 1e6:.6g} s", one.node, names.get((one.messages, one.key), one.key), message)
        cells = (*told, _DID[one.did], one.before, "" if one.after == one.before else one.after)
        columns = "".join(f"<td>{html.escape(str(cell))}</td>" for cell in cells)
        rows.append(f"<tr class='wb-{one.did}'>{columns}</tr>")
    said = f"<p>{len(rows):,} of {count:,}, rather those that changed something.</p>" if len(rows) < count else ""
    return f"{said}<div class='wb-told-rows'><table class='wb-told'>{head}{''.join(rows)}</table></div>"


def _most_telling(first: tuple[Decision, ...]) -> list[Decision]:
    """As many as a table shows: those that changed something before those that passed, in the order of the run."""
    kept = sorted(range(len(first)), key=lambda place: first[place].did == "pass")[:_MOST_ROWS]
    return [first[place] for place in sorted(kept)]
