"""The menu of sources from which a network can be made: generators, testbeds on this machine, and tables.

A table lists links or positions."""

from __future__ import annotations

import asyncio
import html
import re
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
import networkx as nx
import traitlets

from workbench import datasets, plugins
from workbench.errors import DataError, WorkbenchError
from workbench.topology import from_links, from_positions, parameters
from workbench.widgets.controls import error_html, words
from workbench.widgets.fields import Field, fields_of, vary_button
from workbench.widgets.panel import close_all

if TYPE_CHECKING:
    import pandas as pd

LABELS = {
    "grid": "grid",
    "line": "line",
    "ring": "ring",
    "disc": "disc: random positions, linked within a radius",
    "random_geometric": "random positions, links from radio propagation",
    "office": "office floor with walls",
}
TABLE = "table"
HAND = "hand"  # a network that does not come from an entry of the menu
_HAND_LABEL = "your own: edited by hand, or from elsewhere"
SOON_S = 0.03
HOW = (
    "Links: a header <code>transmitter,receiver,pdr</code> and a row for each direction. Positions: a header "
    "<code>node,x_m,y_m</code>. A text may have both tables; positions alone are linked within the radius."
)
_RADIUS = parameters.TABLES["disc"][3]
_LARGEST_TEXT = 20_000_000
_Made = Callable[[nx.DiGraph], None]


class Debounced:
    """A function that runs a short time after the last of several calls, with the arguments of the last call.

    For example, while a slider moves, only its last position makes a network. Without a running event loop, each call
    runs the function at once.
    """

    def __init__(self, function: Callable[..., None], after_s: float = SOON_S) -> None:
        self._function, self._after_s = function, after_s
        self._pending_call: asyncio.TimerHandle | None = None

    def __call__(self, *args: Any) -> None:
        self.cancel()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._function(*args)
            return
        self._pending_call = loop.call_later(self._after_s, self._function, *args)

    def cancel(self) -> None:
        """Cancel the call that waits for its delay, if any."""
        if self._pending_call is not None:
            self._pending_call.cancel()


class Sources(widgets.VBox):
    """The menu of sources of a network (generators, testbeds, a table), and the form of the selected source.

    made: a function that is called with every new network, as ``made(graph)``.
    varied: (path of the parameter that the user last selected for a sweep, number of times its button was pressed), or
        ("", 0) before the first selection.
    """

    varied = traitlets.Tuple(("", 0))

    def __init__(self, made: _Made) -> None:
        self._take_network = made
        self._is_showing = False
        self._open_source: Any = None
        self._make_soon = Debounced(self._generate_network)
        self._entries = choices()  # looks for plug-ins and for testbeds on this machine, so it is called once
        self.choice = widgets.Dropdown(
            options=self._entries, description="from", layout={"width": "26em", "max_width": "100%"}
        )
        self.form = widgets.VBox()
        self.fields: dict[str, Field] = {}
        self.table = TableSource(self._make_network)
        self._message = words(flex="1 1 14em", min_width="10em")
        self.vary = vary_button(lambda: self.fields.values())
        # The message is beside the menu and not below the form, so that it does not shift the map.
        upper_row = widgets.HBox((self.choice, self.vary, self._message), layout={"flex_flow": "row wrap"})
        super().__init__((upper_row, self.form))
        self._show_form(self.choice.value)
        self.choice.observe(self._select_source, "value")

    def show(self, graph: nx.DiGraph) -> None:
        """Select the source of a network in the menu, and show the source's form with the network's parameters.

        If no source of the menu can have made the network, an entry for networks edited by hand is added and selected.
        """
        self._make_soon.cancel()
        self.show_error("")
        menu_entries = list(self._entries)
        source = source_of(graph, [value for _, value in menu_entries])
        if source is None or (source == TABLE and self.choice.value != TABLE):
            source = HAND
            menu_entries.append((_HAND_LABEL, HAND))
            self._show_hint(
                "This network was edited by hand or comes from elsewhere; selecting another source replaces it."
            )
        self._is_showing = True
        try:
            if self.choice.options != tuple(menu_entries):
                self.choice.options = menu_entries
            self.choice.value = source
            self._show_form(source, graph.graph.get("recipe"))
        finally:
            self._is_showing = False

    def show_error(self, error: str) -> None:
        """Show an error beside the menu; "" hides it."""
        self._message.value = error_html(error)

    def _show_hint(self, hint: str) -> None:
        self._message.value = f"<span class='wb-unit'>{html.escape(hint)}</span>"

    def _select_source(self, change: Any) -> None:
        if self._is_showing:
            return
        self.show_error("")
        self._show_form(change.new)
        self._make_soon()

    def _show_form(self, source: Any, recipe: Mapping[str, Any] | None = None) -> None:
        """Show the form of a source of networks.

        ``source``: the value of an entry of the menu. ``recipe``: {parameter: value} to show in a generator's form;
        None: the defaults.
        """
        self.vary.layout.display = "none" if source in (TABLE, HAND) else None
        if source in (TABLE, HAND):
            self._open_source, self.form.children = source, (self.table,) if source == TABLE else ()
            return
        kind, name = source
        arguments = parameters.values_of(kind, recipe)
        if self._open_source == source:
            for parameter, field in self.fields.items():
                field.value = arguments[parameter]
            return
        main_fields = fields_of(parameters.table_of(kind), arguments, LABELS.get(kind, name))
        radio_fields = fields_of(parameters.PROPAGATION.get(kind, ()), arguments, "propagation")
        self.vary.value = False
        self.fields = {**main_fields, **radio_fields}
        for parameter, field in self.fields.items():
            field.observe(self._apply_field, "value")
            path = f"topology.{'propagation.' if parameter in radio_fields else ''}{parameter}"
            field.observe(lambda change, path=path: self._report_varied(path, change.new), "vary_count")
        visible: list[Any] = list(main_fields.values())
        if radio_fields:
            radio_section = widgets.VBox(tuple(radio_fields.values()))
            visible.append(widgets.Accordion(children=(radio_section,), titles=("Radio propagation",)))
        previous_children, self.form.children = self.form.children, tuple(visible)
        for child in previous_children:
            if child is not self.table:
                close_all(child)
        self._open_source = source

    def _report_varied(self, path: str, count: int) -> None:
        self.vary.value = False
        self.varied = path, count

    def _apply_field(self, _: Any) -> None:
        if not self._is_showing:
            self._make_soon()

    def _generate_network(self) -> None:
        if self.choice.value in (TABLE, HAND):
            return
        kind, name = self.choice.value
        arguments = {parameter: field.value for parameter, field in self.fields.items()}
        self._make_network(lambda: parameters.generate(kind, arguments, name))

    def _make_network(self, make: Callable[[], nx.DiGraph]) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a warning about modified data is not useful for the user's own data
                graph = make()
        except WorkbenchError as error:
            self.show_error(str(error))
            return
        self.show_error("")
        self._take_network(graph)


class TableSource(widgets.VBox):
    """A text box and an upload for tables of links and positions.

    When the user submits a table, ``take(make)`` is called. ``take`` is an argument of the constructor; ``make()``
    returns the network that the table describes.
    """

    def __init__(self, take: Callable[[Callable[[], nx.DiGraph]], None]) -> None:
        self._make_network = take
        self.text = widgets.Textarea(
            placeholder="transmitter,receiver,pdr\n0,1,0.95\n1,0,0.90",
            layout={"width": "30em", "max_width": "100%", "height": "9em"},
        )
        self.text.tooltip = "table of links or positions"
        self.upload = widgets.FileUpload(accept=".csv,.txt,text/csv", multiple=True, description="CSV files")
        self.use = widgets.Button(description="Use this table", tooltip="Make the network that the table describes")
        self.radius = Field(_RADIUS)
        self.use.on_click(lambda _: self.make())
        self.upload.observe(self._use_upload, "value")
        button_row = widgets.HBox((self.use, self.upload))
        super().__init__((words(f"<span class='wb-unit'>{HOW}</span>"), self.text, self.radius, button_row))

    def make(self) -> None:
        """Submit the table in the text box: call ``take`` with a function that makes the network from it."""
        table_text, radius_m = self.text.value, self.radius.value
        self._make_network(lambda: network_of(table_text, radius_m))

    def _use_upload(self, change: Any) -> None:
        if not change.new:
            return
        contents = [bytes(file["content"]) for file in change.new]
        self.text.value = "\n".join(content.decode("utf-8-sig", "replace") for content in contents)
        self.make()


def choices() -> list[tuple[str, Any]]:
    """Return the entries of the menu as (label, source): generators, testbeds on this machine, and tables.

    A source is (kind of a generator, ""), ("testbed", name of the testbed), or the constant `TABLE`.
    """
    testbed_choices = [(f"testbed {name}", ("testbed", name)) for name in testbeds()]
    labels = LABELS | {name: name for name in plugins.load_all("topologies", parameters.TABLES)}
    return [
        *((label, (kind, "")) for kind, label in labels.items()),
        *testbed_choices,
        ("a table: paste or upload", TABLE),
    ]


def testbeds() -> list[str]:
    """Return the names of the testbeds whose measured links are stored on this machine."""
    testbed_names = []
    for data_set in datasets.DATA_SETS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                datasets.find(data_set.name, "links")
        except DataError:
            continue
        testbed_names.append(data_set.name)
    return testbed_names


def source_of(graph: nx.DiGraph, menu_sources: list[Any]) -> Any:
    """Return the source from which a network was made, or None if the menu does not have this source.

    The source is an entry's value as in `choices`; it is `TABLE` for a network made from a table of links or positions.
    ``menu_sources``: the sources in the menu.
    """
    recipe = graph.graph.get("recipe") or {}
    kind = recipe.get("kind")
    if kind in ("from_links", "from_positions"):
        return TABLE
    generator_source = (kind, recipe.get("name", "") if kind == "testbed" else "")
    return generator_source if generator_source in menu_sources else None


def network_of(text: str, radius_m: float) -> nx.DiGraph:
    """Return the network that a text describes: a table of links, a table of positions, or both.

    Without a table of links, nodes at most ``radius_m`` apart are linked. Raises DataError for an invalid text.
    """
    if len(text) > _LARGEST_TEXT:
        raise DataError(
            f"The table has {len(text):,} characters; it must have at most {_LARGEST_TEXT:,}, so omit some of its rows."
        )
    frames = tables(text)
    if not frames:
        raise DataError(
            "The text is empty; enter a table that begins with the header transmitter,receiver,pdr or node,x_m,y_m."
        )
    links = [table for table in frames if "transmitter" in table.columns]
    position_tables = [table for table in frames if "x_m" in table.columns]
    if len(links) > 1 or len(position_tables) > 1 or len(links) + len(position_tables) < len(frames):
        headers = "; ".join(",".join(map(str, table.columns)) for table in frames)[:120]
        raise DataError(
            f"The tables have the headers {headers}; enter at most one table of links (transmitter,receiver,pdr) and "
            "one of positions (node,x_m,y_m)."
        )
    if links:
        return from_links(links[0], position_tables[0] if position_tables else None)
    return from_positions(position_tables[0], radius_m)


def tables(text: str) -> list[pd.DataFrame]:
    """Return the tables in a text as data frames. A line with column names begins each table.

    All cells are strings. The index of a data frame contains the line number of each row in the text, from 1.
    """
    import pandas as pd

    parsed: list[tuple[list[str], dict[int, list[str]]]] = []
    for line, row in enumerate(text.splitlines(), 1):
        cells = [cell.strip().strip("\"'") for cell in re.split(r"\s*[,;\t]\s*|\s+", row.strip())]
        if not any(cells):
            continue
        if not parsed or _is_header(cells):
            parsed.append((cells, {}))
        else:
            column_count = len(parsed[-1][0])
            parsed[-1][1][line] = [*cells, *[""] * column_count][:column_count]
    return [
        pd.DataFrame.from_dict(rows, orient="index", columns=_number_repeated_names(header)) for header, rows in parsed
    ]


def _is_header(cells: list[str]) -> bool:
    return {"transmitter", "receiver"} <= set(cells) or {"node", "x_m"} <= set(cells)


def _number_repeated_names(names: list[str]) -> list[str]:
    """Append a number to repeated column names, so that each column of a table has a name of its own."""
    return [name if name not in names[:index] else f"{name} {index}" for index, name in enumerate(names)]
