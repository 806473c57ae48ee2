"""Links measured by motes agree with those of the channel, and a run on motes is compared with the simulator's."""

import math
import socket
import warnings
from contextlib import ExitStack

import pytest

import workbench as wb
from tests.motes.boards import MICROPYTHON, WHY_MISSING, Board
from tests.motes.test_udp import broadcasts_work
from tests.until import wait_until
from workbench import cli, motes
from workbench.errors import LinkError, ParameterError
from workbench.motes import in_c, rack
from workbench.motes.live.run import LiveRun
from workbench.motes.measuring import COLUMNS, LinkProbes, link_table, share_bounds
from workbench.motes.processes import CProcess
from workbench.protocols.contract import NUMBERS_PER_BOOT

needs_node = pytest.mark.skipif(rack.missing() is not None, reason=str(rack.missing()))
needs_c = pytest.mark.skipif(in_c.missing("c") is not None, reason=str(in_c.missing("c")))
needs_boards = [
    pytest.mark.skipif(MICROPYTHON is None, reason=WHY_MISSING),
    pytest.mark.skipif(not broadcasts_work(), reason="loopback carries no UDP broadcasts here"),
]
RATIOS = [1.0, 0.9, 0.7, 0.5, 0.3]
SIGMAS = 4.5  # exceeded by chance on one of 150,000 links


def uneven(topology):
    """Return the topology with a delivery ratio of its own for each arc."""
    for number, link in enumerate(topology.edges):
        topology.edges[link]["pdr"] = RATIOS[number % len(RATIOS)]
    return topology


LINE = uneven(wb.topology.line(3))


def simulate(topology=LINE, workload=(), duration_s=60, interval_s=0.2, **radio):
    """Return the run in which simulated nodes measure the links."""
    protocol = LinkProbes(until_s=duration_s, longest_interval_s=interval_s)
    return wb.Scenario(topology, protocol, workload, wb.Radio(**radio), duration_s).run()


def assert_agrees(table, ratio_of):
    """Assert that the counts of a table are those of independent losses with the given ratios."""
    for row in table.itertuples():
        ratio = ratio_of(row.transmitter, row.receiver)
        deviation = math.sqrt(row.sent * ratio * (1 - ratio))
        assert abs(row.heard - row.sent * ratio) <= SIGMAS * deviation, row
        assert row.pdr == row.heard / row.sent
        assert (row.pdr_low, row.pdr_high) == share_bounds(row.heard, row.sent)


def pdr_of(topology):
    return lambda transmitter, receiver: topology.edges[transmitter, receiver]["pdr"]


def test_measured_ratios_agree_with_those_of_the_channel():
    topology = uneven(wb.topology.grid(3, 3))
    table, unmeasured = link_table(simulate(topology).trace, topology.edges)
    assert tuple(table.columns) == COLUMNS and not unmeasured
    assert list(zip(table.transmitter, table.receiver, strict=True)) == list(topology.edges)
    assert table.sent.between(270, 320).all()
    assert table.rssi_dBm.isna().all()
    assert_agrees(table, pdr_of(topology))
    measured = wb.topology.from_links(table)
    assert set(measured.edges) == set(topology.edges)
    assert measured.edges[0, 1]["pdr"] == 1.0


def test_a_link_that_carries_nothing_has_the_ratio_zero_and_is_no_arc():
    candidates = [(0, 1), (1, 0), (0, 2), (2, 0)]
    table, _ = link_table(simulate().trace, candidates)
    unheard = table[table.heard == 0]
    assert list(zip(unheard.transmitter, unheard.receiver, strict=True)) == [(0, 2), (2, 0)]
    assert (unheard.pdr == 0).all() and (unheard.pdr_high < 0.02).all()
    assert set(wb.topology.from_links(table).edges) == {(0, 1), (1, 0)}


def test_reports_that_the_host_does_not_receive_change_nothing():
    trace = simulate(duration_s=20).trace
    numbers = trace["sequence"].to_pylist()
    is_reported = [number % 3 == 0 or number < 3 or number > 95 for number in numbers]
    assert sum(is_reported) < len(numbers) / 2
    partial, _ = link_table(trace.filter(is_reported), LINE.edges)
    whole, _ = link_table(trace, LINE.edges)
    # A probe that neither its own report nor a later one mentions is lost: with ratio .3 that is possible.
    assert (partial.sent == whole.sent).all()
    assert (partial.heard == whole.heard)[partial.pdr > 0.5].all()


def test_the_time_in_which_a_node_is_down_is_not_measured():
    ideal = wb.topology.line(3)
    run = simulate(ideal, [wb.crash(1, start_s=20, stop_s=40)])
    table, _ = link_table(run.trace, ideal.edges)
    assert (table.pdr == 1.0).all()
    assert table.sent.between(180, 220).all()
    starts = {row["sequence"] // NUMBERS_PER_BOOT for row in run.trace.to_pylist() if row["event"] == "sent"}
    assert starts == {0, 1}


def test_a_link_without_a_common_time_is_reported_as_unmeasured():
    trace = simulate(duration_s=5).trace
    silent = [(row["node"], row["event"]) != (2, "sent") for row in trace.to_pylist()]
    table, unmeasured = link_table(trace.filter(silent), LINE.edges)
    assert unmeasured == [(1, 2), (2, 1)] and len(table) == 2


@pytest.mark.parametrize(
    ("heard", "sent", "low", "high"), [(0, 10, 0, 0.2775), (10, 10, 0.7225, 1), (5, 10, 0.2366, 0.7634)]
)
def test_interval_of_a_ratio_is_that_of_wilson(heard, sent, low, high):
    assert share_bounds(heard, sent) == pytest.approx((low, high), abs=1e-4)


def test_damaged_frames_do_not_end_a_node():
    assert wb.fuzz(LinkProbes(), frames=1000).drops.keys() == {"malformed", "duplicate"}


# On motes


@pytest.fixture(scope="module")
def lockstep_motes():
    with motes.virtual(lockstep=True) as on:
        yield on


@needs_node
def test_virtual_motes_in_lockstep_measure_what_simulated_nodes_measure(lockstep_motes):
    table = lockstep_motes.measure(LINE, duration_s=5, interval_s=0.2)
    simulated, _ = link_table(simulate(duration_s=5).trace, LINE.edges)
    assert table.equals(simulated)
    assert table.attrs == {"is_stopped": False, "notes": []}


@needs_node
@pytest.mark.family
def test_virtual_motes_measure_the_ratios_of_the_channel_in_real_time():
    shares = []
    table = motes.virtual(speed=4).measure(LINE, duration_s=24, interval_s=0.2, progress=shares.append)
    assert table.sent.between(80, 130).all()
    assert_agrees(table, pdr_of(LINE))
    assert shares == sorted(shares) and shares[-1] == 1


@needs_node
@pytest.mark.family
def test_a_mote_that_loses_power_for_a_time_loses_samples_only():
    on = motes.virtual(speed=4)
    due = [(0.3, on.kill), (0.6, on.restart)]

    def switch(share):
        while due and share > due[0][0]:
            due.pop(0)[1](1)

    with pytest.warns(RuntimeWarning, match="node 1: "):
        table = on.measure(wb.topology.line(3), duration_s=28, interval_s=0.2, progress=switch)
    assert not due
    assert (table.heard >= table.sent - 1).all()  # A probe may arrive in the moment of the loss.
    assert table.sent.between(40, 110).all()


@needs_node
def test_an_interrupt_keeps_what_was_measured(tmp_path, capsys, monkeypatch):
    def interrupted_wait(run):
        wait_until(lambda: run.now_s > 2)
        raise KeyboardInterrupt

    monkeypatch.setattr(LiveRun, "wait", interrupted_wait)
    path, out = tmp_path / "line.json", tmp_path / "links.csv"
    path.write_text(wb.Scenario(LINE, wb.Flooding(), []).to_json())
    options = ["--seconds", "600", "--interval", "0.1", "--speed", "4", "--out", str(out)]
    assert cli.main(["motes", "measure", str(path), *options]) == 130
    printed = capsys.readouterr()
    assert f"wrote 4 links (a row for each direction) into {out}" in printed.out
    assert "workbench motes measure: the measurement was stopped after " in printed.err
    assert set(wb.topology.from_links(out)) == {0, 1, 2}


@pytest.mark.parametrize(
    ("measure", "error", "sentence"),
    [
        (lambda: motes.virtual().measure(), ParameterError, "`topology` is missing; pass the network"),
        (
            lambda: motes.virtual(kind={1: "c"}).measure(LINE),
            LinkError,
            "node 1: a mote of the kind 'c' cannot measure",
        ),
        (lambda: motes.boards({0: "a", 1: "simulated"}).measure(), LinkError, "node 1 is simulated, so its links"),
        (lambda: motes.boards(["a"]).measure(), ParameterError, "the network has 1 nodes; a measurement needs 2 to"),
        (lambda: motes.virtual().measure(LINE, duration_s=0.5), ParameterError, "duration_s is 0.5; it must be a num"),
        (lambda: motes.virtual().measure(LINE, interval_s=0), ParameterError, "interval_s is 0; it must be a number"),
        (lambda: motes.virtual().measure(LINE, size_B=8), ParameterError, "size_B is 8"),
        (lambda: motes.boards("none.json").measure(), LinkError, "none.json"),
    ],
)
def test_a_measurement_that_is_not_possible_is_refused_with_a_sentence(measure, error, sentence):
    with pytest.raises(error, match=sentence):
        measure()


@needs_c
def test_boards_with_a_program_in_c_are_refused_with_a_sentence():
    program = in_c.program("c", wb.Flooding())
    with ExitStack() as ends:
        processes = [CProcess(program, 1.0, lambda text: None) for _ in range(2)]
        for process in processes:
            ends.callback(process.kill)
        with pytest.raises(LinkError, match="a mote in C cannot measure links, as its program sends no probes"):
            motes.boards([process.url for process in processes]).measure(duration_s=1)


def test_the_command_needs_boards_or_a_scenario(capsys):
    assert cli.main(["motes", "measure"]) == cli.BAD_INPUT
    assert "neither boards nor a scenario are given; give --on or --bench" in capsys.readouterr().err


# On fakes of boards: the drivers of hardware/mote on MicroPython. No test here runs on hardware


@pytest.fixture
def start_boards(tmp_path):
    """Yield a function that starts fake boards, one for each (settings, fake), and returns them as `motes.Boards`."""
    (tmp_path / "programs").mkdir()
    with ExitStack() as ends:
        with ExitStack() as sockets:
            free = [sockets.enter_context(socket.socket(type=socket.SOCK_DGRAM)) for _ in range(2)]
            for end in free:
                end.bind(("127.255.255.255", 0))
            espnow_port, udp_port = (end.getsockname()[1] for end in free)
        made = []

        def start(*boards):
            for number, (settings, fake) in enumerate(boards, 1):
                folder = tmp_path / str(number)
                made.append(Board(tmp_path / "programs", folder, settings, number, espnow_port, **fake))
                ends.callback(made[-1].close)
            return motes.boards([board.url for board in made], {"port": udp_port, "rxbuf": 32768})

        yield start
        assert [board.errors for board in made] == [""] * len(made)


ESP32 = {"board": "esp32-espnow"}
WIFI = {"name": "desk", "key": "correct horse battery"}
PICO = {"board": "pico-udp", "wifi": WIFI, "target": {"address": "127.255.255.255"}}


class TestBoards:
    pytestmark = needs_boards

    def test_boards_with_esp_now_measure_losses_and_rssi(self, start_boards):
        table = start_boards((ESP32, {"loss": 0.4}), (ESP32, {})).measure(duration_s=1.2, interval_s=0.02)
        assert list(zip(table.transmitter, table.receiver, strict=True)) == [(0, 1), (1, 0)]
        assert (table.sent > 20).all()
        assert_agrees(table, lambda transmitter, receiver: {0: 0.6, 1: 1.0}[receiver])
        for column in ("rssi_dBm", "rssi_dBm_min", "rssi_dBm_max"):
            assert table[column].tolist() == [-43, -43]  # as espnow.py, the fake, measures it

    @pytest.mark.family
    def test_repeated_frames_readings_and_a_fault_of_a_radio_are_no_samples(self, start_boards):
        faults = {"no_mem_once": 20, "memory_error": 30}
        sensor = {"kind": "log", "values": [5, 7], "key": 51, "every_ms": 50}
        boards = (
            (ESP32, {"duplication": 0.5}),
            (ESP32, {"faults": faults}),
            ({**ESP32, "sensor": sensor}, {"loss": 0.2}),
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            table = start_boards(*boards).measure(duration_s=4, interval_s=0.04)
        assert len(table) == 6
        assert (table.sent - table.heard)[table.receiver == 0].eq(0).all()
        assert (table.sent - table.heard)[table.receiver == 1].sum() == 1  # the MemoryError
        assert [str(warning.message) for warning in caught if warning.category is RuntimeWarning] == table.attrs[
            "notes"
        ]
        assert any("the heap had no memory for a received frame" in note for note in table.attrs["notes"])
        assert not any("the mote failed" in note for note in table.attrs["notes"])

    @pytest.mark.family
    def test_boards_with_udp_measure_losses_after_they_are_connected(self, start_boards):
        table = start_boards((PICO, {"loss": 0.5}), (PICO, {"connecting_ms": 2000})).measure(
            duration_s=5, interval_s=0.05
        )
        assert (table.sent > 30).all()
        assert_agrees(table, lambda transmitter, receiver: {0: 0.5, 1: 1.0}[receiver])
        assert table.rssi_dBm.isna().all()

    @pytest.mark.family
    def test_the_simulator_on_the_measured_network_agrees_with_a_run_on_the_boards(self, start_boards):
        boards = start_boards((ESP32, {"loss": 0.4}), (ESP32, {}), (ESP32, {"loss": 0.2}))
        links = boards.measure(duration_s=3, interval_s=0.02)
        workload = [wb.subscribe(0, "TEMP GE 25"), wb.publish(2, "TEMP IS 26", start_s=0.5, every_s=0.1)]
        run = wb.Scenario(wb.topology.from_links(links), wb.Flooding(), workload, duration_s=5).run(on=boards)
        beside = motes.compare_with_simulator(run, links)
        assert run.notes == [] and len(beside.links) == 6
        assert (beside.links.motes_sent > 25).all()
        error = (beside.links.pdr * (1 - beside.links.pdr) * (1 / beside.links.motes_sent + 1 / links.sent)) ** 0.5
        assert (beside.links.difference.abs() <= SIGMAS * error + 0.01).all(), beside.links
        delivery = beside.metrics.loc["delivery_ratio"]
        # Both of the paths from 2 to 0 lose 40 % of the frames, independently.
        assert abs(delivery.motes - 0.84) < 0.25 and abs(delivery.simulator - 0.84) < 0.15

    @pytest.mark.family
    def test_boards_without_a_radio_are_refused_with_a_sentence(self, start_boards):
        with pytest.raises(LinkError, match="the boards have no radio of their own"):
            start_boards(({"board": "serial-radio"}, {}), ({"board": "serial-radio"}, {})).measure(duration_s=1)


# Beside the simulator

SCENARIO = wb.Scenario(
    LINE, wb.Flooding(), [wb.subscribe(0, "TEMP GE 25"), wb.publish(2, "TEMP IS 26", every_s=0.5)], duration_s=20
)


@needs_node
def test_a_run_in_lockstep_differs_in_nothing_from_the_simulators_run(lockstep_motes):
    run = SCENARIO.replace(duration_s=5).run(on=lockstep_motes)
    beside = motes.compare_with_simulator(run, seeds=1)
    assert (beside.metrics.difference == 0).all() and beside.metrics.in_range.all()
    assert (beside.links.motes == beside.links.simulator).all() and not beside.links.differs.any()
    assert beside.metrics.loc["delivery_ratio", "motes"] == run.metrics["delivery_ratio"]
    assert list(zip(beside.links.transmitter, beside.links.receiver, strict=True)) == list(LINE.edges)
    assert "Metrics: the run on motes beside 1 runs of the simulator" in repr(beside)
    assert "<table" in beside._repr_html_()


def on_motes(run):
    """Return a run of the simulator with the mark of a run on motes."""
    run.engine = "motes in lockstep"
    return run


def test_a_run_on_better_links_than_measured_is_found_to_differ_on_them():
    ideal = wb.topology.line(3)
    run = on_motes(SCENARIO.replace(topology=ideal, duration_s=60).run())
    links, _ = link_table(simulate().trace, LINE.edges)
    beside = motes.compare_with_simulator(run, links, seeds=5)
    assert beside.links.motes.eq(1).all()
    assert beside.links.differs.tolist() == [ratio < 1 for ratio in beside.links.pdr]
    delivery = beside.metrics.loc["delivery_ratio"]
    assert delivery.motes == 1 and delivery.simulator_max < 1 and not delivery.in_range
    assert delivery.difference == pytest.approx(1 - delivery.simulator)


def test_latencies_without_any_delivery_are_in_range():
    silent = SCENARIO.replace(workload=SCENARIO.workload[:1])
    beside = motes.compare_with_simulator(on_motes(silent.run()), seeds=2)
    assert math.isnan(beside.metrics.loc["latency_ms_p50", "motes"]) and beside.metrics.in_range.all()
    assert beside.links.motes.isna().all() and not beside.links.differs.any()


def test_what_cannot_be_compared_is_refused_with_a_sentence():
    run = SCENARIO.run()
    with pytest.raises(ParameterError, match=r"it must be a run on motes: scenario.run\(on="):
        motes.compare_with_simulator(run)
    links, _ = link_table(simulate(duration_s=5).trace, [(0, 1), (1, 0)])
    with pytest.raises(ParameterError, match="the table of links lacks node 2 of the scenario"):
        motes.compare_with_simulator(on_motes(run), links)
    with pytest.raises(ParameterError, match="seeds is 0"):
        motes.compare_with_simulator(run, seeds=0)
