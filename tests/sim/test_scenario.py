"""The scenario: a value with a JSON form and a hash, and a one-sentence error for each scenario that cannot be run."""

import json
import math
import pickle
import subprocess
import sys
import warnings
from copy import deepcopy
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.families import examples
from tests.golden import renew
from tests.repository import REPOSITORY
from workbench.errors import ParameterError, ScenarioError, WorkbenchError
from workbench.protocols.contract import Node
from workbench.protocols.diffusion.filters import register_filter
from workbench.protocols.protocol import Parameter, Protocol
from workbench.sim import radio, runner

SOIL = wb.register_key(171, "SOIL_WETNESS", "%", steps=10, minimum=0, maximum=100)


def make(**changes):
    """Return a scenario in which every kind of field occurs; the network is written node by node."""
    network = nx.DiGraph([(0, 1, {"pdr": 0.9}), (1, 0, {"pdr": 0.4}), (1, 2), (2, 1)])
    nx.set_node_attributes(network, {0: (0, 0), 1: (10, 0), 2: (20, 5.5)}, "pos")
    network.graph["walls"] = [((5, -5), (5, 5))]
    fields = {
        "topology": network,
        "protocol": wb.Diffusion(
            ttl=9,
            filters=(
                wb.Filter("running_mean", match="TEMP EQ_ANY", at=[1], window=3),
                wb.Filter("suppress_unchanged", key=201, of="SOIL_WETNESS", tolerance=0.5),
            ),
        ),
        "workload": [
            wb.subscribe(at=0, what="TEMP GE 25", expires_s=8, stop_s=6),
            wb.subscribe(at="all", what="INSTANCE IS 4", match_all=True),
            wb.publish(at=[1, 2], what=wb.SensorField(base=26), every_s=2, stagger=True),
            wb.publish(at=2, what="TEMP IS 26", start_s=1.5, payload=b"ab"),
            wb.outage(at=1, start_s=3, stop_s=4),
        ],
        "radio": wb.Radio(loss=0.1, collisions=True, csma=True, retries=2),
        "duration_s": 5,
        "seed": 7,
    }
    return wb.Scenario(**{**fields, **changes})


SCENARIO = make()
DOCUMENT = json.loads(SCENARIO.to_json())


def read(document):
    return wb.Scenario.from_json(json.dumps(document))


# --- value and JSON ---


def test_json_is_read_back_as_an_equal_scenario_with_the_same_trace():
    again = wb.Scenario.from_json(SCENARIO.to_json())
    assert again == SCENARIO and hash(again) == hash(SCENARIO) and again.to_json() == SCENARIO.to_json()
    assert again.run().trace_hash == SCENARIO.run().trace_hash
    assert again.topology.graph["walls"] == [((5, -5), (5, 5))]


@pytest.mark.parametrize(
    "topology", [wb.topology.grid(2, 3), wb.topology.disc(9, 30, 20, radius_m=15), wb.topology.office(20, rooms=4)]
)
def test_generated_network_is_stored_as_its_recipe(topology):
    scenario = wb.Scenario(topology, wb.Flooding())
    assert json.loads(scenario.to_json())["topology"]["recipe"]["kind"] == topology.graph["recipe"]["kind"]
    assert wb.Scenario.from_json(scenario.to_json()) == scenario


def test_scenario_is_frozen_and_independent_of_the_objects_it_was_made_of():
    network = nx.path_graph(3)
    scenario = wb.Scenario(network, wb.Flooding())
    network.add_edge(0, 2)
    assert not scenario.topology.has_edge(0, 2)
    with pytest.raises(nx.NetworkXError):
        scenario.topology.add_edge(0, 2)
    with pytest.raises(AttributeError):
        scenario.seed = 2


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 8},
        {"duration_s": 5.5},
        {"protocol.ttl": 10},
        {"protocol.filters": ()},
        {"radio.loss": 0.2},
        {"radio.jitter_ms": (0, 3)},
        {"workload": ()},
        {"workload.0.what": "TEMP GE 26"},
        {"workload.3.payload": b"ac"},
        {"workload.2.what": wb.SensorField(base=27)},
        {"workload.4.at": (1, 2)},
        {"topology": wb.topology.line(3)},
        {"protocol": wb.Flooding(), "seed": 1},
    ],
)
def test_scenario_with_a_replaced_field_differs_until_the_field_is_restored(changes):
    changed = SCENARIO.replace(**changes)
    assert changed != SCENARIO and changed.hash != SCENARIO.hash
    if "protocol" in changes:
        changes["protocol.filters"] = None  # restored together with the protocol
    back = {head: getattr(SCENARIO, head) for head in {path.split(".")[0] for path in changes}}
    assert changed.replace(**back) == SCENARIO


def test_replace_reaches_into_protocol_radio_and_workload():
    changed = SCENARIO.replace(**{"protocol.ttl": 4, "radio.loss": "none", "workload.0.at": 2, "seed": 3})
    assert (changed.protocol.ttl, changed.radio.loss, changed.workload[0].at, changed.seed) == (4, "none", (2,), 3)
    assert changed.protocol.filters == SCENARIO.protocol.filters and changed.workload[1:] == SCENARIO.workload[1:]


def test_replace_generates_the_network_again_with_other_arguments():
    scenario = make(topology=wb.topology.disc(20, 60, 60, radius_m=25, seed=2), workload=[])
    # Each change alone would give a disconnected network.
    changed = scenario.replace(**{"topology.nodes": 30, "topology.width_m": 120, "topology.radius_m": 30})
    assert changed == scenario.replace(topology=wb.topology.disc(30, 120, 60, radius_m=30, seed=2))
    office = scenario.replace(topology=wb.topology.office(20, rooms=4))
    lower = office.replace(**{"topology.propagation.transmit_power_dBm": -18.0})
    assert lower.topology.number_of_edges() > office.topology.number_of_edges()


@pytest.mark.parametrize(
    ("network", "path", "value", "words"),
    [
        (wb.topology.grid(3, 3), "topology.row", 4, ["'topology.row' is not an argument", "topology.rows"]),
        (wb.topology.grid(3, 3), "topology.kind", "line", ["'topology.kind' is not an argument"]),
        (wb.topology.grid(3, 3), "topology.rows", 0, ["rows is 0"]),
        (wb.topology.grid(3, 3), "topology.rows", [2], ["rows is [2]"]),
        (wb.topology.grid(3, 3), "topology.rows.more", 2, ["'topology.rows.more' is not an argument"]),
        (nx.path_graph(4), "topology.nodes", 5, ["not made by a generator", "topology.nodes"]),
    ],
)
def test_wrong_argument_of_a_network_is_named(network, path, value, words):
    with pytest.raises(ScenarioError) as error:
        make(topology=network, workload=[]).replace(**{path: value})
    for word in words:
        assert word in str(error.value)


def test_same_number_in_another_notation_is_the_same_scenario():
    whole = make(protocol=wb.Diffusion(refresh_s=30), duration_s=5, radio=wb.Radio(loss=0, jitter_ms=5))
    real = make(protocol=wb.Diffusion(refresh_s=30.0), duration_s=5.0, radio=wb.Radio(loss=0.0, jitter_ms=(0, 5.0)))
    assert whole.hash == real.hash
    assert make(seed=np.int64(7), duration_s=np.float32(5)) == SCENARIO


# --- hash ---

# Change these only with a reason: results on disk contain the hash. A new parameter is not one: see `Protocol.added`.
GOLDEN_HASH = "206f07b83673d0b3"


def golden():
    network = nx.DiGraph([(0, 1, {"pdr": 0.9}), (1, 0, {"pdr": 0.4})])
    nx.set_node_attributes(network, {0: (0, 0), 1: (10, 0)}, "pos")
    return wb.Scenario(network, wb.Flooding(), [wb.publish(at=0, what="TEMP IS 26", every_s=5)], duration_s=60, seed=7)


def test_hash_of_the_golden_scenario_is_unchanged():
    assert golden().hash == GOLDEN_HASH


# Hashes of the golden scenario files, which stay as in the release that added the file.
GOLDEN_HASHES = {
    "coded-diffusion-grid": "6979ea53ad430444",
    "coded-diffusion-partition": "240391125df44486",
    "diffusion-crashes": "8cb72b836cf72ab5",
    "diffusion-emitting": "851f37e73592f33b",
    "diffusion-grid": "c176fa8e4f03a2f2",
    "diffusion-lossy": "ee4706f263239325",
    "diffusion-merged": "f9e73af3c42b680d",
    "diffusion-motes": "836dcdb5e1c91691",
    "diffusion-paced-region": "a0647b3a3eff90c2",
    "diffusion-two-way": "12270e24b504d0c9",
    "dps-grid": "ff683e1cb339b649",
    "dps-moving": "6079754eb3114159",
    "dps-retained": "b30c205abd6a4f71",
    "flooding-disc": "722f52bdd4feeaa3",
    "flooding-link-trace": "f786a5ec39398c9b",
    "flooding-moving": "96459dbef509faf6",
    "gossip-bursts": "789eb90ec30e65ba",
    "gossip-disc": "f61610d937fd6ddb",
    "gossip-pieces-disc": "d553fb2193a43dc5",
    "pub2sub-grid": "291a507b508c33c7",
    "pub2sub-leaving": "46a7e26f514d28ce",
    "tinymq-crashes": "b51a166d8bc0ebc6",
    "tinymq-own": "c4bb941800d1c14d",
    "tinymq-printed": "32134377c34d002a",
    "tinymq-repair": "ab7b37822927fbb6",
}


@pytest.mark.parametrize("name", renew.NAMES)
def test_golden_scenario_files_keep_their_hashes(name):
    assert renew.scenario(name).hash == GOLDEN_HASHES[name]


class _Older(Protocol):
    node = Node
    parameters = (Parameter("ttl", 50, 1, 255, "hops", "why"),)


class _Newer(Protocol):
    node = Node
    parameters = (*_Older.parameters, Parameter("pause_s", 2.0, 0, 9, "s", "why"))
    added = ("pause_s",)


def test_added_parameter_is_left_out_of_file_and_hash_only_at_its_default(monkeypatch):
    monkeypatch.setattr(_Older, "public_class", classmethod(lambda cls: _Newer))
    older, newer = (make(protocol=protocol(ttl=9)) for protocol in (_Older, _Newer))
    assert older.hash == newer.hash and older.to_json() == newer.to_json()
    changed = make(protocol=_Newer(ttl=9, pause_s=3))
    assert changed.hash != older.hash and json.loads(changed.to_json())["protocol"]["pause_s"] == 3.0
    assert wb.Scenario.from_json(changed.to_json()) == changed
    assert newer.replace(**{"protocol.pause_s": 3}) == changed


def test_added_field_of_the_radio_is_left_out_of_file_and_hash_only_at_its_default(monkeypatch):
    before = make(radio=wb.Radio()).to_json()
    monkeypatch.setattr(radio, "ADDED", frozenset({"overhead_B"}))
    assert "overhead_B" in before and "overhead_B" not in make(radio=wb.Radio()).to_json()
    changed = make(radio=wb.Radio(overhead_B=7))
    assert json.loads(changed.to_json())["radio"]["overhead_B"] == 7
    assert wb.Scenario.from_json(changed.to_json()) == changed
    assert make(radio=wb.Radio()).replace(**{"radio.overhead_B": 7}) == changed


def hashes_elsewhere(scenarios, hash_seed="1"):
    """Return the hashes of scenarios that a new process reads from JSON, without the user's keys and filters."""
    code = "import sys, workbench as wb; print(*(wb.Scenario.from_json(line).hash for line in sys.stdin))"
    return subprocess.run(
        [sys.executable, "-c", code],
        input="\n".join(scenario.to_json(indent=None) for scenario in scenarios),
        env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_hash_is_the_same_in_another_process(hash_seed):
    assert hashes_elsewhere([SCENARIO, golden()], hash_seed) == [SCENARIO.hash, GOLDEN_HASH]


# --- references to keys, filters and protocols ---


def test_user_keys_are_stored_in_the_file():
    scenario = wb.Scenario(
        wb.topology.line(2),
        wb.Flooding(),
        [wb.subscribe(0, "SOIL_WETNESS GE 20"), wb.publish(1, wb.SensorField(key="SOIL_WETNESS"))],
    )
    in_filters = wb.Scenario(
        wb.topology.line(2), wb.Diffusion(filters=(wb.Filter("rate_limit", match="SOIL_WETNESS EQ_ANY"),))
    )
    in_settings = wb.Scenario(
        wb.topology.line(2), wb.Diffusion(filters=(wb.Filter("running_mean", of="SOIL_WETNESS"),))
    )
    for variant in (scenario, in_filters, in_settings):
        assert json.loads(variant.to_json())["keys"] == [list(SOIL)]
        assert hashes_elsewhere([variant]) == [variant.hash]
    assert "keys" not in json.loads(make(protocol=wb.Flooding()).to_json())


def test_key_with_another_meaning_is_an_error():
    with pytest.raises(ScenarioError, match=r"keys: .*171.*conflicts"):
        read({**DOCUMENT, "keys": [[171, "DEPTH", "int16", "m", 1, None, None]]})
    for wrong in (
        [[171]],
        5,
        [5],
        [[171, "SOIL_WETNESS", "int16", "%", "ten", 0, 100]],
        [[7, "A", "int16", "", 1, 0, 1]],
    ):
        with pytest.raises(ScenarioError, match="keys"):
            read({**DOCUMENT, "keys": wrong})


def test_registered_filter_is_stored_by_name_and_an_unregistered_one_is_refused():
    register_filter("test_scenario_drop_all", lambda attributes: None)
    scenario = make(protocol=wb.Diffusion(filters=(wb.Filter("test_scenario_drop_all"),)))
    document = json.loads(scenario.to_json())
    assert read(document) == scenario
    document["protocol"]["filters"][0]["name"] = "nobody_has_this"
    with pytest.raises(ScenarioError, match="no filter is registered as 'nobody_has_this'.*register_filter"):
        read(document)


def test_setting_that_is_not_a_plain_value_is_an_error():
    class Windowed:
        def __init__(self, window):
            self.window = window

        def decide(self, attributes, origin, now):
            return attributes

    register_filter("test_scenario_windowed", Windowed)
    scenario = make(protocol=wb.Diffusion(filters=(wb.Filter("test_scenario_windowed", window=print),)))
    with pytest.raises(ScenarioError, match="setting.*print"):
        scenario.to_json()


def test_filter_at_an_unknown_node_is_refused():
    with pytest.raises(ScenarioError, match="filter rate_limit is at node .*not have"):
        make(protocol=wb.Diffusion(filters=[wb.Filter("rate_limit", at=7)]))


class Mute(Protocol):
    """A custom protocol, outside the package."""

    node = Node


def test_custom_protocol_is_stored_with_its_module_and_never_imported_by_a_file():
    scenario = make(protocol=Mute())
    document = json.loads(scenario.to_json())
    assert document["protocol"] == {"name": f"{__name__}:Mute"} and read(document) == scenario
    for name, hint in [("nowhere:Mute", "import nowhere"), ("antigravity:x", "import"), ("Rumor", "Diffusion, Flood")]:
        with pytest.raises(ScenarioError, match=hint):
            read({**DOCUMENT, "protocol": {"name": name}})
    assert "antigravity" not in sys.modules


# --- invalid scenarios ---


@pytest.mark.family
def test_seventy_thousand_nodes_are_too_many_for_diffusions_addresses():
    network = wb.topology.line(70_000)
    with pytest.raises(ScenarioError) as error:
        wb.Scenario(network, wb.Diffusion())
    for word in ("69999", "Diffusion", "65534"):
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"topology": "grid"}, ["topology", "networkx"]),
        ({"topology": nx.DiGraph()}, ["topology", "no nodes"]),
        ({"protocol": "Diffusion"}, ["protocol", "'Diffusion'"]),
        ({"protocol": wb.Diffusion}, ["protocol", "Diffusion()"]),
        ({"radio": {}}, ["radio", "Radio("]),
        ({"workload": "TEMP GE 25"}, ["workload", "list"]),
        ({"workload": ["TEMP GE 25"]}, ["workload", "'TEMP GE 25'", "subscribe"]),
        ({"workload": [wb.outage(9, 1)]}, ["item 0", "node 9"]),
        ({"duration_s": 0}, ["duration_s", "0"]),
        ({"duration_s": math.nan}, ["duration_s", "nan"]),
        ({"duration_s": math.inf}, ["duration_s", "inf"]),
        ({"duration_s": True}, ["duration_s", "True"]),
        ({"duration_s": "60"}, ["duration_s", "'60'"]),
        ({"seed": 1.0}, ["seed", "1.0"]),
        ({"seed": False}, ["seed", "False"]),
        ({"protocol": wb.Flooding}, ["the class Flooding", "Flooding()"]),
        ({"protocol": "flooding"}, ["the text 'flooding'", "Flooding()"]),
        ({"protocol": "floodin"}, ["'floodin'", "did you mean Flooding?"]),
        ({"seed": -1}, ["seed", "-1", "0 or more"]),
    ],
)
def test_wrong_argument_is_named_with_the_allowed_values(changes, words):
    with pytest.raises(ScenarioError) as error:
        make(**changes)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("sed", 1, ["'sed'", "seed"]),
        ("protocol.hops", 1, ["'hops'", "ttl"]),
        ("protocol.ttl", 0, ["ttl", "0", "1 to 255"]),
        ("radio.power", 1, ["'power'", "loss"]),
        ("radio.loss", 2, ["loss", "2"]),
        ("topology.grid", 1, ["'topology.grid'"]),
        ("seed.0", 1, ["'seed.0'"]),
        ("workload.0.until", 1, ["'until'", "stop_s"]),
        ("workload.5.at", 1, ["'5.at'", "0 to 4"]),
        ("workload.0", 1, ["workload.N.field"]),
        ("workload.².at", 1, ["workload.N.field"]),
        ("workload.-1.at", 1, ["workload.N.field"]),
    ],
)
def test_wrong_path_of_replace_is_named(path, value, words):
    with pytest.raises((ScenarioError, ParameterError)) as error:
        SCENARIO.replace(**{path: value})
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(("argument", "words"), [("engine", ["engine", "reference"]), ("record", ["record", "trace"])])
def test_wrong_engine_or_record_is_named(argument, words):
    with pytest.raises(ScenarioError) as error:
        SCENARIO.run(**{argument: "magic"})
    for word in ["'magic'", *words]:
        assert word in str(error.value)


def test_an_error_of_a_node_during_a_run_names_the_workload_item():
    too_long = wb.publish(at=2, what="TEMP IS 26", payload=bytes(200))
    with pytest.raises(ScenarioError, match="workload item 1 at node 2: .*217 bytes.*60"):
        wb.Scenario(wb.topology.line(3), wb.Diffusion(), [wb.outage(0, 1), too_long]).run()
    hot = wb.publish(at="all", what=wb.SensorField(key="HUMIDITY", base=200))
    with pytest.raises(ScenarioError, match="workload item 0 at node 0: HUMIDITY is .* 100"):
        wb.Scenario(wb.topology.line(3), wb.Diffusion(), [hot]).run()


# --- files ---


@pytest.mark.parametrize("text", ["", "{", "nonsense", "[" * 100_000, "1" * 5000, None, "[]", "5", '{"format": "x"}'])
def test_text_that_is_not_a_scenario_is_refused(text):
    with pytest.raises(ScenarioError, match="the scenario is|the text is not a scenario"):
        wb.Scenario.from_json(text)


def places(value, path=()):
    """Yield the path of every value in a JSON document."""
    yield path
    for key, child in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(child, (*path, key))


def put(document, path, value):
    """Return a copy of a document with another value at a path."""
    if not path:
        return value
    document = deepcopy(document)
    parent = document
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    return document


LACKING = object()
WRONG_FIELDS = [
    ("format", "pcap", ["format", "workbench-scenario"]),
    ("version", 2, ["version", "2", "1"]),
    ("speed", 1, ["'speed'", "seed"]),
    ("topology", LACKING, ["no topology"]),
    ("protocol", LACKING, ["no protocol"]),
    ("topology", 5, ["topology", "5"]),
    ("topology.nodes", 5, ["nodes", "[node, x_m, y_m]"]),
    ("topology.nodes.1.2", "far", ["Entry 1", "nodes", "'far'"]),
    ("topology.links.0.2", 1.5, ["Entry 0", "links", "1.5"]),
    ("protocol", "Diffusion", ["protocol", "name"]),
    ("protocol.name", "Diffuse", ["protocol", "'Diffuse'", "Diffusion"]),
    ("protocol.hops", 3, ["protocol", "'hops'", "ttl"]),
    ("protocol.ttl", "many", ["protocol", "ttl", "'many'", "1 to 255"]),
    ("protocol.ttl", None, ["protocol", "ttl", "None"]),
    ("protocol.profile", "narrow", ["profile", "'narrow'", "'strict'"]),
    ("protocol.filters", {}, ["filters", "list"]),
    ("protocol.filters.0", 5, ["filter", "5"]),
    ("protocol.filters.0.name", "mean", ["filter", "'mean'", "running_mean"]),
    ("protocol.filters.0.key", 100, ["filter", "100", "200 to 250"]),
    ("protocol.filters.0.at", [9], ["filter", "9"]),
    ("protocol.filters.0.match", "HEAT GE 5", ["HEAT"]),
    ("protocol.filters.0.settings.windows", 2, ["running_mean", "'windows'", "window"]),
    ("protocol.filters.0.settings.window", 0, ["running_mean", "window", "0", "1 to 100"]),
    ("workload", {}, ["workload", "list"]),
    ("workload.0.subscribe.what", "HEAT GE 5", ["workload item 0", "HEAT", "TEMP"]),
    ("workload.0.subscribe.what", LACKING, ["workload item 0", "what"]),
    ("workload.0.subscribe.at", 9, ["workload item 0", "9", "0 to 2"]),
    ("workload.0.subscribe.expires_s", "long", ["workload item 0", "expires_s", "'long'"]),
    ("workload.2.publish.what.bases", 5, ["workload item 2", "'bases'", "base"]),
    ("workload.2.publish.what.base", None, ["workload item 2", "base", "None"]),
    ("workload.2.publish.stagger", "yes", ["workload item 2", "stagger", "'yes'"]),
    ("workload.3.publish.payload", "6x", ["workload item 3", "payload", "'6x'"]),
    ("workload.4.outage.stop_s", 1, ["workload item 4", "stop_s", "1"]),
    ("radio", [], ["radio", "loss"]),
    ("radio.power", 5, ["radio", "'power'", "loss"]),
    ("radio.loss", "some", ["Radio", "loss", "'some'", '"links"']),
    ("radio.collisions", "no", ["Radio", "collisions", "'no'", "True or False"]),
    ("radio.jitter_ms", [5, 1], ["Radio", "jitter_ms", "lowest"]),
    ("radio.jitter_ms", [0, 1e12], ["Radio", "jitter_ms", "1,000,000"]),
    ("radio.retries", -1, ["Radio", "retries", "-1", "0 to 100"]),
    ("duration_s", "1 min", ["duration_s", "'1 min'"]),
    ("seed", 1.5, ["seed", "1.5"]),
]


@pytest.mark.parametrize(("path", "value", "words"), WRONG_FIELDS, ids=lambda x: x if isinstance(x, str) else "")
def test_wrong_field_of_a_file_is_named_with_the_allowed_values(path, value, words):
    keys = tuple(int(key) if key.isdecimal() else key for key in path.split("."))
    document = put(DOCUMENT, keys, value)
    if value is LACKING:
        parent = document
        for key in keys[:-1]:
            parent = parent[key]
        del parent[keys[-1]]
    with pytest.raises(ScenarioError) as error:
        read(document)
    for word in words:
        assert word in str(error.value)
    assert "\n" not in str(error.value)


def accepted(text):
    """Return the scenario of a text, or None if it is refused with a ScenarioError."""
    try:
        return wb.Scenario.from_json(text)
    except ScenarioError:
        return None
    except WorkbenchError as error:
        raise AssertionError(f"{error!r} should have been a ScenarioError") from error


NASTY = [None, True, 0, -1, 10**30, 1.5, 1e308, math.inf, math.nan, "", "x", "²", "\ud800", [], [[]], {}, {"x": 1}]


@pytest.mark.parametrize("field", list(DOCUMENT))
def test_nasty_value_in_any_field_is_refused_or_read_consistently(field):
    for path in places(DOCUMENT):
        if path[:1] == (field,):
            for value in NASTY:
                for put_there in (value, [value], {"name": value}):
                    scenario = accepted(json.dumps(put(DOCUMENT, path, put_there)))
                    assert scenario is None or wb.Scenario.from_json(scenario.to_json()) == scenario


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=6,
)
RECIPE = json.loads(wb.Scenario(wb.topology.grid(2, 2), wb.Flooding()).to_json())


@settings(max_examples=examples(300))
@given(st.sampled_from([DOCUMENT, RECIPE]), st.data(), JSON)
def test_randomly_changed_document_is_refused_or_read_consistently(document, data, value):
    path = data.draw(st.sampled_from(list(places(document))))
    scenario = accepted(json.dumps(put(document, path, value)))
    assert scenario is None or wb.Scenario.from_json(scenario.to_json()) == scenario


def test_a_pickled_scenario_is_equal():
    scenario = wb.Scenario(topology=wb.topology.grid(3, 3), protocol=wb.Flooding())
    copy = pickle.loads(pickle.dumps(scenario))
    assert copy == scenario
    assert copy.replace(seed=2) == scenario.replace(seed=2)
    assert copy.replace(seed=2).topology is copy.topology  # workers of a sweep also check the network once


def test_a_run_warns_of_items_that_start_after_its_end():
    items = [wb.publish(at=0, what="TEMP IS 26"), wb.publish(at=0, what="TEMP IS 26", start_s=20), wb.outage(1, 30)]
    scenario = wb.Scenario(wb.topology.line(2), wb.Flooding(), items, duration_s=20)
    with pytest.warns(UserWarning) as caught:
        scenario.run(engine="reference")
    (warned,) = caught
    assert str(warned.message) == (
        "2 workload items never happen: item 1 starts at 20 s, and the run ends at 20 s; "
        "choose an earlier start_s or a longer duration_s"
    )
    assert warned.filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scenario.replace(duration_s=31).run(engine="reference")
        runner.play(scenario, engine="reference")  # the call of sweeps and of the lab


def test_a_mapping_replaces_the_published_attributes():
    scenario = wb.Scenario(wb.topology.line(2), wb.Flooding(), [wb.publish(at=0, what="TEMP IS 26")])
    changed = scenario.replace(**{"workload.0.what": {"TEMP": 27}})
    assert changed == scenario.replace(**{"workload.0.what": "TEMP IS 27"})
    assert scenario.replace(**{"workload.0.what": {"base": 5.0}}).workload[0].what == wb.SensorField(base=5.0)


def test_a_path_instead_of_json_is_refused_with_the_call_that_reads_it():
    for path in ("out/scenario.json", Path("out/scenario.json")):
        with pytest.raises(ScenarioError, match=r"from_json takes the text of a file, Path\(...\).read_text\(\)"):
            wb.Scenario.from_json(path)


def test_a_metric_used_as_an_attribute_of_a_run_raises_an_error_that_shows_where_it_is():
    run = wb.Scenario(wb.topology.line(2), wb.Flooding(), duration_s=1).run(engine="reference")
    with pytest.raises(AttributeError, match=r"it is a metric: run.metrics\['delivery_ratio'\]"):
        _ = run.delivery_ratio
    with pytest.raises(AttributeError, match=r"did you mean metrics\?"):
        _ = run.metric
    assert not hasattr(run, "_frame") and pickle.loads(pickle.dumps(run)).metrics.equals(run.metrics)
    assert repr(run).startswith("Run(Scenario(2 nodes, Flooding(), 0 workload items, ")
