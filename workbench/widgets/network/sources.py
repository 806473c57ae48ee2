"""Where a network comes from: a generator with sliders, a testbed on this machine, or a table of links or positions."""

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
from workbench.widgets.part import close_all

if TYPE_CHECKING:
    import pandas as pd

SAID = {
    "grid": "grid",
    "line": "line",
    "ring": "ring",
    "disc": "disc: strewn, linked within a radius",
    "random_geometric": "strewn, links from radio propagation",
    "office": "office floor with walls",
}
TABLE = "table"
SOON_S = 0.03
HOW = (
    "Links: a header <code>transmitter,receiver,pdr</code> and a row for each direction. Positions: a header "
    "<code>node,x_m,y_m</code>. Both may stand below each other; positions alone are linked within the radius."
)
_RADIUS = parameters.TABLES["disc"][3]
_LARGEST_TEXT = 20_000_000
_Made = Callable[[nx.DiGraph], None]


class Soon:
    """Calls a function with the newest of the arguments that come within a moment; at once where no event loop runs.

    Messages of a slider that wait in the kernel are taken from its queue before the moment has passed, so a network
    that nobody wants any more is not made.
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
        """What waits is not done."""
        if self._waiting is not None:
            self._waiting.cancel()


class Sources(widgets.VBox):
    """The choice of a source, and its form. ``made(graph)`` is called with every network that the user makes."""

    def __init__(self, made: _Made) -> None:
        self._made = made
        self._is_showing = False
        self._opened: Any = None
        self._soon = Soon(self._make)
        self.choice = widgets.Dropdown(
            options=choices(), description="from", layout={"width": "26em", "max_width": "100%"}
        )
        self.form = widgets.VBox()
        self.fields: dict[str, Field] = {}
        self.table = TableSource(self._take)
        self._said = words(flex="1 1 14em", min_width="10em")
        # Beside the choice and not below the form, so that the map does not jump when something is said.
        super().__init__((widgets.HBox((self.choice, self._said), layout={"flex_flow": "row wrap"}), self.form))
        self._open(self.choice.value)
        self.choice.observe(self._chosen, "value")

    def show(self, graph: nx.DiGraph) -> None:
        """Bring choice and form into line with a network from elsewhere."""
        self._soon.cancel()
        self.tell("")
        source = source_of(graph, [value for _, value in self.choice.options])
        if source is None:
            self._tell_about("Changed by hand, or from elsewhere: a control below makes the network anew.")
            return
        self._is_showing = True
        try:
            self.choice.value = source
            self._open(source, graph.graph["recipe"])
        finally:
            self._is_showing = False

    def tell(self, error: str) -> None:
        """Say beside the form what is wrong; "" if nothing is."""
        self._said.value = error_html(error)

    def _tell_about(self, said: str) -> None:
        self._said.value = f"<span class='wb-unit'>{html.escape(said)}</span>"

    def _chosen(self, change: Any) -> None:
        if self._is_showing:
            return
        self.tell("")
        self._open(change.new)
        self._soon()

    def _open(self, source: Any, recipe: Mapping[str, Any] | None = None) -> None:
        """The form of a source; one that is there already gets the values of the recipe."""
        if source == TABLE:
            self._opened, self.form.children = source, (self.table,)
            return
        kind, name = source
        values = parameters.values_of(kind, recipe)
        if self._opened == source:
            for one, field in self.fields.items():
                field.value = values[one]
            return
        main = fields_of(parameters.table_of(kind), values, SAID.get(kind, name))
        radio = fields_of(parameters.PROPAGATION.get(kind, ()), values, "propagation")
        self.fields = {**main, **radio}
        for field in self.fields.values():
            field.observe(self._set, "value")
        shown: list[Any] = list(main.values())
        if radio:
            folded = widgets.VBox(tuple(radio.values()))
            shown.append(widgets.Accordion(children=(folded,), titles=("Radio propagation",)))
        before, self.form.children = self.form.children, tuple(shown)
        for one in before:
            if one is not self.table:
                close_all(one)
        self._opened = source

    def _set(self, _: Any) -> None:
        if not self._is_showing:
            self._soon()

    def _make(self) -> None:
        if self.choice.value == TABLE:
            return
        kind, name = self.choice.value
        values = {one: field.value for one, field in self.fields.items()}
        self._take(lambda: parameters.generate(kind, values, name))

    def _take(self, make: Callable[[], nx.DiGraph]) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # data that are not those of others are the user's own
                graph = make()
        except WorkbenchError as error:
            self.tell(str(error))
            return
        self.tell("")
        self._made(graph)


class TableSource(widgets.VBox):
    """Tables of links and positions, pasted or uploaded. ``take(make)`` is called with a function that makes the
    network of them."""

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
        """Make the network of what stands in the text."""
        text, radius_m = self.text.value, self.radius.value
        self._take(lambda: network_of(text, radius_m))

    def _uploaded(self, change: Any) -> None:
        if not change.new:
            return
        contents = [bytes(one["content"]) for one in change.new]
        self.text.value = "\n".join(content.decode("utf-8-sig", "replace") for content in contents)
        self.make()


def choices() -> list[tuple[str, Any]]:
    """What a network can come from: (words, source), the testbeds of this machine among them."""
    here = [(f"testbed {name}", ("testbed", name)) for name in testbeds()]
    said = SAID | {name: name for name in plugins.load_all("topologies", parameters.TABLES)}
    return [*((words, (kind, "")) for kind, words in said.items()), *here, ("a table: paste or upload", TABLE)]


def testbeds() -> list[str]:
    """The names of the data sets with links that are on this machine."""
    found = []
    for one in datasets.DATA_SETS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                datasets.find(one.name, "links")
        except DataError:
            continue
        found.append(one.name)
    return found


def source_of(graph: nx.DiGraph, known: list[Any]) -> Any:
    """Which of the known sources a network has been made with; None if it is none of them."""
    recipe = graph.graph.get("recipe") or {}
    kind = recipe.get("kind")
    if kind in ("from_links", "from_positions"):
        return TABLE
    source = (kind, recipe.get("name", "") if kind == "testbed" else "")
    return source if source in known else None


def network_of(text: str, radius_m: float) -> nx.DiGraph:
    """The network of a text with a table of links, one of positions, or both. DataError says what is wrong with it."""
    if len(text) > _LARGEST_TEXT:
        raise DataError(f"The text has {len(text):,} characters; a table may have {_LARGEST_TEXT:,}.")
    found = tables(text)
    if not found:
        raise DataError("There is no table yet: it begins with a header, transmitter,receiver,pdr or node,x_m,y_m.")
    links = [one for one in found if "transmitter" in one.columns]
    places = [one for one in found if "x_m" in one.columns]
    if len(links) > 1 or len(places) > 1 or len(links) + len(places) < len(found):
        heads = "; ".join(",".join(map(str, one.columns)) for one in found)[:120]
        raise DataError(
            f"The tables have the headers {heads}; there may be one of links (transmitter,receiver,pdr) and one of "
            "positions (node,x_m,y_m)."
        )
    if links:
        return from_links(links[0], places[0] if places else None)
    return from_positions(places[0], radius_m)


def tables(text: str) -> list[pd.DataFrame]:
    """The tables of a text, of which each begins with a header; cells as texts, lines of the text as index."""
    import pandas as pd

    found: list[tuple[list[str], dict[int, list[str]]]] = []
    for line, row in enumerate(text.splitlines(), 1):
        cells = [cell.strip().strip("\"'") for cell in re.split(r"\s*[,;\t]\s*|\s+", row.strip())]
        if not any(cells):
            continue
        if not found or _is_header(cells):
            found.append((cells, {}))
        else:
            width = len(found[-1][0])
            found[-1][1][line] = [*cells, *[""] * width][:width]
    return [pd.DataFrame.from_dict(rows, orient="index", columns=_distinct(header)) for header, rows in found]


def _is_header(cells: list[str]) -> bool:
    return {"transmitter", "receiver"} <= set(cells) or {"node", "x_m"} <= set(cells)


def _distinct(names: list[str]) -> list[str]:
    """Names of which the second of a kind has its number behind it: a frame is asked for one column by its name."""
    return [name if name not in names[:place] else f"{name} {place}" for place, name in enumerate(names)]
