"""Charts of the charge that a run's radios consume: stacked bars of the radio states, and a map of the nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.errors import ParameterError
from workbench.suggestion import meant
from workbench.views import palette
from workbench.views.chart import SIZE, labels, ticks
from workbench.views.drawing import Drawing, text_width
from workbench.views.loads import load_map

if TYPE_CHECKING:
    import pandas as pd

    from workbench.analysis.energy import Energy

# The colour of each radio state, in the order from the bottom of a bar upwards.
COLOURS = {
    "transmit": palette.LOST,
    "acknowledge": palette.DATA,
    "receive": palette.SINK,
    "await_acknowledgement": palette.REINFORCED,
    "carrier_sense": palette.OTHER_MESSAGE,
    "overhear": palette.INTEREST,
    "idle": palette.LINK_GOOD,
    "sleep": palette.FAINT_TEXT,
}
TITLES = {state: state.replace("_", " ") for state in COLOURS} | {"idle": "idle listening"}
WIDTH, HEIGHT = 700, 380
_MOSTLY_IDLE = 0.9  # from this share of the charge on, idle listening would hide all other states
_LEGEND_LINE = 17


def plot(energy: Energy, states: Sequence[str] | None = None, width: int = WIDTH, height: int = HEIGHT) -> Drawing:
    """Draw the charge (mC) of each node as a stacked bar of its radio states, the node with the highest bar first.

    ``states``: the radio states to draw. None means all states, but idle listening only if it takes less than nine
    tenths of the charge. A note states the share of each omitted state. Raises ParameterError for an unknown state.
    """
    drawn_states = _choose_states(energy, states)
    charge_mC = energy.charge_mC
    by_charge = charge_mC[drawn_states].sum(axis=1).sort_values(ascending=False, kind="stable").index
    return _draw_bars(charge_mC.loc[by_charge, drawn_states], _describe_hidden(energy, drawn_states), width, height)


def lifetime_map(
    energy: Energy, states: Sequence[str] | None = None, width: int = WIDTH, dark: bool = False
) -> Drawing:
    """Draw a map with a disc for each node; its area is proportional to the charge that the node used.

    ``states``: the radio states whose charge counts. None means all states, but idle listening only if it takes less
    than nine tenths of the charge. ``dark``: draw for a dark background.
    """
    drawn_states = _choose_states(energy, states)
    hidden_titles = [TITLES[state] for state in COLOURS if state not in drawn_states]
    metric = "charge in mC" + (f", without {', '.join(hidden_titles)}," if hidden_titles else "")
    loads = energy.charge_mC[drawn_states].sum(axis=1).rename(metric).reset_index()
    loads[f"{metric}_low"] = loads[f"{metric}_high"] = loads[metric]
    return load_map(loads, energy.run.scenario.topology, metric, width, dark)


def _choose_states(energy: Energy, states: Sequence[str] | None) -> list[str]:
    """Return the radio states to draw, from the bottom of a bar upwards.

    ``states``: the states that the caller wants; None: all, but idle listening only if it takes less than nine tenths
    of the charge. Raises ParameterError for an unknown state.
    """
    if states is None:
        return [state for state in COLOURS if state != "idle" or _share(energy, state) < _MOSTLY_IDLE]
    for state in states:
        if state not in COLOURS:
            raise ParameterError(
                f"the argument `states` has {state!r}{meant(state, list(COLOURS))}; "
                f"each state must be one of {', '.join(COLOURS)}"
            )
    return [state for state in COLOURS if state in states]


def _share(energy: Energy, state: str) -> float:
    total_mC = float(energy.charge_mC.to_numpy().sum())
    return float(energy.charge_mC[state].sum()) / total_mC if total_mC else 0.0


def _describe_hidden(energy: Energy, drawn_states: list[str]) -> str:
    hidden_texts = [
        f"{TITLES[state]}, {_share(energy, state):.2%} of the charge" for state in COLOURS if state not in drawn_states
    ]
    return f"not drawn: {'; '.join(hidden_texts)}" if hidden_texts else ""


def _draw_bars(charge_mC: pd.DataFrame, note: str, width: int, height: int) -> Drawing:
    drawing = Drawing(width, height, title="Charge of each node's radio by state")
    top = _draw_legend(drawing, list(charge_mC.columns)) + 10
    bottom, right = height - (62.0 if note else 46.0), width - 18.0
    axis_ticks = ticks(0.0, float(charge_mC.sum(axis=1).max()) or 1.0, 6)
    tick_labels = labels(axis_ticks)
    plot_left = 28 + SIZE + max(text_width(label, SIZE) for label in tick_labels)
    for axis_tick, label in zip(axis_ticks, tick_labels, strict=True):
        y = bottom - (bottom - top) * axis_tick / axis_ticks[-1]
        drawing.segment(plot_left, y, right, y, colour=palette.GRID, width=1)
        drawing.text(plot_left - 6, y + 0.36 * SIZE, label, size=SIZE, anchor="end")
    slot = (right - plot_left) / len(charge_mC)
    label_step = math.ceil(max(text_width(str(node), SIZE) for node in charge_mC.index) * 1.4 / slot)
    for bar_index, (node, charges) in enumerate(charge_mC.iterrows()):
        x0, x1 = plot_left + (bar_index + 0.1) * slot, plot_left + (bar_index + 0.9) * slot
        y = bottom
        for state, charge in charges.items():
            rise = (bottom - top) * charge / axis_ticks[-1]
            corners = [(x0, y), (x1, y), (x1, y - rise), (x0, y - rise)]
            drawing.polygon(corners, fill=COLOURS[state], tooltip=f"node {node}, {TITLES[state]}: {charge:,.4g} mC")
            y -= rise
        if bar_index % label_step == 0:
            drawing.text((x0 + x1) / 2, bottom + 6 + SIZE, str(node), size=SIZE, anchor="middle")
    drawing.segment(plot_left, bottom, right, bottom, colour=palette.OUTLINE, width=1)
    drawing.text((plot_left + right) / 2, bottom + 34, "node", size=SIZE + 1, anchor="middle")
    drawing.text(8 + SIZE, (top + bottom) / 2, "charge (mC)", size=SIZE + 1, anchor="middle", turn=90)
    drawing.text(14, height - 9, note, size=SIZE - 1, colour=palette.FAINT_TEXT)
    return drawing


def _draw_legend(drawing: Drawing, states: list[str]) -> float:
    """Draw a legend with the colours and names of radio states; return its lower end in px."""
    x, y = 14.0, 20.0
    for state in states:
        entry_width = 18 + text_width(TITLES[state], SIZE) * 1.06 + 16
        if x > 14 and x + entry_width > drawing.width - 10:
            x, y = 14.0, y + _LEGEND_LINE
        drawing.polygon([(x, y - 9), (x + 12, y - 9), (x + 12, y + 1), (x, y + 1)], fill=COLOURS[state])
        drawing.text(x + 18, y, TITLES[state], size=SIZE)
        x += entry_width
    return y
