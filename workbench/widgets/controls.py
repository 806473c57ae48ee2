"""Controls that several panels use: lists with buttons, text fields, messages. Also functions for nodes as text."""

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
from workbench.sim.actions import ALL
from workbench.widgets.panel import Panel, shared

MOST_LINES = 500  # lines of a list that are shown; users do not read more
LONGEST_SENTENCE = 400  # characters of a message that are shown; it may quote long input of the user
NAME_WIDTH = "11em"  # width of the label before a control

# Items of a tuple


def without(items: tuple[Any, ...], index: int) -> tuple[Any, ...]:
    """Return the items without the item at ``index``."""
    return (*items[:index], *items[index + 1 :])


def moved(items: tuple[Any, ...], index: int, to: int) -> tuple[Any, ...]:
    """Return the items in a new order: the item at ``index`` is moved to the index ``to``."""
    other_items = without(items, index)
    return (*other_items[:to], items[index], *other_items[to:])


def replaced(items: tuple[Any, ...], index: int, item: Any) -> tuple[Any, ...]:
    """Return a copy of ``items`` in which ``item`` replaces the item at ``index``."""
    return (*items[:index], item, *items[index + 1 :])


# Nodes


def nodes_of(text: str) -> str | tuple[int, ...]:
    """Return the nodes in a text such as "0, 5" or "3-7, 9" as a tuple, or "all" for the text "all".

    Raises ParameterError for any other text.
    """
    if text.strip().lower() == ALL:
        return ALL
    ordered_nodes: dict[int, None] = {}  # in their order, each once
    for range_text in filter(None, re.split(r"[,;\s]+", text.strip())):
        match = re.fullmatch(r"(\d{1,10})(?:-(\d{1,10}))?", range_text, re.ASCII)
        if not match:
            raise ParameterError(
                f'{range_text!r:.40} is not a node or a range; write numbers, as in "0, 5" or "3-7", or "all"'
            )
        first_node, last_node = int(match[1]), int(match[2] or match[1])
        if not 0 <= last_node - first_node < 100_000:
            raise ParameterError(
                f"{range_text} is not a range of nodes; "
                "it must go from a lower to a higher number, 100,000 nodes at most"
            )
        ordered_nodes.update(dict.fromkeys(range(first_node, last_node + 1)))
    if not ordered_nodes:
        raise ParameterError('the list of nodes is empty; write numbers, as in "0, 5" or "3-7", or "all"')
    return tuple(ordered_nodes)


def known_nodes(
    at: str | tuple[int, ...], nodes: Iterable[int], accepted: str | tuple[int, ...] = ()
) -> str | tuple[int, ...]:
    """Return ``at`` unchanged if all of its nodes are in the network; raise ParameterError for any other node.

    at: "all" or numbers of nodes.
    nodes: the nodes of the network; if it is empty, all nodes are valid.
    accepted: nodes that are valid even if they are not in the network.
    """
    network_nodes = set(nodes)
    accepted_nodes = () if isinstance(accepted, str) else accepted
    missing_nodes = (
        []
        if at == ALL or not network_nodes
        else [node for node in at if node not in network_nodes and node not in accepted_nodes]
    )
    if missing_nodes:
        raise ParameterError(
            f"node {missing_nodes[0]} is not in the network; its {len(network_nodes)} nodes are numbered "
            f"{min(network_nodes)} to {max(network_nodes)}"
        )
    return at


def nodes_text(at: str | tuple[int, ...] | None) -> str:
    """Return nodes as a text that `nodes_of` can read: "all", "0, 5", "3-7". None means all nodes."""
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
def quiet(panel: Any) -> Iterator[None]:
    """Enter a context in which the program changes a panel's controls: the panel does not take this for user input."""
    was_drawing, panel._is_drawing = panel._is_drawing, True
    try:
        yield
    finally:
        panel._is_drawing = was_drawing


def button(label: str, reason: str, action: Callable[[], None], **layout: Any) -> widgets.Button:
    """Return a button as wide as its label. A press calls ``action()``; ``reason`` is the tooltip."""
    new_button = widgets.Button(
        description=label, tooltip=reason, layout={"width": "auto", "align_self": "flex-start", **layout}
    )
    new_button.on_click(lambda _: action())
    return new_button


def error_html(sentence: str) -> str:
    """Return an error message as HTML, or "" if ``sentence`` is empty. The middle of a very long message is omitted."""
    sentence = shortened(sentence, LONGEST_SENTENCE)
    return f"<span class='wb-error' role='alert'>{html.escape(sentence)}</span>" if sentence else ""


def status_html(sentence: str, is_error: bool = False) -> str:
    """Return a status or error message as HTML, or "" if ``sentence`` is empty."""
    if is_error or not sentence:
        return error_html(sentence)
    escaped_sentence = html.escape(sentence, quote=True)
    return f"<span class='wb-said' role='status' title='{escaped_sentence}'>{escaped_sentence}</span>"


def words(text: str = "", **layout: str) -> widgets.HTML:
    """Return a widget that shows the HTML ``text``; ``layout``: CSS properties, such as ``width="8em"``.

    Do not change the layout and the style of the widget: other widgets share them.
    """
    names = " ".join(f"{name}: {value};" for name, value in layout.items())
    return widgets.HTML(
        text,
        layout=shared(f"layout {names}", partial(widgets.Layout, **layout)),
        style=shared("style of words", HTMLStyle),
    )


def below() -> widgets.HTML:
    """Return an empty widget for a message below a field. It takes no space until `show_below` sets a message."""
    return words().add_class("wb-below").add_class("wb-none")


def show_below(widget: widgets.HTML, text: str) -> None:
    """Show HTML in a widget that `below` made, or hide the widget if the text is ""."""
    if widget.value != text:
        widget.value = text
        (widget.remove_class if text else widget.add_class)("wb-none")


class TextField(widgets.HBox):
    """A text box with its label and unit, and an error message. ``text``: its content; ``error``: the message or ""."""

    text = traitlets.Unicode()
    error = traitlets.Unicode()

    def __init__(self, name: str, unit: str = "", reason: str = "", placeholder: str = "") -> None:
        label_html = f"<span title='{html.escape(reason, quote=True)}'>{html.escape(name)}</span>"
        self._text = widgets.Text(
            continuous_update=False, placeholder=placeholder, tooltip=f"{name}: {reason}", layout={"width": "auto"}
        )
        self._message = below()
        units = words(f"<span class='wb-unit'>{html.escape(unit)}</span>")
        super().__init__((words(label_html, width="auto"), self._text, units, self._message))
        self.add_class("wb-field").add_class("wb-row")
        traitlets.link((self, "text"), (self._text, "value"))
        self.observe(self._show_error, "error")

    def _show_error(self, change: Any) -> None:
        show_below(self._message, error_html(change.new))


class Lines(widgets.VBox):
    """A list of lines, one of which can be selected, with buttons. ``selected``: index of the line, or -1.

    buttons: (label, tooltip, function) of each button. While no line is selected, the buttons are disabled. empty: a
    text that is shown instead of an empty list.
    """

    selected = traitlets.Int(-1)

    def __init__(self, name: str, buttons: Iterable[tuple[str, str, Callable[[], None]]], empty: str) -> None:
        self._list = widgets.Select(rows=6, layout={"width": "calc(100% - 4px)"}, tooltip=name)
        self._buttons = tuple(button(*arguments) for arguments in buttons)
        self._empty = words(html.escape(empty))
        self._hidden_note = words()
        button_row = widgets.HBox(self._buttons, layout={"flex_flow": "row wrap"})
        super().__init__((self._empty, self._list, self._hidden_note, button_row))
        self._is_setting = False
        self._list.observe(self._apply_selection, "index")
        self.observe(self._draw_selection, "selected")

    def show(self, lines: list[str], selected: int) -> None:
        """Show these lines and select the line at index ``selected``; -1 selects no line."""
        shown_lines = lines[:MOST_LINES]
        self._is_setting = True
        try:
            if self._list.options != tuple(shown_lines):
                self._list.options = tuple(shown_lines)
            self._list.rows = min(10, max(3, len(shown_lines)))
        finally:
            self._is_setting = False
        hidden_count = len(lines) - len(shown_lines)
        self._hidden_note.value = f"{hidden_count:,} more are not listed." if hidden_count else ""
        self.selected = min(selected, len(lines) - 1)
        self._draw_selection()

    def _apply_selection(self, change: Any) -> None:
        if not self._is_setting:
            self.selected = -1 if change.new is None else change.new

    def _draw_selection(self, _: Any = None) -> None:
        self._is_setting = True
        try:
            line_count = len(self._list.options)
            self._list.index = self.selected if 0 <= self.selected < line_count else None
        finally:
            self._is_setting = False
        self._list.layout.display = None if line_count else "none"
        (self._empty.add_class if line_count else self._empty.remove_class)("wb-none")
        for control in self._buttons:
            control.disabled = self.selected < 0


class ListPanel(Panel):
    """A panel with a list of items, and a form for the selected item.

    picked    the nodes that are selected on the map
    selected  index of the selected item, or -1

    A subclass has ``items``, ``_button_actions()`` (the buttons of the list), ``_move_to_picked_nodes()`` (which moves
    the selected item to the nodes in ``picked``) and ``_draw_form()``.
    """

    picked = traitlets.Any(())
    selected = traitlets.Int(-1)

    def _make_list(self, label: str, empty: str, noun: str) -> None:
        """Make the list of items, and a button that assigns the selected item to the nodes selected on the map.

        label: label of the list. empty: text that an empty list shows. noun: name of an item, such as "filter".
        """
        self._lines = Lines(label, self._button_actions(), empty)
        self._move_button = button(
            "Move to selected nodes",
            f"move the {noun} to the nodes that are selected on the map",
            self._move_to_picked_nodes,
        )

    def _watch_list(self) -> None:
        self._lines.observe(self._set_selected, "selected")
        self.observe(self._draw_selected, "selected")
        self.observe(self._update_move_button, ("picked", "selected"))
        self._update_move_button()

    @property
    def items(self) -> tuple[Any, ...]:
        """The items that the list shows, in its order."""
        raise NotImplementedError

    def _button_actions(self) -> tuple[tuple[str, str, Callable[[], None]], ...]:
        raise NotImplementedError

    def _move_to_picked_nodes(self) -> None:
        raise NotImplementedError

    def _draw_form(self, _: Any = None) -> None:
        raise NotImplementedError

    def _set_selected(self, change: Any) -> None:
        if not self._is_drawing:
            self.selected = change.new

    def _draw_selected(self, change: Any) -> None:
        if self._lines.selected != change.new and change.new < len(self.items):
            self._lines.selected = change.new
        self._draw_form()

    def _update_move_button(self, _: Any = None) -> None:
        count = len(tuple(self.picked))
        self._move_button.description = f"Move to selected nodes ({count})" if count else "Move to selected nodes"
        self._move_button.disabled = not count or self.selected < 0


# After each cell: refresh lists of keys and filters, which the cell may have registered

_panels: weakref.WeakSet[Panel] = weakref.WeakSet()


def refresh_after_cells(panel: Any) -> None:
    """Call ``panel.refresh()`` after each cell that the user runs, until the panel is closed."""
    from IPython import get_ipython

    shell = get_ipython()
    if shell is None:
        return
    if not _panels:
        _register_hook(shell)
    _panels.add(panel)


def _register_hook(shell: Any) -> None:
    if _refresh_panels not in shell.events.callbacks["post_run_cell"]:
        shell.events.register("post_run_cell", _refresh_panels)


def _refresh_panels(_: Any = None) -> None:
    for panel in tuple(_panels):
        if panel.comm is None:  # closed
            _panels.discard(panel)
        else:
            panel.refresh()
