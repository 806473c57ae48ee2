"""Sources of a network: a generator with sliders, a testbed on this machine, or a table of links or positions."""

from __future__ import annotations

import asyncio
import html
import re
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
import networkx as nx

from workbench import datasets, plugins
from workbench.errors import DataError, WorkbenchError
from workbench.topology import from_links, from_positions, parameters
from workbench.widgets.controls import error_html, words
from workbench.widgets.fields import Field, fields_of
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
SOON_S = 0.03
HOW = (
    "Links: a header <code>transmitter,receiver,pdr</code> and a row for each direction. Positions: a header "
    "<code>node,x_m,y_m</code>. One may follow the other; positions alone are linked within the radius."
)
_RADIUS = parameters.TABLES["disc"][3]
_LARGEST_TEXT = 20_000_000
_Made = Callable[[nx.DiGraph], None]


class Debounced:
    """Calls a function with the last arguments within a short interval; without an event loop it calls at once.

    A slider's messages that wait in the kernel are processed within the interval, so outdated networks are not made.
    """

    def __init__(self, act: Callable[..., None], after_s: float = SOON_S) -> None:
        self._act, self._after_s = act, after_s
        self._waiting: asyncio.TimerHandle | None = None

    def __call__(self, *args: Any) -> None:
        self.cancel()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._act(*args)
            return
        self._waiting = loop.call_later(self._after_s, self._act, *args)

    def cancel(self) -> None:
        """Cancel the pending call."""
        if self._waiting is not None:
            self._waiting.cancel()


class Sources(widgets.VBox):
    """The menu of sources, and the form of the selected one. ``made(graph)`` is called with every new network."""

    def __init__(self, made: _Made) -> None:
        self._made = made
        self._is_showing = False
        self._opened: Any = None
        self._soon = Debounced(self._make)
        self.choice = widgets.Dropdown(
            options=choices(), description="from", layout={"width": "26em", "max_width": "100%"}
        )
        self.form = widgets.VBox()
        self.fields: dict[str, Field] = {}
        self.table = TableSource(self._take)
        self._message = words(flex="1 1 14em", min_width="10em")
        # Beside the menu and not below the form, so that a message does not shift the map.
        super().__init__((widgets.HBox((self.choice, self._message), layout={"flex_flow": "row wrap"}), self.form))
        self._open(self.choice.value)
        self.choice.observe(self._chosen, "value")

    def show(self, graph: nx.DiGraph) -> None:
        """Update menu and form for a network from elsewhere."""
        self._soon.cancel()
        self.show_error("")
        source = source_of(graph, [value for _, value in self.choice.options])
        if source is None:
            self._show_hint("Changed by hand, or from elsewhere: a control below generates a new network.")
            return
        self._is_showing = True
        try:
            self.choice.value = source
            self._open(source, graph.graph["recipe"])
        finally:
            self._is_showing = False

    def show_error(self, error: str) -> None:
        """Show an error beside the form; "" hides it."""
        self._message.value = error_html(error)

    def _show_hint(self, hint: str) -> None:
        self._message.value = f"<span class='wb-unit'>{html.escape(hint)}</span>"

    def _chosen(self, change: Any) -> None:
        if self._is_showing:
            return
        self.show_error("")
        self._open(change.new)
        self._soon()

    def _open(self, source: Any, recipe: Mapping[str, Any] | None = None) -> None:
        """Show the form of a source; a form that is already open gets the values of the recipe."""
        if source == TABLE:
            self._opened, self.form.children = source, (self.table,)
            return
        kind, name = source
        values = parameters.values_of(kind, recipe)
        if self._opened == source:
            for parameter, field in self.fields.items():
                field.value = values[parameter]
            return
        main = fields_of(parameters.table_of(kind), values, LABELS.get(kind, name))
        radio = fields_of(parameters.PROPAGATION.get(kind, ()), values, "propagation")
        self.fields = {**main, **radio}
        for field in self.fields.values():
            field.observe(self._set, "value")
        shown: list[Any] = list(main.values())
        if radio:
            folded = widgets.VBox(tuple(radio.values()))
            shown.append(widgets.Accordion(children=(folded,), titles=("Radio propagation",)))
        before, self.form.children = self.form.children, tuple(shown)
        for child in before:
            if child is not self.table:
                close_all(child)
        self._opened = source

    def _set(self, _: Any) -> None:
        if not self._is_showing:
            self._soon()

    def _make(self) -> None:
        if self.choice.value == TABLE:
            return
        kind, name = self.choice.value
        values = {parameter: field.value for parameter, field in self.fields.items()}
        self._take(lambda: parameters.generate(kind, values, name))

    def _take(self, make: Callable[[], nx.DiGraph]) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a warning about modified data is not useful for the user's own data
                graph = make()
        except WorkbenchError as error:
            self.show_error(str(error))
            return
        self.show_error("")
        self._made(graph)


class TableSource(widgets.VBox):
    """A text box and an upload for tables of links and positions.

    ``take(make)`` is called with a function that makes the network.
    """

    def __init__(self, take: Callable[[Callable[[], nx.DiGraph]], None]) -> None:
        self._take = take
        self.text = widgets.Textarea(
            placeholder="transmitter,receiver,pdr\n0,1,0.95\n1,0,0.90",
            layout={"width": "30em", "max_width": "100%", "height": "9em"},
        )
        self.text.tooltip = "table of links or positions"
        self.upload = widgets.FileUpload(accept=".csv,.txt,text/csv", multiple=True, description="CSV files")
        self.use = widgets.Button(description="Use this table", tooltip="Make the network of the table")
        self.radius = Field(_RADIUS)
        self.use.on_click(lambda _: self.make())
        self.upload.observe(self._uploaded, "value")
        row = widgets.HBox((self.use, self.upload))
        super().__init__((words(f"<span class='wb-unit'>{HOW}</span>"), self.text, self.radius, row))

    def make(self) -> None:
        """Make the network from the text."""
        text, radius_m = self.text.value, self.radius.value
        self._take(lambda: network_of(text, radius_m))

    def _uploaded(self, change: Any) -> None:
        if not change.new:
            return
        contents = [bytes(file["content"]) for file in change.new]
        self.text.value = "\n".join(content.decode("utf-8-sig", "replace") for content in contents)
        self.make()


def choices() -> list[tuple[str, Any]]:
    """Return the sources as (label, source), including the testbeds on this machine."""
    local = [(f"testbed {name}", ("testbed", name)) for name in testbeds()]
    labels = LABELS | {name: name for name in plugins.load_all("topologies", parameters.TABLES)}
    return [*((label, (kind, "")) for kind, label in labels.items()), *local, ("a table: paste or upload", TABLE)]


def testbeds() -> list[str]:
    """Return the names of the data sets with links on this machine."""
    names = []
    for data_set in datasets.DATA_SETS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                datasets.find(data_set.name, "links")
        except DataError:
            continue
        names.append(data_set.name)
    return names


def source_of(graph: nx.DiGraph, known: list[Any]) -> Any:
    """Return the source among ``known`` that made a network; None if none did."""
    recipe = graph.graph.get("recipe") or {}
    kind = recipe.get("kind")
    if kind in ("from_links", "from_positions"):
        return TABLE
    source = (kind, recipe.get("name", "") if kind == "testbed" else "")
    return source if source in known else None


def network_of(text: str, radius_m: float) -> nx.DiGraph:
    """Return the network described by a text: a table of links, a table of positions, or both.

    Raises DataError for invalid text.
    """
    if len(text) > _LARGEST_TEXT:
        raise DataError(f"The text has {len(text):,} characters; at most {_LARGEST_TEXT:,} are allowed.")
    frames = tables(text)
    if not frames:
        raise DataError(
            "The text is empty; enter a table that begins with the header transmitter,receiver,pdr or node,x_m,y_m."
        )
    links = [frame for frame in frames if "transmitter" in frame.columns]
    positions = [frame for frame in frames if "x_m" in frame.columns]
    if len(links) > 1 or len(positions) > 1 or len(links) + len(positions) < len(frames):
        heads = "; ".join(",".join(map(str, frame.columns)) for frame in frames)[:120]
        raise DataError(
            f"The tables have the headers {heads}; enter at most one table of links (transmitter,receiver,pdr) and "
            "one of positions (node,x_m,y_m)."
        )
    if links:
        return from_links(links[0], positions[0] if positions else None)
    return from_positions(positions[0], radius_m)


def tables(text: str) -> list[pd.DataFrame]:
    """Return the tables of a text, each beginning with a header; cells are texts, the index is the line number."""
    import pandas as pd

    parsed: list[tuple[list[str], dict[int, list[str]]]] = []
    for line, row in enumerate(text.splitlines(), 1):
        cells = [cell.strip().strip("\"'") for cell in re.split(r"\s*[,;\t]\s*|\s+", row.strip())]
        if not any(cells):
            continue
        if not parsed or _is_header(cells):
            parsed.append((cells, {}))
        else:
            width = len(parsed[-1][0])
            parsed[-1][1][line] = [*cells, *[""] * width][:width]
    return [pd.DataFrame.from_dict(rows, orient="index", columns=_distinct(header)) for header, rows in parsed]


def _is_header(cells: list[str]) -> bool:
    return {"transmitter", "receiver"} <= set(cells) or {"node", "x_m"} <= set(cells)


def _distinct(names: list[str]) -> list[str]:
    """Number repeated names, so that each column of a frame has a unique name."""
    return [name if name not in names[:index] else f"{name} {index}" for index, name in enumerate(names)]
