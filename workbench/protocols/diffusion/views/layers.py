"""Layers of the animated view of a run of TinyDiffusion: interests, gradients, reinforced paths, black lists, filters.

layers(recorded)    all layers; the layers of data gradients, black lists and filters appear in the inspector only
"""

from __future__ import annotations

import numpy as np

from workbench.columns import cumcount, first_rows, row_keys, unique_inverse
from workbench.protocols.diffusion.views.known import REINFORCED, RESERVE, cached_interests, gradients
from workbench.sim.rows import Columns
from workbench.views import palette
from workbench.views.layers import Layer, Look, Recorded, Section, Table, select, table
from workbench.views.spans import FOREVER_US, opened, overlaps, thinned, until_next, within

# A link's gradient gets heavier with the 1st, 4th, 16th, ... data frame over it.
WEIGHT_BASE = 4
WEIGHT_CLASSES = 6
MOST = 100_000

HEARD = Look("heard the interest", palette.HEARD, rank=5)
GRADIENT = Look("gradient (thicker: more data)", palette.GRADIENT, 0.09, 1.0, alpha=0.95)
IN_RESERVE = Look("gradient in reserve", palette.GRADIENT, 0.09, 1.0, alpha=0.16)
PATH = Look("reinforced path", palette.REINFORCED, 0.7, 5.0, alpha=0.5)

_TO = (("to", "peer", "node"), ("for sink", "origin", "node"))
_CARRIES = (*_TO, ("data", "weight", "use"), ("until", "value", "until"))
INTERESTS = Section(
    "Interest cache", (("sink", "origin", "node"), ("interest", "text", "word"), ("round", "value", "number"))
)
DATA_GRADIENTS = Section("Data gradients", (("source", "origin", "node"), ("first from", "peer", "node")))
BLACK_LIST = Section("Black list", (("neighbor", "peer", "node"),))
FILTERS = Section(
    "Filters",
    (("filter", "text", "word"), ("times", "value", "number"), ("last", "from_us", "time")),
)


def layers(recorded: Recorded) -> list[Layer]:
    """Return the layers of the animated view for a recorded run, without those that are empty."""
    columns, duration_us = recorded.columns, recorded.duration_us
    gradient_table = gradients(columns, duration_us)
    looks = gradient_table.pop("look")
    reinforced_table = select(gradient_table, looks == REINFORCED)
    weighted_table = split_by_use(gradient_table | {"look": looks}, columns)
    is_reserve = weighted_table.pop("look") == RESERVE
    head_table, reserve_table = select(weighted_table, ~is_reserve), select(weighted_table, is_reserve)
    reserve_table, notes = thinned(reserve_table, MOST, "gradients in reserve")
    interest_table, attributes = cached_interests(columns, duration_us)
    all_layers = [
        Layer("interests", interest_table, (HEARD,), "node", section=INTERESTS, words=attributes),
        Layer("gradients", head_table, (GRADIENT,), "arrow", section=Section("Gradients", _CARRIES)),
        Layer(
            "in reserve",
            reserve_table,
            (IN_RESERVE,),
            "arrow",
            section=Section("Gradients in reserve", _CARRIES),
            is_detail=True,
            level=29,
            notes=notes,
        ),
        Layer("reinforced path", reinforced_table, (PATH,), "line", section=Section("Reinforced", _TO)),
        Layer("data gradients", data_gradients(columns, duration_us), section=DATA_GRADIENTS),
        Layer("black list", black_lists(columns, duration_us), section=BLACK_LIST),
        filters(recorded),
    ]
    return [layer for layer in all_layers if len(layer)]


def split_by_use(gradient_table: Table, columns: Columns) -> Table:
    """Return the table of gradients with a column ``weight``; an interval is split where its weight changes.

    The weight shows how many data frames the node has sent to the gradient's neighbor so far: 0 before the first frame;
    1, 2, 3, ... beginning with the 1st, 4th, 16th, ... frame.
    """
    sent_rows = columns.where(event="sent", message="data")
    sent_rows = sent_rows[columns["peer"][sent_rows] >= 0]
    gradient_count = len(gradient_table["from_us"])
    ends = [np.concatenate([gradient_table[end], columns[end][sent_rows]]) for end in ("node", "peer")]
    links, gradient_links = unique_inverse(row_keys(*ends))
    gradient_links, used_link = gradient_links[:gradient_count], gradient_links[gradient_count:]
    # The frames with which a weight begins; weight 0 precedes them.
    first_frames = np.flatnonzero(np.isin(cumcount(used_link), WEIGHT_BASE ** np.arange(WEIGHT_CLASSES) - 1))
    used_links = used_link[first_rows(used_link)]
    keys = np.concatenate([used_links, used_link[first_frames]])
    begin_us = np.concatenate([np.full(len(used_links), -FOREVER_US), columns["time_us"][sent_rows[first_frames]]])
    is_used = np.zeros(len(links), bool)
    is_used[used_links] = True
    weight = np.zeros(gradient_count, np.float32)
    used_rows = np.flatnonzero(is_used[gradient_links])
    if not len(used_rows):
        return gradient_table | {"weight": weight}
    weight_intervals = (keys, begin_us, until_next(keys, begin_us, FOREVER_US))
    intervals = overlaps(
        gradient_links[used_rows],
        gradient_table["from_us"][used_rows],
        gradient_table["until_us"][used_rows],
        *weight_intervals,
    )
    row = np.concatenate([np.flatnonzero(~is_used[gradient_links]), used_rows[intervals.row]])
    unused_count = gradient_count - len(used_rows)
    split_table = select(gradient_table, row)
    split_table["from_us"][unused_count:], split_table["until_us"][unused_count:] = (
        intervals.from_us,
        intervals.until_us,
    )
    return table(**split_table, weight=np.concatenate([weight[:unused_count], cumcount(keys)[intervals.other]]))


def data_gradients(columns: Columns, duration_us: int) -> Table:
    """Return a table of data gradients, with a row for each interval in which a data gradient is unchanged.

    During the interval, ``peer`` was the neighbor that first brought ``node`` the newest data of the source ``origin``.
    """
    rows = columns.where(event="data_gradient_set")
    table_columns = {name: columns[name][rows] for name in ("node", "peer", "origin")}
    until_us = until_next(
        row_keys(table_columns["node"], table_columns["origin"]), columns["time_us"][rows], duration_us
    )
    return within(table(**table_columns, from_us=columns["time_us"][rows], until_us=until_us), duration_us)


def black_lists(columns: Columns, duration_us: int) -> Table:
    """Return a table of the intervals in which a neighbor (``peer``) is on the black list of ``node``."""
    rows = columns.where(event="blacklisted")
    node, peer, time_us = (columns[name][rows] for name in ("node", "peer", "time_us"))
    first_event_rows, until_us = opened(row_keys(node, peer), time_us, columns["value"][rows] != 0)
    return within(
        table(
            node=node[first_event_rows],
            peer=peer[first_event_rows],
            from_us=time_us[first_event_rows],
            until_us=until_us,
        ),
        duration_us,
    )


def filters(recorded: Recorded) -> Layer:
    """Return the layer of the filters' decisions to replace or drop a message.

    The column ``value`` counts, for each filter on each node, the decisions of the same kind so far.
    """
    columns = recorded.columns
    rows = columns.where(event="filtered")
    names = {(filter_.key, filter_.messages): filter_.name for filter_ in recorded.run.scenario.protocol.filters}
    (message, messages), (decision, decision_texts) = columns.coded("message", rows), columns.coded("detail", rows)
    keys, key = unique_inverse(columns["value"][rows])
    text = (key * len(messages) + message) * len(decision_texts) + decision
    node, time_us = columns["node"][rows], columns["time_us"][rows]
    kinds = row_keys(node, text)
    counts = cumcount(kinds) + 1
    # If there are too many decisions, show the first one of each kind and then every n-th.
    is_shown = (counts - 1) % max(1, -(-len(rows) // MOST)) == 0
    until_us = until_next(kinds[is_shown], time_us[is_shown], recorded.duration_us)
    decisions = table(
        node=node[is_shown], from_us=time_us[is_shown], until_us=until_us, value=counts[is_shown], text=text[is_shown]
    )
    filter_names = [names.get((key, name), key) for key in keys.tolist() for name in messages]
    texts = [f"{name}: {decision}" for name in filter_names for decision in decision_texts]
    return Layer("filters", within(decisions, recorded.duration_us), section=FILTERS, words=texts)
