"""What the player shows of diffusion: interests, gradients by what they carry, reinforced paths, filters.

layers(recorded)    gradients and in reserve, reinforced path, interests; caches, black list, filters to inspect
"""

from __future__ import annotations

import numpy as np

from workbench.columns import cumcount, first_rows, row_keys, unique_inverse
from workbench.protocols.diffusion.views.known import REINFORCED, RESERVE, cached, gradients
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
    """What diffusion's nodes knew."""
    columns, duration_us = recorded.columns, recorded.duration_us
    shown = gradients(columns, duration_us)
    look = shown.pop("look")
    path = select(shown, look == REINFORCED)
    weighed = by_use(shown | {"look": look}, columns)
    is_reserve = weighed.pop("look") == RESERVE
    heads, reserve = select(weighed, ~is_reserve), select(weighed, is_reserve)
    reserve, notes = thinned(reserve, MOST, "gradients in reserve")
    interests, attributes = cached(columns, duration_us)
    found = [
        Layer("interests", interests, (HEARD,), "node", section=INTERESTS, words=attributes),
        Layer("gradients", heads, (GRADIENT,), "arrow", section=Section("Gradients", _CARRIES)),
        Layer(
            "in reserve",
            reserve,
            (IN_RESERVE,),
            "arrow",
            section=Section("Gradients in reserve", _CARRIES),
            is_detail=True,
            level=29,
            notes=notes,
        ),
        Layer("reinforced path", path, (PATH,), "line", section=Section("Reinforced", _TO)),
        Layer("data gradients", data_gradients(columns, duration_us), section=DATA_GRADIENTS),
        Layer("black list", black_lists(columns, duration_us), section=BLACK_LIST),
        filters(recorded),
    ]
    return [one for one in found if len(one)]


def by_use(some: Table, columns: Columns) -> Table:
    """Gradients, cut where the class of use of their link changes; ``weight`` is the class.

    Class 0: no data frame went over the link so far; then 1, 2, 3, ... from the 1st, 4th, 16th, ... on.
    """
    sent = columns.where(event="sent", message="data")
    sent = sent[columns["peer"][sent] >= 0]
    rows = len(some["from_us"])
    ends = [np.concatenate([some[end], columns[end][sent]]) for end in ("node", "peer")]
    links, link = unique_inverse(row_keys(*ends))
    link, used = link[:rows], link[rows:]
    # The frames with which a class begins, and before them class 0.
    hit = np.flatnonzero(np.isin(cumcount(used), WEIGHT_BASE ** np.arange(WEIGHT_CLASSES) - 1))
    firsts = used[first_rows(used)]
    keys = np.concatenate([firsts, used[hit]])
    begins = np.concatenate([np.full(len(firsts), -FOREVER_US), columns["time_us"][sent[hit]]])
    is_used = np.zeros(len(links), bool)
    is_used[firsts] = True
    weight = np.zeros(rows, np.float32)
    mine = np.flatnonzero(is_used[link])
    if not len(mine):
        return some | {"weight": weight}
    intervals = (keys, begins, until_next(keys, begins, FOREVER_US))
    found = overlaps(link[mine], some["from_us"][mine], some["until_us"][mine], *intervals)
    row = np.concatenate([np.flatnonzero(~is_used[link]), mine[found.row]])
    unused = rows - len(mine)
    cut = select(some, row)
    cut["from_us"][unused:], cut["until_us"][unused:] = found.from_us, found.until_us
    return table(**cut, weight=np.concatenate([weight[:unused], cumcount(keys)[found.other]]))


def data_gradients(columns: Columns, duration_us: int) -> Table:
    """From whom new data of a source came first, until it came from another one."""
    rows = columns.where(event="data_gradient_set")
    found = {name: columns[name][rows] for name in ("node", "peer", "origin")}
    until = until_next(row_keys(found["node"], found["origin"]), columns["time_us"][rows], duration_us)
    return within(table(**found, from_us=columns["time_us"][rows], until_us=until), duration_us)


def black_lists(columns: Columns, duration_us: int) -> Table:
    """Neighbors on black lists."""
    rows = columns.where(event="blacklisted")
    node, peer, time_us = (columns[name][rows] for name in ("node", "peer", "time_us"))
    which, until = opened(row_keys(node, peer), time_us, columns["value"][rows] != 0)
    return within(
        table(node=node[which], peer=peer[which], from_us=time_us[which], until_us=until),
        duration_us,
    )


def filters(recorded: Recorded) -> Layer:
    """What the filters of nodes did, each time with how often they had done so (``value``)."""
    columns = recorded.columns
    rows = columns.where(event="filtered")
    names = {(one.key, one.messages): one.name for one in recorded.run.scenario.protocol.filters}
    told = [columns.coded("message", rows), columns.coded("detail", rows)]
    keys, key = unique_inverse(columns["value"][rows])
    (message, messages), (did, words) = told
    text = (key * len(messages) + message) * len(words) + did
    node, time_us = columns["node"][rows], columns["time_us"][rows]
    doing = row_keys(node, text)
    times = cumcount(doing) + 1
    # Of many the first, and then every n-th.
    kept = (times - 1) % max(1, -(-len(rows) // MOST)) == 0
    until = until_next(doing[kept], time_us[kept], recorded.duration_us)
    found = table(node=node[kept], from_us=time_us[kept], until_us=until, value=times[kept], text=text[kept])
    called = [names.get((one, name), one) for one in keys.tolist() for name in messages]
    said = [f"{one}: {word}" for one in called for word in words]
    return Layer("filters", within(found, recorded.duration_us), section=FILTERS, words=said)
