"""The peak memory of nodes: the bytes of hand-worked states, and the peaks of runs."""

import os
import subprocess
import sys
from array import array
from collections import deque
from enum import Enum

import pytest

import workbench as wb
from workbench.analysis.node_memory import Ruler, measure
from workbench.coding.rlnc import Decoder
from workbench.draws import Stream
from workbench.errors import ParameterError, ScenarioError
from workbench.protocols.contract import Node
from workbench.protocols.dps.bloom import BitVector, CountingVector
from workbench.sim.trace import Recorder

SINKS = [wb.subscribe(sink, f"TEMP GE {sink}", start_s=1) for sink in (0, 2, 6, 8)]
READINGS = wb.publish(4, "TEMP IS 25", start_s=5, every_s=0.5)
GRID = wb.Scenario(wb.topology.grid(3, 3), wb.Flooding(), [*SINKS[:1], READINGS], duration_s=15)


class Color(Enum):
    RED = 1


class Slots:
    __slots__ = ("__hidden", "unset")

    def __init__(self, hidden):
        self.__hidden = hidden


class Fields:
    """A state as a node may hold it."""

    def __init__(self, **fields):
        vars(self).update(fields)


def state_B(**fields):
    return Ruler().measure(Fields(**fields))


@pytest.mark.parametrize(
    ("value", "size_B"),
    [
        (0, 4),
        ((1 << 32) - 1, 4),
        (-(1 << 31), 4),
        (1 << 32, 8),
        (-(1 << 31) - 1, 8),
        ((1 << 64) - 1, 8),
        (-(1 << 63), 8),
        (-(1 << 63) - 1, 12),
        (1 << 127, 16),
        (True, 1),
        (1.5, 8),
        (None, 4),
        (Color.RED, 1),
        (b"abc", 3),
        ("grün", 5),
        ((1, (b"ab", None)), 10),
        (frozenset((1, 2)), 8),
        ([], 4),
        ([1, 2, 3], 16),
        ({(1, 2): True}, 13),
        ({1, 2}, 12),
        (deque((1, 2)), 12),
        (bytearray(5), 9),
        (Slots((1, 2)), 12),
        (Slots, 0),
        (len, 0),
        (Stream(1), 0),
        (wb.Flooding(), 0),
        (BitVector(128, 1), 4 + 16 + 4),
    ],
)
def test_each_kind_of_value_has_its_bytes(value, size_B):
    assert state_B(value=value) == size_B
    assert state_B(value=value, other=7) == size_B + 4


def test_an_object_counts_once_and_a_value_wherever_it_is_stored():
    neighbors, pair = [1, 2], (3, 4)
    assert state_B(first=neighbors, second=neighbors) == 4 + 8 + 4
    assert state_B(first=pair, second=pair) == state_B(first=(3, 4), second=(1 + 2, 4)) == 8 + 8
    state = Fields(table=Fields())
    state.table.owner = state  # a reference back to the node
    assert Ruler().measure(state) == 4 + 4


def test_a_hand_worked_node():
    node = Node(7, wb.Flooding(), Stream(1))
    # address, next_wake and first_number; subscriptions: its reference, the reference to the empty list, and `added`
    assert Ruler().measure(node) == 3 * 4 + 4 + 4 + 4
    node.outbox.append((None, b"frame"))
    node.drop(3, "flood", 1, 1, "duplicate")
    node.tells_all = False
    assert Ruler().measure(node) == 24
    subscription = node.subscribe(wb.parse("TEMP GE 20"), 0)
    # added: reference to the subscription; its attribute (three integers), node, number, expires_us, request
    assert Ruler().measure(node) == 24 + 4 + 12 + 4 * 4
    subscription.put(wb.parse("TEMP IS 25"))
    assert Ruler().measure(node) == 24 + 32


def test_a_class_states_the_bytes_of_its_content():
    counters = CountingVector(128)
    assert state_B(counters=counters) == 4 + 8
    for _ in range(2):
        counters.add(BitVector(128, 1))
    assert state_B(counters=counters) == 4 + 8 + 2 * 16
    decoder = Decoder(4)
    assert state_B(decoder=decoder) == 4 + 20
    decoder.add((1, 2, 3, 4), bytes(10))
    assert state_B(decoder=decoder) == 4 + 20 + 4 + (4 + 10)


def test_an_object_of_unknown_bytes_is_an_error():
    with pytest.raises(
        ScenarioError, match=r"a node holds an object of type array\.array, whose size is unknown; store"
    ):
        state_B(value=array("H", (1, 2)))


@pytest.mark.parametrize("protocol", [wb.Flooding(), wb.Diffusion(), wb.TinyMQ(), wb.DPS()], ids=str)
def test_measuring_does_not_change_the_run(protocol):
    scenario = GRID.replace(protocol=protocol, radio=wb.Radio(loss=0.2, retries=2, collisions=True, csma=True))
    recorder = Recorder()
    measure(scenario, recorder)
    assert recorder.table().equals(scenario.run(engine="reference").trace)


def test_the_peaks_are_those_of_the_nodes_states():
    peaks = wb.memory(GRID)
    assert list(peaks.index) == list(range(9)) and list(peaks.columns) == ["peak_B", "peak_s"]
    # Flooding: 24 B of every node, ttl, `_published`; `_known`: reference, two references, `size`, `_oldest`; an id of
    # two integers in a list and in a dictionary with True. The publisher holds all 20 readings at 14.5 s.
    assert peaks.peak_B[4] == 24 + 8 + 20 + 20 * (8 + 8 + 1) and peaks.peak_s[4] == 14.5
    assert peaks.peak_B[0] == peaks.peak_B[4] + 32  # a sink
    assert (wb.memory(GRID, every_s=3) <= peaks).peak_B.all()
    assert wb.memory(GRID, every_s=100).peak_B.equals(peaks.peak_B)  # nothing is forgotten, so the end has the peak


@pytest.mark.parametrize("protocol", [wb.Flooding, wb.Gossip])
def test_floods_are_bounded_by_their_memory_of_ids(protocol):
    few, more, most = (wb.memory(GRID.replace(protocol=protocol(max_events=size))).peak_B for size in (5, 10, 1000))
    assert (more - few).eq(5 * 17).all() and (most > more).all()
    assert wb.memory(GRID.replace(protocol=protocol(max_events=5), duration_s=30)).peak_B.equals(few)


def test_every_node_of_diffusion_grows_with_each_subscription_and_of_flooding_only_the_sink():
    for protocol, grows in ((wb.Diffusion(), range(9)), (wb.Flooding(), [2])):
        fewer_B, more_B = (
            wb.memory(GRID.replace(protocol=protocol, workload=SINKS[:count])).peak_B for count in (1, 2)
        )
        assert list(more_B.index[more_B > fewer_B]) == list(grows) and (more_B >= fewer_B).all()


DETERMINISM = """
import workbench as wb
items = [wb.subscribe(0, "TEMP GE 20", start_s=1), wb.publish(8, "TEMP IS 25", start_s=3)]
peaks = wb.memory(wb.Scenario(wb.topology.grid(3, 3), wb.DPS(), items, duration_s=5))
"""


def test_another_process_measures_the_same():
    names: dict = {}
    exec(DETERMINISM, names)
    hash_seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    output = subprocess.run(
        [sys.executable, "-c", DETERMINISM + "print(peaks.to_json())"],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    assert output.strip() == names["peaks"].to_json()


@pytest.mark.parametrize("every_s", [-1, "1", None, float("inf"), True])
def test_an_invalid_interval_is_an_error(every_s):
    with pytest.raises(ParameterError, match="memory: every_s is .*; it must be a number of seconds from 0 to 1e9"):
        wb.memory(GRID, every_s=every_s)


def test_a_comparison_has_a_row_for_each_protocol():
    protocols = [wb.Flooding(), wb.Diffusion()]
    compared = wb.compare(GRID, protocols, {"sinks": (1, 3)}, seeds=2, runner=wb.LocalRunner(), progress=False)
    table = compared.memory()
    assert list(table.columns) == ["protocol", "median_B", "max_B", "node", "peak_s"]
    assert list(table.protocol) == ["Flooding", "Diffusion"]
    peaks = wb.memory(GRID.replace(protocol=wb.Diffusion(), seed=1)).peak_B
    diffusion = table.iloc[1]
    assert (diffusion.median_B, diffusion.max_B, diffusion.node) == (peaks.median(), peaks.max(), peaks.idxmax())
    with pytest.raises(
        ParameterError, match="argument `max_nodes` is 8, and the network has 9 nodes; pass max_nodes=9"
    ):
        compared.memory(max_nodes=8)
