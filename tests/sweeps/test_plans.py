"""The points of designs (`wb.plans`), random points and paired seeds. Drivers have a separate test file."""

import doctest
import importlib
import pickle
import pkgutil
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from tests.repository import REPOSITORY
from workbench import plans
from workbench.errors import ParameterError, ScenarioError
from workbench.sweeps import LocalRunner

TTL, LOSS = "protocol.ttl", "radio.loss"
SILENT = {"runner": LocalRunner(), "progress": False}


def scenario(**changes):
    """Return a scenario with a sink at one end of a line of five nodes and a source at the other."""
    workload = [wb.subscribe(at=0, what="TEMP GE 25"), wb.publish(at=4, what="TEMP IS 26.5", every_s=2)]
    return wb.Scenario(wb.topology.line(5), wb.Flooding(), workload, duration_s=5).replace(**changes)


def points_of(design):
    return [tuple(sorted(design.overrides(number).items())) for number in range(len(design))]


# Explicit points


def test_points_are_those_listed():
    listed = [{TTL: 3, LOSS: 0.0}, {TTL: 9, LOSS: 0.0}, {TTL: 3, LOSS: 0.2}]
    design = plans.points(listed)
    assert design.paths == (TTL, LOSS)
    assert [design.overrides(number) for number in range(len(design))] == listed
    assert [design.labels(number) for number in range(len(design))] == listed


def test_the_rows_of_a_frame_are_points_with_numbers_of_python():
    design = plans.points(pd.DataFrame({TTL: [3, 9], LOSS: [0.0, 0.2]}))
    assert design.overrides(1) == {TTL: 9, LOSS: 0.2}
    assert [type(value) for value in design.overrides(1).values()] == [int, float]


def test_zipped_values_keep_their_names():
    design = plans.zipped({"protocol": {"first": wb.Flooding(), "second": wb.Gossip()}, TTL: [3, 6]})
    assert [design.labels(number) for number in range(2)] == [
        {"protocol": "first", TTL: 3},
        {"protocol": "second", TTL: 6},
    ]
    assert design.overrides(1)["protocol"] == wb.Gossip()


def test_equal_objects_of_several_points_have_one_label():
    design = plans.points([{"protocol": wb.Flooding(), TTL: 3}, {"protocol": wb.Flooding(), TTL: 6}])
    assert {design.labels(number)["protocol"] for number in range(2)} == {"Flooding"}


# Combinations of plans

SMALL = st.dictionaries(st.sampled_from(["a", "b"]), st.lists(st.integers(0, 3), min_size=1, unique=True), min_size=2)


@given(SMALL, st.lists(st.integers(0, 3), min_size=1, unique=True))
def test_a_product_of_plans_combines_each_point_of_one_with_each_point_of_the_other(over, third):
    outer, inner = plans.grid(over), plans.zipped({"c": third})
    expected = [tuple(sorted((*first, *second))) for first in points_of(outer) for second in points_of(inner)]
    assert points_of(outer * inner) == expected
    assert [tuple(sorted(point)) for point in points_of(inner * over)] == sorted(
        expected, key=lambda point: (third.index(dict(point)["c"]), expected.index(point))
    )


@given(SMALL, SMALL)
def test_union_and_difference_are_set_operations_in_the_order_of_the_first_plan(first_axes, second_axes):
    first, second = plans.grid(first_axes), plans.grid(second_axes)
    first_points, second_points = points_of(first), points_of(second)
    assert points_of(first | second) == first_points + [point for point in second_points if point not in first_points]
    difference = [point for point in first_points if point not in second_points]
    if difference:
        assert points_of(first - second) == difference
    else:
        with pytest.raises(ScenarioError, match="every point of a is also a point of b"):
            first - second


@given(SMALL, st.lists(st.integers(0, 3), min_size=1, unique=True))
def test_a_difference_compares_only_the_parameters_of_the_other_plan(over, removed):
    design = plans.grid(over) * plans.seeds(3)
    remaining = [point for point in points_of(design) if dict(point)["a"] not in removed]
    if remaining:
        assert points_of(design - {"a": removed}) == remaining
        assert points_of(design - plans.points([{"a": value} for value in removed])) == remaining


def test_a_union_treats_equal_numbers_and_equal_objects_as_the_same_value():
    first = plans.points([{LOSS: 0, "protocol": wb.Flooding(ttl=3)}])
    second = plans.points([{LOSS: 0.0, "protocol": wb.Flooding(ttl=3)}, {LOSS: 0.0, "protocol": wb.Flooding()}])
    assert len(first | second) == 2


def test_a_difference_of_plans_keeps_the_labels():
    design = (plans.grid({TTL: [3, 6], "protocol": {"mine": wb.Flooding()}}) * plans.seeds(4)) - {"seed": [2, 3]}
    assert len(design) == 4
    assert [design.labels(number)["seed"] for number in range(4)] == [1, 4, 1, 4]
    assert design.labels(3) == {TTL: 6, "protocol": "mine", "seed": 4}
    assert design.text() == "protocol.ttl (2) × protocol (1) × seed (4) but 4 points"


def made_of_everything():
    listed = plans.points([{TTL: 3, "protocol": wb.Flooding()}, {TTL: 6, "protocol": wb.Gossip()}])
    drawn = plans.random(6, {TTL: plans.whole(7, 99), "protocol": [wb.Flooding(), wb.Gossip(), wb.Diffusion()]})
    return ((listed | drawn) - {TTL: [3]}) * plans.paired_seeds(3, topology=wb.topology.disc(12, 40, 40))


def test_a_plan_is_the_same_after_pickling():
    design = made_of_everything()
    copy = pickle.loads(pickle.dumps(design))
    assert len(copy) == len(design)
    assert [copy.labels(number) for number in range(len(copy))] == [
        design.labels(number) for number in range(len(design))
    ]
    last = len(design) - 1
    assert scenario().replace(**copy.overrides(last)) == scenario().replace(**design.overrides(last))


MINE = """
import workbench as wb

def network(seed):
    return wb.topology.line(length(seed))

def length(seed):
    return 5 + seed
"""


def test_functions_of_a_module_are_pickled_by_value(tmp_path, monkeypatch):
    (tmp_path / "my_networks.py").write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path)
    packed = pickle.dumps(plans.paired_seeds(3, topology=importlib.import_module("my_networks").network))
    monkeypatch.undo()
    monkeypatch.delitem(sys.modules, "my_networks")
    assert len(pickle.loads(packed).overrides(2)["topology"]) == 8


def test_the_check_before_a_sweep_visits_each_object_once():
    design = made_of_everything()
    probed = {type(design.overrides(number)["protocol"]) for number in design.probes()}
    assert probed == {type(design.overrides(number)["protocol"]) for number in range(len(design))}
    assert list(design.probes()) == sorted(set(design.probes()))
    assert design.probes()[-1] < len(design)


def test_a_sweep_runs_the_points_of_a_plan():
    design = plans.zipped({TTL: [2, 4], "duration_s": [3, 5]}) * plans.seeds(2)
    table = wb.Sweep(scenario(), over=design).run(**SILENT).to_pandas()
    expected = [
        scenario(**{TTL: ttl, "duration_s": duration_s, "seed": seed})
        for ttl, duration_s in ((2, 3), (4, 5))
        for seed in (1, 2)
    ]
    assert table["scenario"].tolist() == [point.hash for point in expected]
    assert table["delivery_ratio"].tolist() == [point.run().metrics["delivery_ratio"] for point in expected]


def test_the_memory_of_a_plan_does_not_grow_with_its_points():
    plans.latin_hypercube(2, {LOSS: plans.between(0, 1)})  # the import of scipy allocates memory, too
    tracemalloc.start()
    try:
        design = plans.latin_hypercube(1000, {TTL: plans.whole(3, 99), LOSS: plans.between(0, 0.3)}) * plans.seeds(1000)
        wide = plans.grid({TTL: range(1, 1001), "seed": range(1000)}) - {TTL: [7]}
        sweeps = [wb.Sweep(scenario(), varied) for varied in (design, wide)]
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()
    assert [len(sweep) for sweep in sweeps] == [1_000_000, 999_000]


# Random points


def test_a_latin_hypercube_uses_each_part_of_each_range_once():
    over = {LOSS: plans.between(0.0, 0.5), "duration_s": plans.between(1, 1000, log=True), TTL: plans.whole(1, 10)}
    frame = pd.DataFrame([plans.latin_hypercube(50, over).overrides(number) for number in range(50)])
    assert sorted(np.floor(frame[LOSS] / 0.5 * 50)) == list(range(50))
    assert sorted(np.floor(np.log10(frame["duration_s"]) / 3 * 50)) == list(range(50))
    assert frame[TTL].value_counts().to_dict() == dict.fromkeys(range(1, 11), 5)


def test_sobol_points_are_a_prefix_of_twice_as_many():
    over = {LOSS: plans.between(0.0, 0.5), TTL: plans.whole(1, 10)}
    assert points_of(plans.sobol(32, over))[:16] == points_of(plans.sobol(16, over))
    quarter = [point for point in points_of(plans.sobol(32, over)) if dict(point)[LOSS] < 0.125]
    assert len(quarter) == 8


@given(st.integers(0, 2**40), st.integers(1, 40))
def test_random_points_are_in_their_ranges_and_depend_on_the_seed(seed, count):
    over = {LOSS: plans.between(0.1, 0.2), TTL: plans.whole(3, 5), "duration_s": plans.between(1, 100, log=True)}
    design = plans.random(count, over, seed=seed)
    assert len(design) == count
    for number in range(count):
        point = design.overrides(number)
        assert 0.1 <= point[LOSS] <= 0.2
        assert point[TTL] in (3, 4, 5)
        assert 1 <= point["duration_s"] <= 100
    assert points_of(design) == points_of(plans.random(count, over, seed=seed))
    assert points_of(design) != points_of(plans.random(count, over, seed=seed + 1))


def test_random_points_are_uniform():
    frame = pd.DataFrame([plans.random(4000, {LOSS: plans.between(0, 1), TTL: [3, 6, 9, 12]}).overrides(i)
                          for i in range(4000)])  # fmt: skip
    assert frame[LOSS].mean() == pytest.approx(0.5, abs=0.02)
    assert frame[LOSS].std() == pytest.approx(12**-0.5, abs=0.02)
    assert (frame[TTL].value_counts() / 4000).to_numpy() == pytest.approx(0.25, abs=0.03)
    assert abs(frame.corr().loc[LOSS, TTL]) < 0.05


def test_points_that_are_drawn_twice_appear_once():
    design = plans.random(200, {TTL: [3, 6], "radio.collisions": [True, False]})
    assert len(set(points_of(design))) == len(design) == 4


def test_another_process_has_the_same_points():
    code = f"from workbench import plans; d = plans.random(5, {{{LOSS!r}: plans.between(0, 1)}}); print(d.overrides(4))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == str(plans.random(5, {LOSS: plans.between(0, 1)}).overrides(4))


# Paired seeds


def test_each_seed_has_its_own_network_which_is_the_same_for_all_protocols():
    network = wb.topology.random_geometric(12, 50, 50)
    design = plans.grid({"protocol": [wb.Flooding(), wb.Gossip()]}) * plans.paired_seeds(3, topology=network)
    built = [scenario().replace(**design.overrides(number)) for number in range(len(design))]
    edges = [sorted(variant.topology.edges(data="pdr")) for variant in built]
    assert edges[:3] == edges[3:]
    assert edges[0] != edges[1] != edges[2]
    assert [variant.seed for variant in built] == [1, 2, 3, 1, 2, 3]
    assert edges[1] == sorted(wb.topology.random_geometric(12, 50, 50, seed=2).edges(data="pdr"))
    assert design.labels(4) == {"protocol": "Gossip", "seed": 2, "topology": "topology 2"}


def test_functions_make_the_network_and_the_workload_of_a_seed():
    def workload(seed):
        return [wb.subscribe(at=seed, what="TEMP GE 25")]

    point = plans.paired_seeds(4, topology=lambda seed: wb.topology.line(5 + seed), workload=workload).overrides(2)
    assert (point["seed"], len(point["topology"]), point["workload"][0].at) == (3, 8, (3,))


def test_simultaneous_frames_on_a_link_are_lost_with_both_protocols_or_neither():
    lossy = scenario(radio=wb.Radio(loss=0.4), topology=wb.topology.grid(4, 4), duration_s=30)
    fates = []
    for protocol in (wb.Flooding(), wb.Gossip(forwarding_probability=0.9)):
        run = lossy.replace(protocol=protocol).run(engine="reference")
        frame = run.trace.to_pandas()
        frame = frame[frame["event"].isin(["received", "lost"])]
        fates.append({(row.time_us, row.peer, row.node): row.event for row in frame.itertuples()})
    common = fates[0].keys() & fates[1].keys()
    assert {fates[0][frame_key] for frame_key in common} == {"received", "lost"}
    assert all(fates[0][frame_key] == fates[1][frame_key] for frame_key in common)


class Table:
    """The attributes of a table that `paired_differences` reads."""

    def __init__(self, frame, axes):
        self.to_pandas, self.axes, self.metrics = lambda: frame, axes, ("sent", "coverage")


def test_differences_are_computed_per_pair():
    # Networks differ by hundreds, protocols by five, so only paired values show it.
    rng = np.random.default_rng(1)
    network = rng.normal(1000, 300, 20)
    rows = [
        {"protocol": name, "seed": seed, "sent": network[seed] + extra + rng.normal(0, 1), "coverage": 1.0}
        for name, extra in (("a", 0), ("b", 5))
        for seed in range(20)
    ]
    table = Table(pd.DataFrame(rows), ("protocol", "seed"))
    (difference,) = plans.paired_differences(table, "sent").to_dict("records")
    assert (difference["protocol"], difference["pairs"]) == ("b", 20)
    assert 4 < difference["low"] < difference["difference"] < difference["high"] < 6
    assert difference["unpaired_low"] < -100 < 100 < difference["unpaired_high"]
    (swapped,) = plans.paired_differences(table, "sent", baseline="b").to_dict("records")
    assert swapped["difference"] == -difference["difference"]
    (none,) = plans.paired_differences(table, "coverage").to_dict("records")
    assert (none["difference"], none["low"], none["unpaired_high"]) == (0, 0, 0)


def test_pairs_without_a_partner_are_dropped_and_x_separates_values():
    rows = [
        {"protocol": name, TTL: ttl, "seed": seed, "sent": float("nan") if (name, ttl, seed) == ("b", 6, 2) else value}
        for name, factor in (("b", 2), ("a", 1))
        for ttl in (3, 6)
        for seed, value in ((1, factor * ttl), (2, factor * ttl), (3, factor * ttl))
    ]
    table = Table(pd.DataFrame(rows), ("protocol", TTL, "seed"))
    differences = plans.paired_differences(table, "sent", baseline="a", x=TTL)
    assert differences[[TTL, "difference", "pairs"]].to_numpy().tolist() == [[3, 3, 3], [6, 6, 2]]


def test_pairs_of_a_real_sweep():
    network = wb.topology.disc(16, 50, 50)
    over = plans.grid({"protocol": [wb.Flooding(), wb.Gossip()]}) * plans.paired_seeds(5, topology=network)
    table = wb.Sweep(scenario(), over).run(**SILENT)
    (difference,) = plans.paired_differences(table, "bytes_sent").to_dict("records")
    bytes_sent = table.to_pandas()["bytes_sent"].to_numpy()
    assert difference["pairs"] == 5
    assert difference["difference"] == pytest.approx((bytes_sent[5:] - bytes_sent[:5]).mean())


# Errors


WRONG = [
    (lambda: plans.points([]), "list of points is empty"),
    (lambda: plans.points({TTL: [1]}), "must be a list such as"),
    (lambda: plans.points([3]), "point 0 is 3; it must be a mapping"),
    (lambda: plans.points([{TTL: 3}, {LOSS: 0.0}]), "point 1 has the paths radio.loss, point 0 has protocol.ttl"),
    (lambda: plans.points([{TTL: 3}, {TTL: 4}, {TTL: 3}]), "the points 0 and 2 are both protocol.ttl=3"),
    (lambda: plans.zipped({TTL: [3, 4], "seed": [1]}), "protocol.ttl has 2 values and seed has 1 values"),
    (lambda: plans.zipped({TTL: 3}), "the values of protocol.ttl are 3"),
    (lambda: plans.zipped([3]), "must be lists of the same length"),
    (lambda: plans.seeds(3) * {"seed": [1]}, "both plans vary seed"),
    (lambda: plans.seeds(3) * 5, "a plan is 5; it must be a plan of wb.plans"),
    (lambda: plans.seeds(3) | {TTL: [1]}, "one plan varies seed and the other does not"),
    (lambda: plans.seeds(3) - {TTL: [1]}, "plan b varies protocol.ttl"),
    (lambda: plans.seeds(3) - plans.seeds(4), "every point of a is also a point of b"),
    (lambda: plans.seeds(0), "the number of seeds is 0"),
    (lambda: plans.random(0, {LOSS: plans.between(0, 1)}), "the number of points is 0"),
    (lambda: plans.random(5, {LOSS: plans.between(0, 1)}, seed=-1), "argument `seed` is -1"),
    (lambda: plans.random(5, {}), "must map paths to ranges or lists"),
    (lambda: plans.random(5, {LOSS: (0.0, 0.3)}), r"between\(0.0, 0.3\) for all numbers in between"),
    (lambda: plans.random(5, {LOSS: 3}), "the values of radio.loss are 3"),
    (lambda: plans.random(5, {3: plans.between(0, 1)}), "must be a text such as"),
    (lambda: plans.sobol(100, {LOSS: plans.between(0, 1)}), "such as 64 or 128"),
    (lambda: plans.between(1, 1), "low must be below high"),
    (lambda: plans.between("a", 1), "low is 'a'"),
    (lambda: plans.between(0, 1, log=True), "above 0"),
    (lambda: plans.between(0, float("nan")), "high is nan"),
    (lambda: plans.whole(1.5, 3), "low is 1.5"),
    (lambda: plans.whole(3, 3), "is empty; low must be below high"),
    (lambda: plans.paired_seeds(3, topology=wb.topology.line(3)), "is not random"),
    (lambda: plans.paired_seeds(3, topology=7), "argument `topology` is 7"),
    (lambda: plans.paired_seeds(3, workload=[]), "must be a function from a seed"),
    (lambda: wb.Sweep(scenario(), plans.random(5, {"radio.los": plans.between(0, 1)})), "radio"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), WRONG, ids=[message for _, message in WRONG])
def test_invalid_plans_are_refused_with_a_sentence(make, message):
    with pytest.raises(ScenarioError, match=message):
        make()


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"y": "sents"}, "did you mean sent"),
        ({"by": "protocl"}, "did you mean protocol"),
        ({"by": "seed", "x": "seed"}, "must be different"),
        ({"baseline": "z"}, "one of a, b"),
    ],
)
def test_wrong_arguments_about_pairs_are_refused_with_a_sentence(keywords, message):
    frame = pd.DataFrame({"protocol": ["a", "b"], "seed": [1, 1], "sent": [1.0, 2.0], "coverage": 1.0})
    with pytest.raises(ParameterError, match=message):
        plans.paired_differences(Table(frame, ("protocol", "seed")), **{"y": "sent", **keywords})


MODULES = ["", *(f".{module.name}" for module in pkgutil.iter_modules(plans.__path__))]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_the_docstrings_are_right(name):
    module = importlib.import_module(f"workbench.sweeps.plans{name}")
    assert doctest.testmod(module, extraglobs=vars(plans) | vars(module)).failed == 0
