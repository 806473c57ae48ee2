"""The fields of each kind of workload items, with units, ranges of sliders, and the reasons that tooltips show.

The table `REASONS` lists the fields of each kind in the order in which a form shows them. Fields that the table lacks
follow, so an item of any kind has a form. The unit of a field follows from the end of its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, NamedTuple

from workbench.sim.workload import KINDS
from workbench.widgets.workload.scenario_context import ScenarioContext

_UNITS = {"_m_s": "m/s", "_rad": "rad", "_s": "s", "_m": "m", "_pdr": "share"}
_END_OF_RUN = "; empty: to the end of the run"
_AT = 'numbers, as in "0, 5" or "3-7", or "all"'

# {kind: {field: reason}}; a form shows fields in this order.
REASONS: dict[str, dict[str, str]] = {
    "subscribe": {
        "start_s": "when it begins",
        "stop_s": "when it ends; empty: never",
        "expires_s": "time from its begin until it expires; empty: never",
        "match_all": "it may have no constraints; then it matches all publications",
    },
    "publish": {
        "start_s": "when it is first published",
        "every_s": "interval between publications; empty: once",
        "stop_s": "when it ends; empty: at the end of the run",
        "payload": "bytes that it carries, two digits each; empty: no bytes",
        "stagger": "each node publishes at a time of its own within every_s",
    },
    "reinforce": {
        "start_s": "when the sinks reinforce the paths to the sources that the constraints select",
        "every_s": "interval between reinforcements; empty: once",
        "stop_s": "when it ends; empty: at the end of the run",
    },
    "outage": {"start_s": "when the nodes fail; they keep their memory", "stop_s": "when they are back; empty: never"},
    "crash": {
        "start_s": "when the nodes crash; they lose their memory",
        "stop_s": "when they start again; empty: never",
    },
    "join": {"start_s": "when the nodes join the network; before, they have never been up"},
    "leave": {"start_s": "when the nodes leave the network, without notice and for good"},
    "move": {
        "radius_m": "moving nodes have lossless links up to this distance; empty: the links of the topology's rule",
        "step_s": "interval at which links follow the positions",
    },
    "partition": {
        "at": "the nodes on one side; no links lead to all others",
        "start_s": "when the network splits",
        "stop_s": "when the two parts merge again; empty: never",
    },
    "burst_loss": {
        "at": f"the nodes whose links lose frames: {_AT}",
        "good_s": "mean time that a link is good between two bursts",
        "bad_s": "mean duration of a burst of losses",
        "bad_pdr": "factor of the delivery ratio in a burst; 0: all frames are lost",
        "start_s": "when the losses begin",
        "stop_s": f"when they end{_END_OF_RUN}",
    },
    "jam": {
        "x_m": "position of the jammer",
        "y_m": "position of the jammer",
        "radius_m": "nodes up to this distance lose each frame that overlaps with the noise",
        "start_s": "when the jammer begins to send",
        "stop_s": f"when it ends{_END_OF_RUN}",
        "every_s": "period of the noise, together with for_s; empty: always",
        "for_s": "duration of the noise in each period, below every_s; empty: always",
    },
    "link_trace": {},
}
# Controls of their own: nodes, content, movement, measured ratios.
SPECIAL = ("at", "what", "along", "trace")
# Values of an empty field at its slider: these are as late as possible, others as small as possible.
_LATE = ("stop_s", "expires_s", "width_m", "height_m")


class ItemField(NamedTuple):
    """A field of a workload item, or a parameter of a mobility model, as its form shows it.

    default  value of a field that is left out; `dataclasses.MISSING` if the field cannot be left out
    unit     unit, such as "s", or ""
    reason   text of the tooltip
    """

    name: str
    default: Any
    unit: str = ""
    reason: str = ""

    @property
    def is_flag(self) -> bool:
        """True if the value is True or False."""
        return isinstance(self.default, bool)

    @property
    def is_bytes(self) -> bool:
        """True if the value is bytes, written as hexadecimal digits."""
        return isinstance(self.default, bytes)

    @property
    def has_default(self) -> bool:
        """True if the value can be left out."""
        return self.default is not MISSING

    @property
    def is_whole(self) -> bool:
        """True if the value is a whole number."""
        return self.name == "seed"

    @property
    def placeholder(self) -> str:
        """A word that is shown in an empty field and states what "empty" means, such as "never"; "" for no word."""
        meaning = self.reason.partition("empty: ")[2]
        if "end of the run" in meaning:
            return "end"
        return meaning if 0 < len(meaning) <= 6 else "auto" if self.default is None else ""

    @property
    def is_late_if_empty(self) -> bool:
        """True if the slider of an empty field is at its upper end, not at its lower end.

        For example, an empty ``stop_s`` means the end of the run.
        """
        return self.name in _LATE

    def usual_range(self, context: ScenarioContext) -> tuple[float, float]:
        """Return the range of the slider as (lowest value, highest value)."""
        x0, y0, x1, y1 = context.box_m
        for pattern, limits in _RANGES.items():
            if re.search(pattern, self.name):
                low, high = limits(context, (x0, y0, x1, y1))
                return (low, high) if high > low else (low, low + 1.0)
        return 0.0, 10.0


_Range = Callable[[ScenarioContext, tuple[float, float, float, float]], tuple[float, float]]
_RANGES: dict[str, _Range] = {
    r"^(x_m)$": lambda context, box: (box[0], box[2]),
    r"^(y_m)$": lambda context, box: (box[1], box[3]),
    r"pdr$|^memory$": lambda context, box: (0.0, 1.0),
    r"_rad$": lambda context, box: (0.0, 3.0),
    r"_m_s$": lambda context, box: (0.1, 10.0),
    r"^radius_m$": lambda context, box: (0.0, context.extent_m / 2),
    r"_m$": lambda context, box: (0.1, context.extent_m),
    r"^step_s$": lambda context, box: (0.1, 5.0),
    r"^(start|stop|expires)_s$": lambda context, box: (0.0, context.duration_s),
    r"_s$": lambda context, box: (0.1, max(1.0, context.duration_s / 3)),
    r"^seed$": lambda context, box: (0, 100),
}


def fields_of_kind(kind: str) -> tuple[ItemField, ...]:
    """Return the fields of a kind of items, in the order in which a form shows them.

    Fields that have controls of their own (`SPECIAL`) are left out.
    """
    reasons = REASONS.get(kind, {})
    all_fields = {field.name: field.default for field in fields(KINDS[kind]) if field.name not in SPECIAL}
    ordered_names = [*(name for name in reasons if name in all_fields), *(n for n in all_fields if n not in reasons)]
    return tuple(_make_field(name, all_fields[name], reasons.get(name, "")) for name in ordered_names)


def has_nodes(kind: str) -> bool:
    """Return whether items of a kind are at nodes that the user can choose."""
    return any(field.name == "at" for field in fields(KINDS[kind]))


def nodes_reason(kind: str) -> str:
    """Return the tooltip of the field for the nodes of a kind of items."""
    return REASONS.get(kind, {}).get("at", _AT)


def _make_field(name: str, default: Any, reason: str) -> ItemField:
    unit = next((unit for ending, unit in _UNITS.items() if name.endswith(ending)), "")
    return ItemField(name, default, "hex digits" if isinstance(default, bytes) else unit, reason)


# One row of the table in a model's docstring: name, default, unit if any, meaning
_DOCSTRING_ROW = re.compile(r"^ +(\w+) {1,}(\S+) {1,}(?:(s|m|m/s|rad) +)?(\S.*)$", re.MULTILINE)


def fields_of_model(model: type) -> tuple[ItemField, ...]:
    """Return the parameters of a mobility model as fields; the reasons are from the table in the model's docstring."""
    meanings = {row[1]: row[4] for row in _DOCSTRING_ROW.finditer(model.__doc__ or "")}
    return tuple(
        _make_field(field.name, None if field.default is MISSING else field.default, meanings.get(field.name, ""))
        for field in fields(model)
    )
