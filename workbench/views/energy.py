"""Charts of the charge that a run's radios consume: stacked bars of the radio states, and a map of the nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.errors import ParameterError
from workbench.suggestion import meant
from workbench.views import caption, palette
from workbench.views.charts.description import BARS, Series
from workbench.views.charts.static import Chart, category_chart, resizable
from workbench.views.loads import load_map

if TYPE_CHECKING:
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


@resizable
def plot(energy: Energy, states: Sequence[str] | None = None, width: int = WIDTH, height: int = HEIGHT) -> Chart:
    """Draw the charge (mC) of each node as a stacked bar of its radio states, the node with the highest bar first.

    ``states``: the radio states to draw. None means all states; if idle listening takes nine tenths of the charge or
    more, it is left out. A note states the share of each omitted state. Raises ParameterError for an unknown state.
    """
    drawn_states = _choose_states(energy, states)
    charge_mC = energy.charge_mC
    by_charge = charge_mC[drawn_states].sum(axis=1).sort_values(ascending=False, kind="stable").index
    stacked_charge_mC, nodes = charge_mC.loc[by_charge, drawn_states], [*map(str, by_charge)]
    tops = stacked_charge_mC.cumsum(axis=1)
    series = [
        Series(
            TITLES[state],
            range(len(nodes)),
            tops[state].tolist(),
            tooltips=[
                f"node {node}, {TITLES[state]}: {charge:,.4g} mC" for node, charge in stacked_charge_mC[state].items()
            ],
            colour=COLOURS[state],
            shape=BARS,
            base=(tops[state] - stacked_charge_mC[state]).tolist(),
            ids={"nodes": [[int(node)] for node in by_charge]},
        )
        for state in drawn_states
    ]
    chart = category_chart(
        nodes,
        series,
        x_label="node",
        y_label="charge (mC)",
        note=_describe_hidden(energy, drawn_states),
        width=width,
        height=height,
    )
    chart.title, chart.subject = "Charge of each node's radio by state", caption.subject(energy.run)
    return chart


def lifetime_map(energy: Energy, states: Sequence[str] | None = None, width: int = WIDTH, dark: bool = False) -> Chart:
    """Draw a map with a disc for each node; its area is proportional to the charge that the node used.

    ``states``: the radio states whose charge counts. None means all states; if idle listening takes nine tenths of the
    charge or more, it does not count. ``dark``: draw for a dark background.
    """
    drawn_states = _choose_states(energy, states)
    hidden_titles = [TITLES[state] for state in COLOURS if state not in drawn_states]
    metric = "charge in mC" + (f", without {', '.join(hidden_titles)}," if hidden_titles else "")
    loads = energy.charge_mC[drawn_states].sum(axis=1).rename(metric).reset_index()
    loads[f"{metric}_low"] = loads[f"{metric}_high"] = loads[metric]
    return load_map(loads, energy.run.scenario.topology, metric, width, dark, caption.subject(energy.run))


def _choose_states(energy: Energy, states: Sequence[str] | None) -> list[str]:
    """Return the radio states to draw, from the bottom of a bar upwards.

    ``states``: the states that the caller wants. None means all states; if idle listening takes nine tenths of the
    charge or more, it is left out. Raises ParameterError for an unknown state.
    """
    if states is None:
        return [state for state in COLOURS if state != "idle" or _compute_share(energy, state) < _MOSTLY_IDLE]
    for state in states:
        if state not in COLOURS:
            raise ParameterError(
                f"the argument `states` has {state!r}{meant(state, list(COLOURS))}; "
                f"each state must be one of {', '.join(COLOURS)}"
            )
    return [state for state in COLOURS if state in states]


def _compute_share(energy: Energy, state: str) -> float:
    total_mC = float(energy.charge_mC.to_numpy().sum())
    return float(energy.charge_mC[state].sum()) / total_mC if total_mC else 0.0


def _describe_hidden(energy: Energy, drawn_states: list[str]) -> str:
    hidden_texts = [
        f"{TITLES[state]}, {_compute_share(energy, state):.2%} of the charge"
        for state in COLOURS
        if state not in drawn_states
    ]
    return f"not drawn: {'; '.join(hidden_texts)}" if hidden_texts else ""
