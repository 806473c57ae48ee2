"""The gallery: every model is a scenario that runs, and its run answers its question."""

import json
from importlib.resources import files

import pytest

import workbench as wb
from workbench import gallery
from workbench.analysis.accounts import missing
from workbench.errors import ScenarioError


def test_models_are_listed_in_the_order_of_their_files():
    assert gallery.names()[0] == "interest" and len(gallery.names()) == 17
    assert wb.gallery is gallery


def test_an_unknown_model_is_refused_with_a_suggestion():
    with pytest.raises(ScenarioError, match=r"no model 'detuor' \(did you mean detour\?\); its models are interest"):
        gallery.model("detuor")


@pytest.mark.parametrize("name", gallery.names())
def test_a_model_asks_a_question_and_its_file_is_complete(name):
    model = gallery.model(name)
    assert model.question.endswith("?") and model.title
    (path,) = [path for path in files(gallery).iterdir() if path.name.endswith(f"-{name}.json")]
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert json.loads(model.scenario.to_json()) == stored["scenario"]
    assert set(stored) == {"title", "question", "beside", "scenario"}


@pytest.mark.parametrize("name", gallery.names())
def test_a_model_delivers_readings(name):
    metrics = gallery.model(name).scenario.run().metrics
    assert metrics.delivered > 0 and metrics.expected > 0


def test_the_rumor_dies_more_often_than_the_flood():
    model = gallery.model("gossip")
    gossip, flood = (
        scenario.run().metrics for scenario in (model.scenario, model.scenario.replace(protocol=model.beside))
    )
    assert gossip.delivery_ratio < flood.delivery_ratio and gossip.transmissions < flood.transmissions


def test_the_detour_loses_no_reading_and_takes_another_path():
    run = gallery.model("detour").scenario.run()
    rows = run.trace.to_pandas()
    last_hops = rows[rows["event"] == "delivered"].groupby(rows["time_us"] > 21_000_000)["peer"].unique()
    assert run.metrics.delivery_ratio == 1
    assert last_hops[False].tolist() != last_hops[True].tolist()


def test_the_tree_is_repaired():
    metrics = gallery.model("repair").scenario.run().metrics
    assert 0 < metrics.recovery_s < 60 and metrics.delivery_ratio < 1


def lost_readings(scenario):
    """Return the times in s at which readings that did not arrive were published."""
    return [account.published_us / 1e6 for account in missing(scenario.run())]


def test_readings_cross_again_at_the_merge_and_with_tinymq_seconds_later():
    model = gallery.model("merge")
    (partition,) = model.scenario.workload[2:]
    lost_s = lost_readings(model.scenario)
    assert lost_s and all(partition.start_s <= time_s < partition.stop_s for time_s in lost_s)
    last_s = max(lost_readings(model.scenario.replace(protocol=model.beside)))
    assert partition.stop_s < last_s < partition.stop_s + 10


def test_readings_follow_a_walking_sink_that_repeats_its_interest_often():
    model = gallery.model("walking-sink")
    rare, often = (
        model.scenario.replace(protocol=protocol).run().metrics for protocol in (model.scenario.protocol, model.beside)
    )
    assert rare.delivery_ratio < 0.7 and often.delivery_ratio == 1
    assert often.transmissions < rare.transmissions


def test_a_path_leads_through_a_jammed_node_until_the_next_interest():
    model = gallery.model("jammer")
    (jam,) = model.scenario.workload[2:]
    lost_s = lost_readings(model.scenario)
    assert min(lost_s) == jam.start_s + 1 and max(lost_s) < 61 < jam.stop_s  # the sink repeats its interest at 61 s
    flooding = model.scenario.replace(protocol=model.beside)
    assert flooding.run().metrics.delivery_ratio > 0.9 > model.scenario.run().metrics.delivery_ratio
