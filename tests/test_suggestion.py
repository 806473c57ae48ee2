"""The name that was meant: found where it is like the wrong one, and not made up where none is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.suggestion import meant

SCENARIO = wb.Scenario(wb.topology.line(2), wb.Flooding(), [wb.publish(at=0, what="TEMP IS 5")], duration_s=2)


@pytest.mark.parametrize(
    ("wrong", "known", "right"),
    [
        ("collision", ["loss", "collisions", "csma"], "collisions"),
        ("TEMPERATURE", ["INTENSITY", "PRESSURE", "TEMP"], "TEMP"),
        ("pulbish", ["outage", "publish", "subscribe"], "publish"),
        ("delivery", ["delivered", "delivery_ratio"], "delivery_ratio"),
        ("diffusion", ["CodedDiffusion", "Diffusion"], "Diffusion"),
        ("seed", ["seed"], "seed"),
    ],
)
def test_the_likest_name_is_meant(wrong, known, right):
    assert meant(wrong, known) == f" (did you mean {right}?)"


@pytest.mark.parametrize("wrong", ["", "x", "hops", 7, None, "zzz" * 1000])
def test_a_name_that_is_like_none_has_no_suggestion(wrong):
    assert meant(wrong, ["loss", "collisions", "csma", "max_events"]) == ""


@given(st.text(), st.lists(st.text()))
def test_a_suggestion_is_one_of_the_known_names(wrong, known):
    assert meant(wrong, known) in {"", *(f" (did you mean {name}?)" for name in known)}


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        (lambda: wb.Difusion, "Diffusion"),
        (lambda: wb.Radio(collision=True), "collisions"),
        (lambda: wb.Scenario(topolgy=wb.topology.line(2)), "topology"),
        (lambda: wb.publish(at=0, wat="TEMP IS 5"), "what"),
        (lambda: wb.subscribe(at=0, what="TEMP GE 5", expire_s=5), "expires_s"),
        (lambda: wb.outage(at=0, start=3), "start_s"),
        (lambda: wb.topology.grid(row=3, columns=3), "rows"),
        (lambda: wb.topology.office(node=30), "nodes"),
        (lambda: wb.SensorField(kee="TEMP"), "key"),
        (lambda: SCENARIO.run(engine="reference").figure(layers=["node"]), "nodes"),
        (lambda: wb.Diffusion(reinforce=2), "reinforce_after"),
        (lambda: wb.Filter("runing_mean"), "running_mean"),
        (lambda: wb.Filter("running_mean", windo=3), "window"),
        (lambda: wb.parse("TEMPERATURE GE 3"), "TEMP"),
        (lambda: wb.parse("TEMP EQANY"), "EQ_ANY"),
        (lambda: wb.parse("APP IS Temprature"), "Temperature"),
        (lambda: SCENARIO.replace(duration=3), "duration_s"),
        (lambda: SCENARIO.replace(loss=0.5), "radio.loss"),
        (lambda: SCENARIO.replace(**{"protocl.ttl": 3}), "protocol.ttl"),
        (lambda: SCENARIO.replace(**{"protocol.max_event": 3}), "max_events"),
        (lambda: SCENARIO.replace(**{"radio.colisions": True}), "collisions"),
        (lambda: SCENARIO.replace(**{"workload.0.every": 3}), "every_s"),
        (lambda: wb.Scenario.from_json(SCENARIO.to_json().replace('"Flooding"', '"Floding"')), "Flooding"),
        (lambda: wb.Scenario.from_json(SCENARIO.to_json().replace('"seed"', '"sed"')), "seed"),
        (lambda: SCENARIO.run(engine="reference").metrics["delivery"], "delivery_ratio"),
        (lambda: SCENARIO.run(engine="reference").metrics.delivery, "delivery_ratio"),
        (lambda: wb.Flooding().tll, "ttl"),
        (lambda: wb.Scenario(SCENARIO.topology, "Floding"), "Flooding"),
        (lambda: wb.Diffusion(profile="strikt"), "strict"),
        (lambda: wb.Filter("running_mean", ky=200), "key"),
        (lambda: wb.topology.testbed("intel-lob"), "intel-lab"),
        (lambda: wb.Scenario.from_json(SCENARIO.to_json().replace('"line"', '"lin"')), "line"),
        (lambda: SCENARIO.sed, "seed"),
        (lambda: SCENARIO.runn(), "run"),
        (lambda: SCENARIO.run(engin="reference"), "engine"),
        (lambda: SCENARIO.run(engine="refrence"), "reference"),
        (lambda: SCENARIO.run(record="metric"), "metrics"),
        (lambda: SCENARIO.run(engine="reference").shwo(), "show"),
        (lambda: SCENARIO.run(engine="reference").figure(time=3), "time_s"),
        (lambda: wb.Sweep(SCENARIO, {"seed": [1]}, kep="trace"), "keep"),
        (lambda: wb.Sweep(SCENARIO, {"seed": [1]}).run(runer=wb.LocalRunner()), "runner"),
        (lambda: wb.topology.gird(3, 3), "grid"),
        (lambda: wb.views.line_chrt, "line_chart"),
        (lambda: wb.pipelines.replya, "replay"),
        (lambda: wb.widgets.Netwrok(), "Network"),
        (lambda: wb.widgets.Network(valu=None), "value"),
        (lambda: wb.lab(scenari=SCENARIO), "scenario"),
    ],
)
def test_error_for_a_wrong_name_suggests_the_right_one(answer, right):
    with pytest.raises((wb.WorkbenchError, AttributeError)) as raised:
        answer()
    assert f"(did you mean {right}?)" in str(raised.value)
    assert "\n" not in str(raised.value)
