"""Savings at an equal parameter and at equal coverage, and charts of a sweep."""

from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import workbench as wb
from workbench.sweeps.means import interval, summary
from workbench.views.drawing import Polygon, Text
from workbench.views.sweeps import savings


def texts_of(page):
    return [item.text for item in page.items if isinstance(item, Text)]


class Table:
    """A substitute for a sweep's table: {name: (coverage, KB) at each value of the parameter}, varied over seeds."""

    radio_note = "; on paper"

    def __init__(self, curves, xs, spread=0.0):
        seeds = (1, 2, 3, 4)
        self.frame = pd.DataFrame(
            [
                {
                    "protocol": name,
                    X: x,
                    "seed": seed,
                    "coverage": cover,
                    "bytes_sent": 1000 * kB * (1 + spread * (seed - 2.5)),
                }
                for name, points in curves.items()
                for x, (cover, kB) in zip(xs, points, strict=True)
                for seed in seeds
            ]
        )

    def to_pandas(self):
        return self.frame.copy()

    def summary(self, x, y, series):
        return summary(self.frame, x, y, series)

    def averaged_rows(self, summary_table, columns):
        return []

    def name_of(self, column):
        return column


X = "protocol.forwarding_probability"
CURVES = {"gossip": [(0.5, 100), (0.9, 300), (1.0, 400)], "coded": [(0.4, 80), (0.8, 180), (1.0, 200)]}


def test_savings_at_an_equal_parameter_are_ratios_of_mean_costs():
    table = savings.equal_parameter_savings(Table(CURVES, [0.5, 0.75, 1.0]), "gossip")
    assert table["saving"].tolist() == pytest.approx([0.2, 0.4, 0.5])
    assert table["baseline KB"].tolist() == pytest.approx([100, 300, 400])
    assert table["baseline coverage"].tolist() == pytest.approx([0.5, 0.9, 1.0])
    assert table["low"].tolist() == pytest.approx(table["saving"].tolist())  # no spread over seeds


def test_savings_at_equal_coverage_use_the_first_value_with_that_coverage():
    table = savings.equal_coverage_savings(Table(CURVES, [0.5, 0.75, 1.0]), "gossip", coverage=0.95)
    assert table["protocol"].tolist() == ["gossip", "coded"]
    assert table[X].tolist() == pytest.approx([0.875, 0.9375])
    assert table["KB"].tolist() == pytest.approx([350, 195])
    assert table["saving"].tolist() == pytest.approx([0, 1 - 195 / 350])


def test_savings_at_equal_coverage_use_the_cheapest_value_even_if_it_is_not_the_first():
    curves = {**CURVES, "coded": [(0.4, 80), (0.96, 250), (1.0, 200)]}
    table = savings.equal_coverage_savings(Table(curves, [0.5, 0.75, 1.0]), "gossip", coverage=0.95)
    assert (table[X][1], table["KB"][1]) == pytest.approx((1.0, 200))


def test_a_protocol_that_never_reaches_the_coverage_has_no_saving():
    curves = {**CURVES, "weak": [(0.1, 10), (0.2, 20), (0.3, 30)]}
    table = savings.equal_coverage_savings(Table(curves, [0.5, 0.75, 1.0]), "gossip")
    assert table["saving"].isna().tolist() == [False, False, True]
    assert savings.equal_coverage_savings(Table(curves, [0.5, 0.75, 1.0]), "gossip", 0.3)[X].tolist() == [
        0.5,
        0.5,
        1.0,
    ]


def test_intervals_contain_the_saving_and_widen_with_the_spread_of_seeds():
    widths = []
    for spread in (0.02, 0.1):
        curves = Table(CURVES, [0.5, 0.75, 1.0], spread)
        curves.frame.loc[curves.frame["protocol"] == "gossip", "bytes_sent"] = 400_000.0
        table = savings.equal_parameter_savings(curves, "gossip")
        assert (table["low"] < table["saving"]).all() and (table["saving"] < table["high"]).all()
        widths.append((table["high"] - table["low"]).sum())
    assert widths[1] > 2 * widths[0]


def test_the_jackknife_of_a_mean_is_the_usual_interval():
    values = [3.0, 5.0, 4.0, 8.0]
    means = [np.mean(values), *(np.mean(np.delete(values, index)) for index in range(4))]
    mean, low, high = savings._jackknife(np.array(means))
    expected, half, _ = interval(values)
    assert (mean, low, high) == pytest.approx((expected, expected - half, expected + half))


def test_a_baseline_that_was_not_swept_is_refused():
    with pytest.raises(
        wb.ParameterError, match="baseline is 'flooding'; it must be one of the values of protocol: gossip, coded"
    ):
        savings.equal_parameter_savings(Table(CURVES, [0.5, 0.75, 1.0]), "flooding")


def test_charts_of_a_sweep_name_their_series_and_draw_a_band_for_each():
    table = Table(CURVES, [0.5, 0.75, 1.0], 0.1)
    for page in (savings.sweep_chart(table, "bytes_sent"), savings.cost_chart(table)):
        ElementTree.fromstring(page.to_svg())
        assert {"gossip", "coded"} <= set(texts_of(page))
        assert len([item for item in page.items if isinstance(item, Polygon) and item.opacity < 1]) == 2
    table.frame.loc[(table.frame["protocol"] == "coded") & (table.frame[X] == 0.5), "coverage"] = np.nan
    assert "mean and 95 % confidence interval over 4 seeds; on paper" in texts_of(
        savings.sweep_chart(table, "coverage")
    )


def test_the_chart_of_a_sweep_has_the_labels_of_the_drawing_of_its_table():
    scenario = wb.Scenario(
        wb.topology.line(3), wb.Gossip(), [wb.subscribe(2, "TEMP GE 0"), wb.publish(0, "TEMP IS 20")], duration_s=3
    )
    over = {"protocol": {"gossip": wb.Gossip(), "flooding": wb.Flooding()}, "radio.loss": [0.0, 0.1]}
    table = wb.Sweep(scenario, over).run(runner=wb.LocalRunner(), progress=False)
    for metric in ("latency_ms_p50", "energy_mJ"):
        own = set(texts_of(table.plot("radio.loss", metric)))
        labels = {table.name_of(metric), "loss (share of frames)"}
        assert labels <= own & set(texts_of(savings.sweep_chart(table, metric, x="radio.loss")))
    assert "sent (KB)" in texts_of(savings.sweep_chart(table, "bytes_sent", x="radio.loss"))
    with pytest.raises(wb.ParameterError, match="protocol has the value 'gossip'; lines need numbers on the x axis"):
        savings.sweep_chart(table, "coverage", x="protocol", by="radio.loss")
