"""The bits of one node's Bloom filter, and the topics that set them.

    filter_bits(run, node, time_s=None)       an `Occupancy`: the set bits, and the topics that set each of them
    filter_drawing(run, node, time_s=None)    a drawing of the bits as squares, coloured by topics

Theory of operation
    The filter of a node is the union of its own interests and the interests behind all its links. A trace contains the
    number of set bits of this filter, not their positions. A scenario determines its run completely. So the reference
    engine runs it again up to the requested time, and the filter is read from the node. Topics are hashed, so a bit
    does not name its topics. Therefore the filter of each open subscription in the network is compared with the node's
    filter.

Limits
    A live run on motes cannot be replayed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from workbench.analysis.frames import LIVE
from workbench.errors import ScenarioError
from workbench.protocols.dps.views.looks import percent
from workbench.protocols.dps.views.mesh import mesh_of
from workbench.sim import engine
from workbench.sim.trace import Recorder
from workbench.views import caption, palette
from workbench.views.carried import carries_record
from workbench.views.drawing import Drawing
from workbench.views.figure import time_us_of
from workbench.views.legend import MARGIN, SMALL

WIDTH = 760
LARGEST_SQUARE = 12.0  # px
MOST_LISTED = 12  # subscriptions with a line in the legend
SHARED, UNKNOWN, EMPTY = palette.TEXT, palette.LOST, palette.GRID
_COLOURS = tuple(colour for colour in palette.SERIES if colour not in (SHARED, UNKNOWN))


class Topics(NamedTuple):
    """Topics of open subscriptions: their text, the nodes that subscribe to them, and the filter bits that they set."""

    text: str
    nodes: tuple[int, ...]
    bits: frozenset[int]

    def __str__(self) -> str:
        return f"{self.text}, node{'s' if len(self.nodes) > 1 else ''} {', '.join(map(str, self.nodes))}"


class Occupancy(NamedTuple):
    """The filter of a node at a time.

    length  number of bits of the filter
    bits    positions of the set bits
    topics  topics of open subscriptions whose bits are all set in the filter, the node's own subscriptions first
    """

    node: int
    time_us: int
    length: int
    bits: tuple[int, ...]
    topics: tuple[Topics, ...]

    def setters(self, bit: int) -> list[Topics]:
        """Return the topics that may have set the bit at position ``bit``; [] if only ended subscriptions set it."""
        return [topics for topics in self.topics if bit in topics.bits]


def filter_bits(run: Any, node: int, time_s: float | None = None) -> Occupancy:
    """Return the bits of a node's filter at a time (None: at the run's end), and the topics that set them.

    Raises ParameterError for a run of another protocol or a time outside of the run, and ScenarioError for an unknown
    node and for a run that cannot be replayed.
    """
    mesh = mesh_of(run)
    time_us = time_us_of(run, run.scenario.duration_s if time_s is None else time_s, "filter_bits")
    if node not in run.scenario.topology:
        raise ScenarioError(f"node is {node!r:.60}, and the run has no such node; give a node of its topology")
    if run.engine == LIVE:
        raise ScenarioError("a live run on motes cannot be replayed; run the scenario in the simulator")
    with engine.without_collector():
        kernel = engine.begin(run.scenario, Recorder())
        kernel.play_until(min(time_us, engine.duration_us(run.scenario) - 1))
    kernel_nodes: dict[int, Any] = {kernel_node.address: kernel_node for kernel_node in kernel.nodes}
    interests, _ = kernel_nodes[node].links.interests.combine(None)
    set_positions = tuple(interests.positions())
    recorded_sum = mesh.sums_at(time_us).get(node)
    if len(set_positions) != (0 if recorded_sum is None else recorded_sum.bits):
        raise ScenarioError("a replay of the scenario differs from this run; run the scenario again to see its filters")
    subscribers_of_topics: dict[str, tuple[list[int], frozenset[int]]] = {}
    for address in sorted(kernel_nodes, key=lambda address: (address != node, address)):
        for subscription in kernel_nodes[address].subscriptions.open:
            if subscription.request.is_announced:
                topics_text = " and ".join(subscription.request.topics)
                topic_positions = frozenset(subscription.request.filter.positions())
                subscribers_of_topics.setdefault(topics_text, ([], topic_positions))[0].append(address)
    topics = [
        Topics(topics_text, tuple(addresses), topic_positions)
        for topics_text, (addresses, topic_positions) in subscribers_of_topics.items()
    ]
    return Occupancy(
        node,
        time_us,
        interests.length,
        set_positions,
        tuple(open_topics for open_topics in topics if open_topics.bits <= set(set_positions)),
    )


@carries_record
def filter_drawing(run: Any, node: int, time_s: float | None = None, width: int = WIDTH) -> Drawing:
    """Draw a node's Bloom filter: a square for each bit, in the colour of the topics that set it.

    Bits that several topics set are dark; bits of subscriptions that have ended are orange. ``time_s``: the time
    (None: the run's end). ``width``: width of the drawing in px. Raises the errors of `filter_bits`.
    """
    occupancy = filter_bits(run, node, time_s)
    column_count, side_px = _choose_grid(occupancy.length, width - 2 * MARGIN)
    row_count = -(-occupancy.length // column_count)
    share_text = percent(len(occupancy.bits) / occupancy.length)
    title = (
        f"Filter of node {node} at {occupancy.time_us / 1e6:g} s: {len(occupancy.bits)} of {occupancy.length:,} bits"
    )
    listed_topics = occupancy.topics[:MOST_LISTED]
    top_px = 58
    drawing = Drawing(width, top_px + row_count * side_px + 30 + 18 * (len(listed_topics) + 3), title=title)
    drawing.text(MARGIN, 24, title, size=14, bold=True)
    drawing.text(
        MARGIN, 42, f"{caption.title(run)}; {share_text} of the bits are set", size=SMALL, colour=palette.FAINT_TEXT
    )
    colours = {topics: _COLOURS[topics_index % len(_COLOURS)] for topics_index, topics in enumerate(occupancy.topics)}
    # The clear squares are one rectangle with lines across: thousands of squares would make a large file.
    drawing.rectangle(MARGIN, top_px, column_count * side_px, row_count * side_px, fill=EMPTY)
    gap_px = min(1.0, side_px / 6)
    horizontal_lines = [
        (MARGIN, top_px + (grid_row + 1) * side_px, MARGIN + column_count * side_px, top_px + (grid_row + 1) * side_px)
        for grid_row in range(row_count)
    ]
    vertical_lines = [
        (MARGIN + (x + 1) * side_px, top_px, MARGIN + (x + 1) * side_px, top_px + row_count * side_px)
        for x in range(column_count)
    ]
    grid_lines = np.array([*horizontal_lines, *vertical_lines], dtype=float) - gap_px / 2
    drawing.segments(grid_lines, colour=palette.BACKGROUND, width=gap_px)
    for bit in occupancy.bits:
        setters = occupancy.setters(bit)
        fill = UNKNOWN if not setters else colours[setters[0]] if len(setters) == 1 else SHARED
        setters_text = "; ".join(map(str, setters)) or "a subscription that has ended"
        x, y = MARGIN + bit % column_count * side_px, top_px + bit // column_count * side_px
        corners = [
            (x, y),
            (x + side_px - gap_px, y),
            (x + side_px - gap_px, y + side_px - gap_px),
            (x, y + side_px - gap_px),
        ]
        drawing.polygon(corners, fill=fill, tooltip=f"bit {bit}: {setters_text}")
    y = top_px + row_count * side_px + 26
    legend_entries = [(colours[topics], f"{topics} ({_bits_text(len(topics.bits))})") for topics in listed_topics]
    if len(listed_topics) < len(occupancy.topics):
        legend_entries.append((EMPTY, f"and {len(occupancy.topics) - len(listed_topics)} more topics"))
    setter_counts = [len(occupancy.setters(bit)) for bit in occupancy.bits]
    if any(setter_count > 1 for setter_count in setter_counts):
        legend_entries.append(
            (SHARED, f"set by different topics ({_bits_text(sum(setter_count > 1 for setter_count in setter_counts))})")
        )
    if 0 in setter_counts:
        legend_entries.append((UNKNOWN, f"of subscriptions that have ended ({_bits_text(setter_counts.count(0))})"))
    for colour, legend_text in legend_entries:
        drawing.rectangle(MARGIN, y - 9, 10, 10, fill=colour)
        drawing.text(MARGIN + 18, y, legend_text, size=SMALL)
        y += 18
    drawing.height = y
    return drawing


def _bits_text(count: int) -> str:
    return f"{count} bit{'' if count == 1 else 's'}"


def _choose_grid(length: int, width_px: float) -> tuple[int, float]:
    """Return (squares in a row, side of a square in px) for a grid of ``length`` squares, wider than high."""
    columns = 1
    while columns * columns < 2 * length and width_px / (2 * columns) >= 1:
        columns *= 2
    return columns, min(LARGEST_SQUARE, width_px / columns)
