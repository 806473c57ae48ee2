"""The drivers of physical boards, unchanged, on MicroPython with fakes of the boards' modules; never on hardware.

Each fault that a fake injects must be survived, and its count must reach the host. `boards.Board` is a fake board.
"""

import json
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager

import pandas as pd
import pytest

import workbench as wb
from tests.motes.boards import ACCESS_POINT, KEY, MICROPYTHON, WHY_MISSING, Board
from tests.motes.test_udp import broadcasts_work
from tests.until import wait_until
from workbench import motes
from workbench.attributes.model import IS, with_payload
from workbench.errors import LinkError
from workbench.motes.events import event_names
from workbench.motes.mote import Mote
from workbench.motes.program import write_program
from workbench.motes.session import protocol_on_a_mote

pytestmark = [
    pytest.mark.skipif(MICROPYTHON is None, reason=WHY_MISSING),
    pytest.mark.skipif(not broadcasts_work(), reason="loopback carries no UDP broadcasts here"),
]
ESP32 = {"board": "esp32-espnow"}
PICO = {"board": "pico-udp", "wifi": ACCESS_POINT, "target": {"address": "127.255.255.255"}}
ESP32_UDP = {**PICO, "board": "esp32-udp"}
GATEWAY = {**PICO, "board": "esp32-espnow"}
SERIAL = {"board": "serial-radio", "pins": {"radio_tx": 4, "radio_rx": 5}}
NAMES = event_names(())
TEMPERATURE = 51


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """Return a folder for the programs of the boards."""
    return tmp_path_factory.mktemp("programs")


@pytest.fixture
def ports():
    """Return two free UDP ports: of the medium of ESP-NOW and serial radios, and of UDP radios."""
    with ExitStack() as sockets:
        free = [sockets.enter_context(socket.socket(type=socket.SOCK_DGRAM)) for _ in range(2)]
        for end in free:
            end.bind(("127.255.255.255", 0))
        return [end.getsockname()[1] for end in free]


@pytest.fixture
def make_board(programs, tmp_path, ports):
    """Yield a function that starts a fake board; every board ends with the test, without a traceback."""
    made = []
    with ExitStack() as ends:

        def make(settings, **fake):
            number = len(made) + 1
            made.append(Board(programs, tmp_path / str(number), settings, number, ports[0], **fake))
            ends.callback(made[-1].close)
            return made[-1]

        yield make
        assert [board.errors for board in made] == [""] * len(made)


class Pair:
    """A sink (node 1) and a source (node 2) on two boards, without a live run; ``reports`` are the sink's and source's.

    The two nodes run flooding.
    """

    def __init__(self, ends, boards, port, **radio):
        self.boards = boards
        self.reports = [[], []]
        opened = [Mote(board.url, self._append_to(self.reports[i])) for i, board in enumerate(boards)]
        self.sink, self.source = self.motes = [ends.enter_context(mote) for mote in opened]
        self.radio = {"port": port, "jitter_ms": 0, **radio}
        for node, mote in enumerate(self.motes, 1):
            mote.configure(node, protocol_on_a_mote(wb.Flooding()), node, radio=self.radio)
        self.sink.subscribe(wb.parse("TEMP GE 25"))
        self.published = 0

    @staticmethod
    def _append_to(reports):
        return lambda kind, value: reports.append((kind, value))

    def events(self, name, end=0):
        """Return the events of a name that an end (0: sink, 1: source) has reported."""
        return [value for kind, value in list(self.reports[end]) if kind == "event" and NAMES.get(value[1]) == name]

    def faults(self, end=0):
        """Return {name: last count} of the faults that an end has reported."""
        return {row[8].partition(":")[0]: row[7] for row in self.events("radio_fault", end)}

    def deliver(self, count=1):
        """Publish, again and again, until ``count`` further readings have arrived."""
        arrived = len(self.events("delivered")) + count
        waited = [0]

        def has_arrived():
            if waited[0] % 10 == 0:
                self.source.publish(wb.parse("TEMP IS 26"))
                self.published += 1
            waited[0] += 1
            return len(self.events("delivered")) >= arrived

        wait_until(has_arrived)


@pytest.fixture
def pair(make_board, ports):
    """Yield a function that makes a `Pair` of two boards with the given settings; ``faults`` are the sink's."""
    with ExitStack() as ends:

        def make_pair(settings, faults=None, source_faults=None, radio=None, other=None, **fake):
            boards = make_board(settings, faults=faults, **fake), make_board(other or settings, faults=source_faults)
            return Pair(ends, boards, ports[1], **(radio or {}))

        yield make_pair


@pytest.mark.parametrize("settings", [ESP32, ESP32_UDP, PICO, SERIAL], ids=lambda settings: settings["board"])
def test_readings_are_delivered_by_each_driver(pair, settings):
    boards = pair(settings)
    assert [mote.greeting.board for mote in boards.motes] == [settings["board"]] * 2
    assert all(mote.greeting.has_radio for mote in boards.motes)
    boards.deliver(3)
    assert boards.sink.allocated_B() > 0


def test_rssi_of_received_frames_is_the_value_of_their_events(pair):
    boards = pair(ESP32)
    boards.deliver()
    assert {row[7] for row in boards.events("received")} == {-43}  # as espnow.py, the fake, measures it
    assert {row[7] for row in boards.events("sent", 1)} == {0}


def test_a_board_learns_its_links_from_beacons_with_their_rssi(pair):
    boards = pair(ESP32, radio={"link_quality": "learned"})
    wait_until(lambda: [row for row in boards.events("received") if row[3] == "beacon"])
    assert {row[7] for row in boards.events("received") if row[3] == "beacon"} == {-43}
    boards.deliver()


def test_a_board_with_espnow_and_wifi_connects_the_nodes_of_both(make_board, ports):
    boards = make_board(ESP32), make_board(PICO), make_board(GATEWAY)
    with ExitStack() as ends:
        pair = Pair(ends, boards[:2], ports[1])
        gateway = ends.enter_context(Mote(boards[2].url))
        gateway.configure(3, protocol_on_a_mote(wb.Flooding()), 3, radio=pair.radio)
        pair.deliver(2)
    assert {row[2] for row in pair.events("received")} == {3}


# Faults: {fault of the fake: the fault that the sink or the source counts}

OF_SINK = [
    (ESP32, "irecv_silent", 3, {"quiet_s": 1}, "silent"),
    (ESP32, "irecv_stuck", 3, {}, "stuck"),
    (ESP32, "memory_error", 2, {}, "no_heap"),
    (ESP32, "buffer_error", 2, {}, "damaged"),
    (PICO, "udp_silent", 3, {"quiet_s": 1}, "silent"),
    (PICO, "disconnected", 4, {}, "no_network"),
]
OF_SOURCE = [
    (ESP32, "no_mem", 4, {}, "no_mem"),
    (ESP32, "no_mem_once", 2, {}, "no_mem"),
    (PICO, "send_refused", 3, {}, "refused"),
    (ESP32_UDP, "send_refused", 3, {}, "refused"),
]


def mostly_family(cases, few=1):
    """Return parameters of a test: the first few in each run of the tests, the others with the marker `family`."""
    return [case if i < few else pytest.param(*case, marks=pytest.mark.family) for i, case in enumerate(cases)]


@pytest.mark.parametrize(
    ("settings", "fault", "when", "radio", "counted"), mostly_family(OF_SINK), ids=lambda value: str(value)[:20]
)
def test_a_fault_while_receiving_is_survived_and_counted(pair, settings, fault, when, radio, counted):
    boards = pair(settings, faults={fault: when}, radio=radio)
    wait_until(lambda: boards.deliver() or fault in boards.boards[0].injected)
    boards.deliver(3)
    wait_until(lambda: boards.faults().get(counted))
    assert boards.boards[0].injected == [fault]


@pytest.mark.parametrize(
    ("settings", "fault", "when", "radio", "counted"), mostly_family(OF_SOURCE), ids=lambda value: str(value)[:20]
)
def test_a_fault_while_sending_is_survived_and_counted(pair, settings, fault, when, radio, counted):
    boards = pair(settings, source_faults={fault: when}, radio=radio)
    wait_until(lambda: boards.deliver() or fault in boards.boards[1].injected)
    boards.deliver(3)
    wait_until(lambda: boards.faults(1).get(counted))
    assert boards.boards[1].injected == [fault]
    assert ("restarts" in boards.faults(1)) == (fault != "no_mem_once")


@pytest.mark.family
def test_a_full_receive_buffer_is_counted(pair):
    boards = pair(ESP32, radio={"rxbuf": 100})

    def publish_and_look():
        boards.source.publish(with_payload(wb.parse("TEMP IS 26"), bytes(100)))
        return boards.faults().get("overrun")

    wait_until(publish_and_look)
    boards.deliver()


def test_noise_on_a_serial_radio_is_detected_and_counted(pair):
    boards = pair(SERIAL, source_faults={"noise": 2})
    boards.deliver(3)
    wait_until(lambda: boards.faults().get("damaged") == 1)
    assert boards.boards[1].injected == ["noise"]


def test_a_frame_that_is_too_long_for_espnow_is_dropped_and_counted(pair):
    boards = pair(ESP32)
    boards.source.publish(with_payload(wb.parse("TEMP IS 26"), bytes(240)))
    wait_until(lambda: boards.faults(1).get("too_long") == 1)
    boards.deliver()


@pytest.mark.family
def test_unicasts_of_espnow_are_acknowledged_and_a_silent_neighbor_is_reported(make_board, ports):
    boards = make_board(ESP32), make_board(ESP32)
    with ExitStack() as ends:
        pair = Pair(ends, boards, ports[1])
        for node, mote in enumerate(pair.motes, 1):
            mote.configure(node, protocol_on_a_mote(wb.Diffusion(tick_s=0.05)), node, radio=pair.radio)
        pair.sink.subscribe(wb.parse("TEMP GE 25"))
        pair.deliver(4)
        assert [row for row in pair.events("sent", 1) if row[2] == 1]  # to the sink alone
        assert [row for row in pair.events("received") if row[2] == 2]


# Settings, starts, sensors


def test_a_wrong_wifi_key_is_reported_and_a_right_one_is_used_after_a_reset(pair):
    boards = pair({**PICO, "wifi": {**ACCESS_POINT, "key": "not this one"}}, other=PICO)
    wait_until(lambda: boards.faults().get("wrong_key") == 1)
    [row] = [row for row in boards.events("radio_fault") if row[8].startswith("wrong_key")]
    assert row[8] == "wrong_key: the access point refuses the Wi-Fi key; provision the board with the right one"
    sink = boards.boards[0]
    (sink.folder / "settings.json").write_text(json.dumps(PICO))
    sink.press_reset()
    wait_until(lambda: [value for kind, value in list(boards.reports[0]) if kind == "ready" and value.boot == 1])
    boards.sink.configure(1, protocol_on_a_mote(wb.Flooding()), 1, radio=boards.radio)
    boards.sink.subscribe(wb.parse("TEMP GE 25"))
    boards.deliver()
    assert not any(secret in str(boards.reports) for secret in (KEY, "not this one", ACCESS_POINT["name"]))


def test_frames_before_the_board_is_connected_are_lost_and_do_not_end_the_attempt(pair):
    boards = pair(PICO, connecting_ms=1500, radio={"quiet_s": 0.5})
    for _ in range(20):
        boards.sink.publish(wb.parse("TEMP IS 20"))
    boards.deliver()
    faults = boards.faults()
    assert faults["lost"] >= 20 and "restarts" not in faults


@pytest.mark.family
def test_a_board_with_a_wrong_wifi_key_is_noted_and_the_run_of_the_others_continues(make_board, ports):
    wrong = {**PICO, "wifi": {**ACCESS_POINT, "key": "not this one"}}
    urls = {node: make_board(settings).url for node, settings in enumerate([PICO, PICO, wrong])}
    workload = [wb.subscribe(0, "TEMP GE 25")]
    workload += [wb.publish(node, "TEMP IS 26", start_s=0.5, every_s=0.3) for node in (1, 2)]
    scenario = wb.Scenario(wb.topology.grid(1, 3), wb.Flooding(), workload, duration_s=4)
    run = scenario.run(on=motes.boards(urls, radio={"port": ports[1], "jitter_ms": 20}))
    assert run.wait(240)
    delivered = [row["origin"] for row in run.trace.to_pylist() if row["event"] == "delivered"]
    assert delivered.count(1) >= 5 and 2 not in delivered
    [note] = [note for note in run.notes if "wrong_key" in note]
    assert "node 2" in note and "the access point refuses the Wi-Fi key; provision the board with the right one" in note
    assert "not this one" not in str(run.notes) + str(run.trace.to_pylist())


@pytest.mark.family
def test_a_missing_access_point_is_reported(pair):
    boards = pair({**PICO, "wifi": {"name": "elsewhere", "key": KEY}}, other=PICO)
    wait_until(lambda: boards.faults().get("no_access_point") == 1)


@pytest.mark.parametrize(
    ("settings", "contents", "sentence"),
    [
        (SERIAL, "", "settings.json is not valid JSON"),
        (PICO, '{"board": "pico-udp"}', "wifi is missing; a board pico-udp needs"),
        (PICO, '{"board": "esp32-espnow"}', "settings.json is for the driver esp32-espnow, the program has the driver"),
    ],
)
def test_a_board_without_valid_settings_answers_and_states_the_reason(make_board, settings, contents, sentence):
    board = make_board(settings)
    (board.folder / "settings.json").write_text(contents)
    board.press_reset()
    with Mote(board.url) as mote, pytest.raises(LinkError, match=sentence):
        mote.configure(1, protocol_on_a_mote(wb.Flooding()), 1)


def test_the_boot_count_persists_over_resets(make_board):
    board = make_board(ESP32)
    for boots in range(3):
        with Mote(board.url) as mote:
            assert mote.greeting.boot == boots
        board.press_reset()


def test_a_board_without_a_radio_uses_the_hosts(make_board):
    with Mote(make_board({"board": "serial-radio"}).url) as mote:
        assert not mote.greeting.has_radio


@pytest.mark.parametrize(
    ("sensor", "value"),
    mostly_family(
        [
            ({"kind": "bme280"}, 2508),
            ({"kind": "chip"}, 2699),
            ({"kind": "adc", "scale": 0.1, "offset": -100}, 600),
            ({"kind": "log", "values": [5, 7]}, 5),
            ({"kind": "dht22"}, 2150),
            ({"kind": "dht22", "quantity": "humidity"}, 4020),
            ({"kind": "bme280", "quantity": "pressure", "per_unit": 10}, 10065),
        ]
    ),
    ids=str,
)
def test_a_sensor_of_the_board_publishes_its_readings(make_board, sensor, value):
    pins = {"adc": 7, "data": 3, "sda": 4, "scl": 5}
    board = make_board({**ESP32, "pins": pins, "sensor": {**sensor, "key": TEMPERATURE, "every_ms": 50}})
    reports = []
    with Mote(board.url, lambda *report: reports.append(report)) as mote:
        mote.configure(1, protocol_on_a_mote(wb.Flooding()), 1, radio={})
        wait_until(lambda: published(reports))
    [attribute] = published(reports)[0]
    assert (attribute.key, attribute.operator, attribute.value) == (TEMPERATURE, IS, value)


def published(reports):
    """Return the attributes of the readings that a mote has published."""
    return [value[8] for kind, value in list(reports) if kind == "event" and NAMES.get(value[1]) == "published"]


@pytest.mark.family
def test_a_sensor_that_does_not_answer_once_is_reported_and_read_again(make_board):
    sensor = {"kind": "dht22", "key": TEMPERATURE, "every_ms": 50}
    board = make_board({**ESP32, "pins": {"data": 3}, "sensor": sensor}, faults={"dht_silent": 2})
    reports = []
    with Mote(board.url, lambda *report: reports.append(report)) as mote:
        mote.configure(1, protocol_on_a_mote(wb.Flooding()), 1, radio={})
        wait_until(lambda: board.injected and len(published(reports)) >= 3)
    problems = [value[8] for kind, value in reports if kind == "event" and NAMES.get(value[1]) == "told"]
    assert problems == ["the mote failed: OSError(110,)"]


# A network of ten boards, a process and two simulated nodes: ESP-NOW to the left of node 5, UDP to its right

LINKS = [
    (11, 0),
    (0, 1),
    (0, 2),
    (1, 3),
    (2, 4),
    (3, 5),
    (4, 5),
    (5, 6),
    (5, 7),
    (6, 8),
    (7, 9),
    (8, 10),
    (9, 10),
    (9, 12),
]
SETTINGS = [ESP32] * 5 + [GATEWAY] + [PICO] * 4
FAULTS = {  # of the boards of nodes 1 to 9
    1: {"irecv_silent": 8},
    2: {"irecv_stuck": 10},
    3: {"no_mem": 5},
    4: {"memory_error": 5, "buffer_error": 9, "no_mem_once": 3},
    6: {"send_refused": 5},
    7: {"udp_silent": 10},
    8: {"disconnected": 5},
}
COUNTED = {fault: counted for _, fault, _, _, counted in (*OF_SINK, *OF_SOURCE)}


@pytest.mark.family
def test_six_esp32_and_four_pico_w_deliver_in_one_network_and_survive_each_fault(make_board, tmp_path, ports):
    urls = {
        node: make_board(settings, faults=FAULTS.get(node), loss=0.03, duplication=0.05).url
        for node, settings in enumerate(SETTINGS)
    }
    with ExitStack() as ends:
        urls[10] = ends.enter_context(process_mote(tmp_path / "process"))
        urls.update({11: "simulated", 12: "simulated"})
        links = [{"transmitter": i, "receiver": j, "pdr": 1.0} for a, b in LINKS for i, j in ((a, b), (b, a))]
        topology = wb.topology.from_links(pd.DataFrame(links))
        sources = [3, 4, 7, 9, 10, 12]
        workload = [wb.subscribe(sink, "TEMP GE 25") for sink in (0, 8, 11)]
        workload += [wb.publish(node, "TEMP IS 26", start_s=1 + node / 10, every_s=0.5) for node in sources]
        scenario = wb.Scenario(topology, wb.Flooding(), workload, duration_s=12)
        run = scenario.run(on=motes.boards(urls, radio={"port": ports[1], "quiet_s": 3, "jitter_ms": 20}))
        assert run.wait(240)
    rows = run.trace.to_pylist()
    delivered = {(row["node"], row["origin"]) for row in rows if row["event"] == "delivered"}
    assert delivered == {(sink, source) for sink in (0, 8, 11) for source in sources}
    heard = [row for row in rows if row["event"] == "received"]
    faults = [row for row in rows if row["event"] == "radio_fault"]
    counted = {(row["node"], row["detail"].partition(":")[0]): row["time_us"] for row in faults}
    for node, injected in FAULTS.items():
        for fault in injected:
            assert any(row["node"] == node and row["time_us"] > counted[node, COUNTED[fault]] for row in heard), fault
    with_rssi = {(row["node"], row["peer"]) for row in heard if row["value"] < 0}
    assert with_rssi == {pair for a, b in LINKS[1:7] for pair in ((a, b), (b, a))}
    assert not [row for row in heard if row["value"] > 0]
    assert {(row["node"], row["peer"]) for row in heard} == {pair for a, b in LINKS for pair in ((a, b), (b, a))}
    assert run.kinds[5] == "esp32-espnow" and run.kinds[10] == "process" and run.kinds[12] == "simulated"
    assert not any(secret in str(rows) + str(run.notes) for secret in ACCESS_POINT.values())


@contextmanager
def process_mote(folder):
    """Start a mote that is a process of Python; yield its URL."""
    write_program(folder, "process", compiled=False)
    with subprocess.Popen([sys.executable, "main.py", "0"], cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield f"socket://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()
