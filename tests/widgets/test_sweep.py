"""The panel of sweeps: parameters, values and metrics; running, stopping and continuing; the chart."""

import threading

import pytest

import workbench as wb
from workbench.sweeps import runners
from workbench.widgets import sweep as sweep_module
from workbench.widgets.sweep import (
    CLUSTER,
    CORES,
    HERE,
    SPARK,
    WHERE,
    SweepPanel,
    propose_values,
    read_values,
    table_of,
)


@pytest.fixture
def scenario():
    """Return a scenario of a line with lossy links; tests do not use the fast engine."""
    workload = [wb.subscribe(0, "TEMP GE 1"), wb.publish(4, "TEMP IS 2", every_s=1)]
    return wb.Scenario(wb.topology.line(5), wb.Flooding(), workload, wb.Radio(loss=0.1), duration_s=3, seed=3)


@pytest.fixture
def panel(scenario, monkeypatch):
    """Return a panel whose sweeps vary the loss, with two seeds."""
    monkeypatch.setattr(sweep_module, "REDRAWN_S", 0.0)
    panel = SweepPanel(scenario)
    panel.path.value, panel.values.value, panel.repetitions.value = "radio.loss", "0, 0.2, 0.5", 2
    return panel


def message_of(panel):
    return panel._message.value


def test_general_parameters_are_offered_first_and_memory_limits_last(scenario):
    offered = SweepPanel(scenario.replace(protocol=wb.Diffusion())).path.options
    is_bound = [path.startswith("protocol.max_") for path in offered]
    assert offered[:2] == ("radio.loss", "protocol.ttl")
    assert is_bound == sorted(is_bound) and is_bound[-1]


def test_settings_radio_duration_and_seed_can_be_varied(panel, scenario):
    assert {"protocol.ttl", "radio.retries", "radio.loss", "duration_s", "seed"} <= set(panel.path.options)
    assert not {"radio.jitter_ms", "protocol.roots", "protocol.filters"} & set(panel.path.options)
    panel.path.value = "protocol.ttl"
    panel.value = scenario.replace(protocol=wb.TinyMQ())
    assert "protocol.ttl" not in panel.path.options and "protocol.roots" not in panel.path.options
    panel.path.value = "protocol.publish"
    assert panel.values.value == "all, own"
    panel.value = scenario.replace(protocol=wb.TinyMQ(), seed=9)
    assert panel.path.value == "protocol.publish"


def test_memory_limits_are_offered_last(panel, scenario):
    panel.value = scenario.replace(protocol=wb.Diffusion())
    are_bounds = [path.startswith("protocol.max_") for path in panel.path.options]
    assert are_bounds == sorted(are_bounds) and any(are_bounds)


@pytest.mark.parametrize("protocol", [wb.Flooding(), wb.Gossip(), wb.Diffusion(), wb.CodedDiffusion(), wb.TinyMQ()])
def test_proposed_values_can_be_swept(scenario, protocol):
    scenario = scenario.replace(protocol=protocol)
    for path, parameter in table_of(scenario).items():
        values = propose_values(path, parameter, scenario)
        assert values == read_values(", ".join(map(str, values))) and len(values) == len(set(values)) > 1, path
        if path not in (
            "protocol.literal",
            "protocol.refresh_s",
            "protocol.lease_s",
        ):  # these depend on other parameters
            for value in values:
                scenario.replace(**{path: value})


def test_a_sweep_gives_a_table_and_a_chart_that_follows_the_page(panel, scenario):
    assert panel.results is None
    panel.run_button.click()
    assert panel.wait() and "6 points." in message_of(panel)
    assert sorted(set(panel.results["radio.loss"])) == [0, 0.2, 0.5] and set(panel.results["seed"]) == {3, 4}
    row = panel.results[(panel.results["radio.loss"] == 0.5) & (panel.results["seed"] == 4)].iloc[0]
    alone = scenario.replace(seed=4, **{"radio.loss": 0.5}).run(engine="reference")
    assert row["transmissions"] == alone.metrics["transmissions"]
    assert (
        "<svg" in panel._view.wire.picture
        and "light-dark(" in panel._view.wire.picture
        and "loss" in panel._view.wire.picture
    )
    assert not panel.run_button.disabled and panel.stop_button.disabled and panel.bar.layout.visibility == "hidden"


def test_another_metric_redraws_the_chart_and_another_parameter_keeps_it(panel):
    panel.run()
    assert panel.wait()
    first = panel._view.wire.picture
    panel.metric.value = "transmissions"
    assert panel._view.wire.picture != first and "<svg" in panel._view.wire.picture
    panel.path.value = "protocol.ttl"
    panel.metric.value = "delivery_ratio"
    assert panel._view.wire.picture == first


@pytest.mark.parametrize(
    ("path", "text", "sentence"),
    [
        ("radio.loss", "", "the list of values is empty"),
        ("radio.loss", "0.1, 7", "loss is 7"),
        ("radio.loss", "0.1, 0.1", "are the same scenario"),
        ("protocol.ttl", "many", "ttl is &#x27;many&#x27;"),
        ("protocol.ttl", "{[]: 1}", "ttl is"),
        ("duration_s", "-1", "duration_s is -1"),
        ("seed", "1.5", "seed is 1.5"),
    ],
)
def test_invalid_values_stay_with_an_error(panel, path, text, sentence):
    panel.path.value, panel.values.value = path, text
    panel.run()
    assert panel.wait() and sentence in message_of(panel) and "wb-error" in message_of(panel)
    assert panel.values.value == text and panel.table is None and not panel.run_button.disabled


def test_a_stopped_sweep_keeps_finished_points_and_can_continue(panel, monkeypatch):
    ran, may_go_on, is_third = [], threading.Event(), threading.Event()
    whole = runners.run_point

    def run_point(plan, number):
        ran.append(number)
        if len(ran) == 3:
            is_third.set()
            assert may_go_on.wait(300)
        return whole(plan, number)

    monkeypatch.setattr(runners, "run_point", run_point)
    panel.run()
    assert is_third.wait(300)
    panel.run()  # one sweep is in progress
    panel.stop_button.click()
    may_go_on.set()
    assert panel.wait() and "Stopped: 3 of 6 points are kept" in message_of(panel)
    assert len(panel.results) == 3 and ran == [0, 1, 2] and "<svg" in panel._view.wire.picture
    panel.run()
    assert panel.wait() and "6 points." in message_of(panel) and ran == [0, 1, 2, 3, 4, 5]
    panel.values.value = "0, 0.2"
    panel.run()
    assert panel.wait() and len(panel.results) == 4


def test_only_seeds_can_be_swept(panel):
    panel.path.value, panel.values.value = "seed", "1, 2, 3, 4"
    panel.run()
    assert panel.wait() and len(panel.results) == 4 and "<svg" in panel._view.wire.picture


def test_metrics_of_the_protocol_are_offered_after_the_first_points(panel):
    before = panel.metric.options
    panel.run()
    assert panel.wait()
    assert set(panel.table.metrics) <= set(panel.metric.options) and len(panel.metric.options) > len(before)
    assert panel.metric.value == "delivery_ratio"


def test_failed_points_are_reported_with_the_first_reason(panel, monkeypatch):
    whole = runners.run_point

    def run_point(plan, number):
        row = whole(plan, number)
        return row._replace(error="no good", metrics={}) if number == 4 else row

    monkeypatch.setattr(runners, "run_point", run_point)
    with pytest.warns(UserWarning, match="1 of 6 points failed"):
        panel.run()
        assert panel.wait()
    assert "1 of 6 points failed, the first: no good" in message_of(panel)


def test_all_cores_and_spark_at_an_address_can_run_a_sweep(panel, monkeypatch):
    masters = []

    class Remote:
        """A substitute for SparkRunner that records its arguments."""

        def __init__(self, *master):
            masters.append(master)

        def run(self, plan, numbers, moving):
            return runners.LocalRunner().run(plan, numbers, moving)

    monkeypatch.setattr(sweep_module, "SparkRunner", Remote)
    assert panel.address.layout.display == "none"
    panel.where.value = CLUSTER
    assert panel.address.layout.display == ""
    panel.run()
    assert panel.wait() and "the address of the Spark cluster is empty" in message_of(panel) and not masters
    panel.address.value = " sc://lab:15002 "
    panel.run()
    assert panel.wait() and "6 points." in message_of(panel) and "wb-error" not in message_of(panel)
    panel.where.value = SPARK
    panel.values.value = "0, 0.3"
    panel.run()
    assert panel.wait() and "4 points." in message_of(panel) and panel.address.layout.display == "none"
    assert masters == [("sc://lab:15002",), ()]


@pytest.mark.skipif(CORES not in WHERE, reason="processes are forked")
def test_a_sweep_on_all_cores_gives_the_same_rows_as_in_this_process(panel):
    tables = []
    for location in (HERE, CORES):
        panel.where.value = location
        panel.repetitions.value += 1  # other settings have no results yet
        panel.run()
        assert panel.wait() and "points." in message_of(panel)
        tables.append(panel.results)
    local, on_cores = (table[table["seed"] <= 5].reset_index(drop=True) for table in tables)
    columns = ["radio.loss", "seed", "scenario", "transmissions", "delivery_ratio"]
    assert local[columns].equals(on_cores[columns])


def test_an_error_of_a_runner_is_displayed(panel, monkeypatch):
    class Broken:
        def run(self, plan, numbers, moving):
            raise RuntimeError("no session\nat line 1 of many")

    monkeypatch.setattr(sweep_module, "SparkRunner", Broken)
    panel.where.value = SPARK
    panel.run()
    assert panel.wait() and "ended with RuntimeError: no session<" in message_of(panel)
    assert not panel.run_button.disabled
