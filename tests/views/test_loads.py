"""Views of many runs: they draw the values of frames of any source."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import workbench as wb
from workbench.views.drawing import Circle, Polygon, Polyline, Text

GRID = wb.topology.grid(2, 3)


def loads():
    """Return the loads of two runs; node 4 is busiest, node 5 has no load, and node 3 has a load in one run only."""
    rows = [("a", node, count) for node, count in enumerate([4, 1, 1, 2, 16])] + [("b", 0, 8), ("b", 4, 20)]
    return pd.DataFrame(rows, columns=["scenario", "node", "sent"])


def radii(drawing):
    """Return {name of a node: (radius of its disc, radius of the ring around it)}."""
    circles = [item for item in drawing.items if isinstance(item, Circle)]
    return {
        disc.tooltip.partition(":")[0]: (disc.radius, ring.radius) for disc, ring in pairwise(circles) if disc.tooltip
    }


def words(drawing):
    return " | ".join(item.text for item in drawing.items if isinstance(item, Text))


def test_areas_are_mean_loads_and_runs_without_a_node_count_as_0():
    drawing = wb.views.load_map(loads(), GRID)
    radii_of_nodes = radii(drawing)
    assert set(radii_of_nodes) == {f"node {node}" for node in range(6)}
    areas = {name: disc**2 for name, (disc, _) in radii_of_nodes.items()}
    assert areas["node 4"] / areas["node 0"] == pytest.approx(18 / 6)
    assert areas["node 4"] / areas["node 3"] == pytest.approx(18 / 1)
    assert radii_of_nodes["node 4"][1] ** 2 / areas["node 4"] == pytest.approx(np.quantile([16, 20], 0.95) / 18)
    assert radii_of_nodes["node 5"] == (1.2, 1.2)
    assert "mean of 2 runs" in words(drawing)
    assert "busiest: node 4 with 18 (16.2 to 19.8); mean of all nodes 4.333" in words(drawing)


def test_statistics_over_runs_give_the_same_picture_and_dark_differs():
    from workbench.pipelines.trace.statistics import band

    over_runs = band(loads(), loads(), ("node",), ("sent",))
    single, aggregated = (wb.views.load_map(frame, GRID) for frame in (loads(), over_runs))
    assert single.to_svg() == aggregated.to_svg()
    dark = wb.views.load_map(loads(), GRID, dark=True)
    assert dark.is_dark
    assert dark.to_png() != single.to_png()


@pytest.mark.parametrize(
    ("frame", "column", "sentence"),
    [
        (
            loads().rename(columns={"node": "place"}),
            "sent",
            "load_map: the table has no column 'node'; its columns are",
        ),
        (loads(), "snet", "no column 'snet' \\(did you mean sent"),
        (loads().assign(node=7), "sent", "the loads include node 7, which is not in the topology"),
    ],
)
def test_invalid_frames_are_refused_with_a_sentence(frame, column, sentence):
    with pytest.raises(wb.ParameterError, match=sentence):
        wb.views.load_map(frame, GRID, column)


def test_a_map_without_loads_can_be_drawn():
    assert "mean of all nodes 0" in words(wb.views.load_map(loads().assign(sent=0), GRID))


def test_the_latency_chart_has_a_line_and_a_band_for_each_name():
    rows = [(run, percent, percent * factor) for run, factor in (("a", 1.0), ("b", 3.0)) for percent in range(1, 101)]
    frame = pd.DataFrame(rows, columns=["scenario", "percent", "latency_ms"])
    drawing = wb.views.latency_chart({"calm": frame, "busy": frame.assign(latency_ms=2 * frame["latency_ms"])})
    assert sum(isinstance(item, Polyline) and len(item.points) == 100 for item in drawing.items) == 2
    assert sum(isinstance(item, Polygon) and len(item.points) == 200 for item in drawing.items) == 2
    assert "calm" in words(drawing)
    assert "mean of 2 runs; band: from the 5th to the 95th percentile of the runs" in words(drawing)
