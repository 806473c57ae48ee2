"""What parts that hold lists are made of: a list with its buttons, a field of text, nodes as text."""

from __future__ import annotations

import html
import re
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import ipywidgets as widgets
import traitlets
from ipywidgets.widgets.widget_string import HTMLStyle

from workbench.errors import ParameterError
from workbench.folded_errors import shortened
from workbench.sim.workload import ALL
from workbench.widgets.part import Part, shared

MOST_LINES = 500  # of a list: a browser takes more, and nobody reads them
LONGEST_SENTENCE = 400  # it may quote what was put in
NAME_WIDTH = "11em"  # of what stands before a control

# Items of a tuple


def without(items: tuple[Any, ...], place: int) -> tuple[Any, ...]:
    """The items but the one at a place."""
    return (*items[:place], *items[place + 1 :])


def moved(items: tuple[Any, ...], place: int, to: int) -> tuple[Any, ...]:
    """The items with the one at a place moved to another."""
    rest = without(items, place)
    return (*rest[:to], items[place], *rest[to:])


def replaced(items: tuple[Any, ...], place: int, item: Any) -> tuple[Any, ...]:
    """The items with another one at a place."""
    return (*items[:place], item, *items[place + 1 :])


# Nodes


def nodes_of(text: str) -> str | tuple[int, ...]:
    """The nodes that a text names: "all", "0, 5" or "3-7, 9"; ParameterError for any other text."""
    if text.strip().lower() == ALL:
        return ALL
    nodes: dict[int, None] = {}  # in their order, each once
    for part in filter(None, re.split(r"[,;\s]+", text.strip())):
        found = re.fullmatch(r"(\d{1,10})(?:-(\d{1,10}))?", part, re.ASCII)
        if not found:
            raise ParameterError(f'{part!r:.40} names no node; write numbers, as in "0, 5" or "3-7", or "all"')
        first, last = int(found[1]), int(found[2] or found[1])
        if not 0 <= last - first < 100_000:
            raise ParameterError(f"{part} is no range of nodes; it must go from a lower number to a higher one")
        nodes.update(dict.fromkeys(range(first, last + 1)))
    if not nodes:
        raise ParameterError('no node is named; write numbers, as in "0, 5" or "3-7", or "all"')
    return tuple(nodes)


def known_nodes(at: str | tuple[int, ...], nodes: Iterable[int]) -> str | tuple[int, ...]:
    """``at``, if there are such nodes; ParameterError otherwise. Without known ``nodes`` any will do."""
    known = set(nodes)
    missing = [] if at == ALL or not known else [node for node in at if node not in known]
    if missing:
        raise ParameterError(
            f"there is no node {missing[0]}; the {len(known)} nodes are numbered {min(known)} to {max(known)}"
        )
    return at


def nodes_text(at: str | tuple[int, ...] | None) -> str:
    """The text of nodes, which `nodes_of` reads back: "all", "0, 5", "3-7"; None is all."""
    if at is None or isinstance(at, str):
        return ALL
    runs: list[list[int]] = []
    for node in at:
        if runs and node == runs[-1][-1] + 1:
            runs[-1].append(node)
        else:
            runs.append([node])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


# Controls


@contextmanager
def quiet(part: Any) -> Iterator[None]:
    """Set controls of a part without taking that for the user's doing."""
    before, part._is_drawing = part._is_drawing, True
    try:
        yield
    finally:
        part._is_drawing = before


def button(label: str, reason: str, action: Callable[[], None], **layout: Any) -> widgets.Button:
    """A button with a tooltip, as wide as its label, that calls ``action()``."""
    made = widgets.Button(
        description=label, tooltip=reason, layout={"width": "auto", "align_self": "flex-start", **layout}
    )
    made.on_click(lambda _: action())
    return made


def error_html(sentence: str) -> str:
    """An error as a sentence beside a field; "" without one. Of a very long one the middle is left out."""
    sentence = shortened(sentence, LONGEST_SENTENCE)
    return f"<span class='wb-error' role='alert'>{html.escape(sentence)}</span>" if sentence else ""


def said_html(sentence: str, is_error: bool = False) -> str:
    """How something goes, or what is wrong with it, as a sentence beside buttons; "" without one."""
    if is_error or not sentence:
        return error_html(sentence)
    return f"<span class='wb-said' role='status'>{html.escape(sentence)}</span>"


def words(text: str = "", **layout: str) -> widgets.HTML:
    """Words, as HTML. Their layout and style are others' too (`shared`), so they are not to be changed."""
    names = " ".join(f"{name}: {value};" for name, value in layout.items())
    return widgets.HTML(
        text,
        layout=shared(f"layout {names}", partial(widgets.Layout, **layout)),
        style=shared("style of words", HTMLStyle),
    )


def below() -> widgets.HTML:
    """What can be said below a field (`tell_below`); it takes no room while there is nothing."""
    return words().add_class("wb-below").add_class("wb-none")


def tell_below(where: widgets.HTML, text: str) -> None:
    """Say something there, as HTML; "" is nothing."""
    if where.value != text:
        where.value = text
        (where.remove_class if text else where.add_class)("wb-none")


class TextField(widgets.HBox):
    """A name, a text, its unit, and what is wrong with it. ``text``: what stands there; ``error``: a sentence or ""."""

    text = traitlets.Unicode()
    error = traitlets.Unicode()

    def __init__(self, name: str, unit: str = "", reason: str = "", placeholder: str = "") -> None:
        label = f"<span title='{html.escape(reason, quote=True)}'>{html.escape(name)}</span>"
        self._text = widgets.Text(
            continuous_update=False, placeholder=placeholder, tooltip=f"{name}: {reason}", layout={"width": "auto"}
        )
        self._said = below()
        units = words(f"<span class='wb-unit'>{html.escape(unit)}</span>")
        super().__init__((words(label, width="auto"), self._text, units, self._said))
        self.add_class("wb-field").add_class("wb-row")
        traitlets.link((self, "text"), (self._text, "value"))
        self.observe(self._tell, "error")

    def _tell(self, change: Any) -> None:
        tell_below(self._said, error_html(change.new))


class Lines(widgets.VBox):
    """Items, a line each, one of them selected, with buttons. ``selected``: its place, or -1.

    ``buttons``: (label, tooltip, what to call); they are off where nothing is selected.
    """

    selected = traitlets.Int(-1)

    def __init__(self, name: str, buttons: Iterable[tuple[str, str, Callable[[], None]]], empty: str) -> None:
        self._list = widgets.Select(rows=6, layout={"width": "calc(100% - 4px)"}, tooltip=name)
        self._buttons = tuple(button(*one) for one in buttons)
        self._empty = words(html.escape(empty))
        self._more = words()
        row = widgets.HBox(self._buttons, layout={"flex_flow": "row wrap"})
        super().__init__((self._empty, self._list, self._more, row))
        self._is_setting = False
        self._list.observe(self._picked, "index")
        self.observe(self._shown, "selected")

    def show(self, lines: list[str], selected: int) -> None:
        """Show these lines with that one selected."""
        shown = lines[:MOST_LINES]
        self._is_setting = True
        try:
            if self._list.options != tuple(shown):
                self._list.options = tuple(shown)
            self._list.rows = min(10, max(3, len(shown)))
        finally:
            self._is_setting = False
        rest = len(lines) - len(shown)
        self._more.value = f"{rest:,} more are not listed." if rest else ""
        self.selected = min(selected, len(lines) - 1)
        self._shown()

    def _picked(self, change: Any) -> None:
        if not self._is_setting:
            self.selected = -1 if change.new is None else change.new

    def _shown(self, _: Any = None) -> None:
        self._is_setting = True
        try:
            count = len(self._list.options)
            self._list.index = self.selected if 0 <= self.selected < count else None
        finally:
            self._is_setting = False
        self._list.layout.display = None if count else "none"
        (self._empty.add_class if count else self._empty.remove_class)("wb-none")
        for one in self._buttons:
            one.disabled = self.selected < 0


class ListPart(Part):
    """A part that lists items, and has a form for the one that is selected.

    picked    the nodes that are picked on the map
    selected  the place of the item whose form is shown, -1 for none

    A subclass has ``items``, ``_acts()`` (the list's buttons), ``_put_onto()`` and ``_draw_form()``.
    """

    picked = traitlets.Any(())
    selected = traitlets.Int(-1)

    def _make_list(self, said: str, empty: str, what: str) -> None:
        """Make the list (``_lines``) and the button that puts an item onto nodes (``_put``)."""
        self._lines = Lines(said, self._acts(), empty)
        self._put = button("Put onto picked nodes", f"the {what} moves to the nodes picked on the map", self._put_onto)

    def _watch_list(self) -> None:
        self._lines.observe(self._select, "selected")
        self.observe(self._chosen, "selected")
        self.observe(self._draw_put, ("picked", "selected"))
        self._draw_put()

    @property
    def items(self) -> tuple[Any, ...]:
        """What the list shows."""
        raise NotImplementedError

    def _acts(self) -> tuple[tuple[str, str, Callable[[], None]], ...]:
        raise NotImplementedError

    def _put_onto(self) -> None:
        raise NotImplementedError

    def _draw_form(self, _: Any = None) -> None:
        raise NotImplementedError

    def _select(self, change: Any) -> None:
        if not self._is_drawing:
            self.selected = change.new

    def _chosen(self, change: Any) -> None:
        if self._lines.selected != change.new and change.new < len(self.items):
            self._lines.selected = change.new
        self._draw_form()

    def _draw_put(self, _: Any = None) -> None:
        count = len(tuple(self.picked))
        self._put.description = f"Put onto picked nodes ({count})" if count else "Put onto picked nodes"
        self._put.disabled = not count or self.selected < 0


# After each cell: keys and filters that the user has registered in it

_wanting: weakref.WeakSet[Part] = weakref.WeakSet()


def refresh_after_cells(part: Any) -> None:
    """Call ``part.refresh()`` after each cell that the user runs, as long as the part is open."""
    from IPython import get_ipython

    shell = get_ipython()
    if shell is None:
        return
    if not _wanting:
        _listen(shell)
    _wanting.add(part)


def _listen(shell: Any) -> None:
    if _refresh not in shell.events.callbacks["post_run_cell"]:
        shell.events.register("post_run_cell", _refresh)


def _refresh(_: Any = None) -> None:
    for part in tuple(_wanting):
        if part.comm is None:  # closed
            _wanting.discard(part)
        else:
            part.refresh()
