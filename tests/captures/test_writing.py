"""Captures of runs: one packet for each transmission, reception and loss, as Wireshark reads them."""

import pytest

import workbench as wb
from tests.captures.wireshark import needs_tshark, tshark
from tests.talker import both_directions, play, say
from workbench.captures import read_capture
from workbench.captures.ieee802154 import pan_id
from workbench.errors import ParameterError, ScenarioError
from workbench.sim.run import Run

BUSY = {"collisions": True, "csma": True, "retries": 2, "loss": 0.3}
LINE = both_directions((0, 1), (1, 2))
RUNS = {
    "flooding": wb.Scenario(
        wb.topology.grid(3, 3),
        wb.Flooding(),
        [wb.subscribe(0, "TEMP GE 20"), wb.publish([5, 8], "TEMP IS 26", every_s=1), wb.outage(4, 2.5, 4)],
        wb.Radio(loss=0.2),
        duration_s=5,
    ).run(),
    "busy": play(LINE, [say(0, 1, count=5), say(2, count=5), say(1, 0, size=90)], **BUSY),
}


def radio_rows(run, node=None):
    """Return the rows of a run's radios; with ``node``, of this node alone."""
    rows = [row for row in run.trace.to_pylist() if row["event"] in ("sent", "received", "lost")]
    return [row for row in rows if node in (None, row["node"])]


@pytest.mark.parametrize("name", RUNS)
def test_each_row_of_a_radio_is_a_packet(name, tmp_path):
    run = RUNS[name]
    packets = read_capture(run.save_pcapng(tmp_path / "run.pcapng")).to_pylist()
    rows = radio_rows(run)
    assert [(row["time_us"], f"node {row['node']}") for row in rows] == [
        (packet["time_us"], packet["interface"]) for packet in packets
    ]
    for row, packet in zip(rows, packets, strict=True):
        sender = row["node"] if row["event"] == "sent" else row["peer"]
        assert packet["comment"].startswith(row["event"]) and packet["source"] == sender
        assert row["detail"] in packet["comment"] and row["message"] in packet["comment"]
        assert packet["fcs_valid"] and packet["pan"] == pan_id(run.scenario.protocol)
        assert len(packet["payload"]) == row["size_B"]


@pytest.mark.parametrize("name", RUNS)
def test_payloads_are_the_frames_of_the_run(name, tmp_path):
    run = RUNS[name]
    packets = read_capture(run.save_pcapng(tmp_path / "run.pcapng")).to_pylist()
    sent = [(p["payload"], p["destination"]) for p in packets if p["comment"].startswith("sent")]
    frames = run.frames().to_pylist()
    assert sent == [(row["frame"], 65535 if row["peer"] == -1 else row["peer"]) for row in frames]


def test_capture_of_a_node_has_its_packets_alone(tmp_path):
    run = RUNS["flooding"]
    packets = read_capture(run.save_pcapng(tmp_path / "4.pcapng", node=4)).to_pylist()
    rows = radio_rows(run, node=4)
    assert [packet["time_us"] for packet in packets] == [row["time_us"] for row in rows] and rows
    assert {packet["interface"] for packet in packets} == {"node 4"}


def test_lqi_is_the_delivery_ratio_and_rssi_needs_capture(tmp_path):
    network = wb.topology.grid(1, 3, spacing_m=10)
    scenario = RUNS["flooding"].scenario.replace(topology=network, workload=[wb.publish(0, "TEMP IS 26")])
    packets = read_capture(scenario.run().save_pcapng(tmp_path / "a.pcapng")).to_pylist()
    assert {packet["lqi"] for packet in packets} == {None, 204}  # 0.8 of 255
    assert {packet["rssi_dBm"] for packet in packets} == {None}
    radio = wb.Radio(collisions=True, capture_dB=3.0)
    packets = read_capture(scenario.replace(radio=radio).run().save_pcapng(tmp_path / "b.pcapng")).to_pylist()
    strengths = {round(packet["rssi_dBm"], 1) for packet in packets if packet["rssi_dBm"] is not None}
    assert strengths == {-70.2}  # 10 m: 40.2 dB at 1 m, and 30 dB for a factor of ten


def test_addresses_beyond_16_bits_are_extended(tmp_path):
    network = both_directions((0, 70_000))
    run = wb.Scenario(network, wb.Flooding(), [wb.publish([0, 70_000], "TEMP IS 26")], duration_s=1).run()
    packets = read_capture(run.save_pcapng(tmp_path / "run.pcapng")).to_pylist()
    assert {packet["source"] for packet in packets} == {0, 70_000}
    assert {packet["destination"] for packet in packets} == {65535}


def test_section_has_the_scenario(tmp_path):
    run = RUNS["flooding"]
    data = run.save_pcapng(tmp_path / "run.pcapng").read_bytes()
    assert run.scenario.to_json().encode() in data


def test_scenario_longer_than_a_comment_is_divided(tmp_path):
    workload = [wb.publish(0, f'PAYLOAD IS "{"x" * 200}{i}"') for i in range(400)]
    scenario = wb.Scenario(wb.topology.grid(1, 2), wb.Flooding(), workload, duration_s=1)
    run = scenario.run()
    path = run.save_pcapng(tmp_path / "run.pcapng")
    assert len(scenario.to_json()) > 65_535 and read_capture(path).num_rows == len(radio_rows(run))


@pytest.mark.parametrize("node", [9, -1, "4", True])
def test_unknown_node_is_refused(node, tmp_path):
    with pytest.raises(ParameterError, match="must be one of the network's 9 nodes"):
        RUNS["flooding"].save_pcapng(tmp_path / "run.pcapng", node=node)


def test_run_that_cannot_be_replayed_leaves_no_file(tmp_path):
    run = RUNS["flooding"]
    changed = Run(run.scenario.replace(seed=99), run.engine, run._recorder)
    with pytest.raises(ScenarioError, match="no longer gives this run"):
        changed.save_pcapng(tmp_path / "run.pcapng")
    assert list(tmp_path.iterdir()) == []


def test_run_without_a_trace_is_refused(tmp_path):
    run = RUNS["flooding"].scenario.run(record="metrics")
    with pytest.raises(ScenarioError, match="has no trace"):
        run.save_pcapng(tmp_path / "run.pcapng")


@needs_tshark
def test_wireshark_reads_times_flags_and_signal(tmp_path):
    run = RUNS["busy"]
    capture = run.save_pcapng(tmp_path / "run.pcapng")
    names = ("frame.time_epoch", "frame.interface_name", "frame.packet_flags_crc_error", "wpan.fcs_ok", "frame.comment")
    shown = tshark("-r", capture, "-T", "fields", *(word for name in names for word in ("-e", name)))
    for line, row in zip(shown.splitlines(), radio_rows(run), strict=True):
        time_s, interface, is_lost, is_checked, comment = line.split("\t")
        assert round(float(time_s) * 1e6) == row["time_us"] and interface == f"node {row['node']}"
        assert (is_lost == "1") == (row["event"] == "lost") and is_checked == "1"
        assert comment.startswith(row["event"])
    assert {row["event"] for row in radio_rows(run)} == {"sent", "received", "lost"}


def test_command_line_writes_capture_and_dissector(tmp_path, monkeypatch, capsys):
    from workbench.cli import main

    monkeypatch.chdir(tmp_path)
    scenario = wb.Scenario(wb.topology.grid(2, 2), wb.Flooding(), [wb.publish(0, "TEMP IS 26")], duration_s=1)
    (tmp_path / "s.json").write_text(scenario.to_json())
    assert main(["run", "s.json", "--pcapng", "run.pcapng"]) == 0
    assert read_capture("run.pcapng").num_rows == len(radio_rows(scenario.run()))
    assert main(["dissector", "--out", "wb.lua"]) == 0
    assert "wireshark -X lua_script:wb.lua" in capsys.readouterr().out
    assert (tmp_path / "wb.lua").read_text().startswith("-- Generated by the workbench")
