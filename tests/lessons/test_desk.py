"""Lesson 13: the motes that a desk has, and the heaps of its table, which are those of the page."""

import re

import pytest

import workbench as wb
from lessons.figures import desk
from tests.repository import REPOSITORY
from workbench.errors import LinkError

PAGE = REPOSITORY / "docs" / "boards" / "memory.md"
SCENARIO = wb.Scenario(
    wb.topology.line(3),
    wb.Flooding(),
    [wb.subscribe(0, "TEMP GE 25"), wb.publish(2, "TEMP IS 26", every_s=1, start_s=1)],
    duration_s=10,
)


def bench_file(folder, *nodes):
    boards = [
        f'{{"node": {node}, "usb": {{"vid": "2E8A", "pid": "0005", "serial_number": "{node}"}}, '
        f'"settings": {{"board": "serial-radio"}}}}'
        for node in nodes
    ]
    path = folder / "bench.json"
    path.write_text(f'{{"version": 1, "boards": [{", ".join(boards)}]}}')
    return path


def test_heaps_of_the_lesson_are_those_of_the_page():
    rows = re.findall(r"^\| `esp32-espnow` \| (\w+) \|(?: [\d,]+ \|){3} ([\d,]+) \|", PAGE.read_text(), re.MULTILINE)
    page = {name: int(size.replace(",", "")) for name, size in rows}
    assert {name: page[name] for name in desk.HEAPS_B} == desk.HEAPS_B
    assert f"{desk.ESP32_B:,}" in PAGE.read_text()


def test_without_a_bench_file_motes_are_virtual_or_simulated(tmp_path, monkeypatch):
    monkeypatch.setattr(wb.motes, "missing", lambda kind: None)
    motes, sentence = desk.motes_on_the_desk(tmp_path / "bench.json", range(3), 4)
    assert motes.speed == 4 and "virtual motes, 4 times as fast" in sentence
    monkeypatch.setattr(wb.motes, "missing", lambda kind: "no Node.js")
    motes, sentence = desk.motes_on_the_desk(tmp_path / "bench.json", range(3), 4)
    assert motes is None and "no Node.js" in sentence


def test_boards_of_a_bench_file_are_used_and_missing_ones_are_simulated(tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.motes.bench.ports.find_ports", lambda path, nodes: dict.fromkeys(nodes, "COM3"))
    whole = bench_file(tmp_path, 0, 1, 2)
    motes, sentence = desk.motes_on_the_desk(whole, range(3))
    assert motes.bench == whole and sentence.startswith("3 boards of ")
    motes, sentence = desk.motes_on_the_desk(bench_file(tmp_path, 1), range(3))
    assert motes.urls == {0: "simulated", 1: "COM3", 2: "simulated"} and "the other nodes are simulated" in sentence
    with pytest.raises(LinkError, match="has no board for any of the nodes 0, 1, 2; name boards"):
        desk.motes_on_the_desk(bench_file(tmp_path, 7), range(3))


def test_a_relay_without_power_makes_a_gap_as_long_as_it_is_off():
    run = desk.play_without(SCENARIO, None, 1, 3.5, 7.5)
    assert desk.longest_gap_s(run, 2) == pytest.approx(5, abs=0.1)
    assert list(desk.story(run)["event"]) == ["failed", "recovered"]
    table = desk.side_by_side({"here": desk.play(SCENARIO, None), "with a gap": run})
    assert table.loc["relayed by 1", "here"] == 9 and table.loc["relayed by 1", "with a gap"] < 9
    assert table.loc["delivery_ratio", "here"] == 1.0 > table.loc["delivery_ratio", "with a gap"]


def test_signal_strengths_are_a_table_of_measured_links_or_a_sentence(monkeypatch):
    run = desk.play(SCENARIO, None)
    assert "measured no signal strength" in desk.signal_strengths(run)
    rows = [row | {"event": "received", "value": -40 - row["node"]} for row in run.trace.to_pylist()[:9]]
    measured = type("Measured", (), {"trace": run.trace.from_pylist(rows)})
    assert float(desk.signal_strengths(measured).max().max()) <= -40
