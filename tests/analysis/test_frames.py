"""The frames of a run, obtained by playing the run again."""

import pyarrow as pa
import pytest

import workbench as wb
from tests.talker import Talker, TalkerNode, both_directions, play, say
from workbench.analysis import frames as frames_module
from workbench.errors import ParameterError, ScenarioError
from workbench.sim.kernel import Kernel
from workbench.sim.run import Run

LINE = both_directions((0, 1), (1, 2))
WORKLOAD = [wb.subscribe(0, "TEMP GE 20"), wb.publish([5, 8], "TEMP IS 26", every_s=1), wb.outage(4, 2.5, 4)]
GRID = wb.Scenario(wb.topology.grid(3, 3), wb.Flooding(), WORKLOAD, wb.Radio(loss=0.2), duration_s=5)
BUSY = {"collisions": True, "csma": True, "retries": 3, "loss": 0.3}
LAST_MOMENT = [say(0, 1, size=100, start_s=0.9999), say(2, size=30, start_s=0.99999)]


def sent(run):
    """Return (row, time_us, node, peer, message) of the rows "sent" of a trace."""
    return [
        (position, row["time_us"], row["node"], row["peer"], row["message"])
        for position, row in enumerate(run.trace.to_pylist())
        if row["event"] == "sent"
    ]


def list_frames(table):
    """Return (row, time_us, node, peer, message) of a table of frames."""
    return [tuple(row.values())[:-1] for row in table.to_pylist()]


def is_of_its_row(run, table):
    """Return whether each frame's size and label are those in the trace."""
    rows = run.trace.to_pylist()
    describe = run.scenario.protocol.kind_of_node().describe
    return all(
        (len(record["frame"]), describe(record["frame"], record["peer"] == -1))
        == (
            rows[record["row"]]["size_B"],
            tuple(rows[record["row"]][name] for name in ("message", "origin", "sequence")),
        )
        for record in table.to_pylist()
    )


@pytest.mark.parametrize(
    "run",
    [
        GRID.run(engine="reference"),
        GRID.replace(protocol=wb.Diffusion(), radio=wb.Radio(retries=2, loss=0.2)).run(engine="reference"),
        play(LINE, [say(0, 1, count=5), say(2, count=5), say(1, 0, size=90)], **BUSY),
        play(LINE, LAST_MOMENT, duration_s=1),
    ],
    ids=["outage and loss", "unicast", "csma", "frames behind the end"],
)
def test_each_sent_row_has_its_frame(run):
    table = run.frames()
    assert list_frames(table) == sent(run) and len(table) >= 2
    assert is_of_its_row(run, table)
    assert table.column_names == ["row", "time_us", "node", "peer", "message", "frame"]


def test_frames_that_end_after_the_duration_are_included():
    run = play(LINE, LAST_MOMENT, duration_s=1)
    assert run.frames()["time_us"].to_pylist()[-1] > 1_000_000
    assert run.frames(until_s=1).num_rows < run.frames().num_rows


def test_frames_of_both_engines_and_of_motes_in_lockstep_are_the_same():
    reference, fast = GRID.run(engine="reference"), GRID.run(engine="fast")
    assert fast.engine == "fast" and fast.frames().equals(reference.frames())
    assert Run(GRID, "motes in lockstep", reference._recorder).frames().equals(reference.frames())


def test_only_the_requested_frames_are_returned():
    run = GRID.run(engine="reference")
    whole = run.frames().to_pylist()
    assert run.frames(most=7).to_pylist() == whole[:7]
    assert run.frames(until_s=2.5).to_pylist() == [frame for frame in whole if frame["time_us"] <= 2_500_000]
    some = [whole[11]["row"], whole[3]["row"], whole[11]["row"]]
    assert run.frames(some).to_pylist() == [whole[3], whole[11]]
    assert run.frames(rows=(row for row in some), most=1).to_pylist() == [whole[3]]
    assert run.frames(pa.array(some), until_s=0).num_rows == 0
    assert run.frames([]).schema == run.frames(most=0).schema == run.frames().schema


def test_a_run_is_played_only_up_to_the_last_requested_frame(monkeypatch):
    run = GRID.run(engine="reference")
    ended = []
    play_until = Kernel.play_until

    def until(kernel, time_us):
        ended.append(time_us)
        play_until(kernel, time_us)

    monkeypatch.setattr(Kernel, "play", lambda *_: pytest.fail("played to the end"))
    monkeypatch.setattr(Kernel, "play_until", until)
    last_us = run.frames(most=7)["time_us"].to_pylist()[-1]
    assert ended == [last_us] and last_us < 2_000_000


def test_many_frames_are_stored_in_batches(monkeypatch):
    run = GRID.run(engine="reference")
    whole = run.frames()
    monkeypatch.setattr(frames_module, "_FRAMES_PER_BATCH", 5)
    assert run.frames()["frame"].num_chunks == -(-len(whole) // 5) > 2
    assert run.frames().to_pylist() == whole.to_pylist()


def test_a_run_in_which_nothing_is_sent_has_no_frames():
    run = play(LINE, [])
    assert run.frames().num_rows == 0 and run.frames().schema == GRID.run().frames().schema


def test_a_live_run_has_no_frames():
    live = Run(GRID, "motes", GRID.run(engine="reference")._recorder)
    with pytest.raises(ScenarioError, match="a live run on motes cannot be replayed"):
        live.frames()


def test_a_run_without_a_trace_has_no_frames():
    with pytest.raises(ScenarioError, match='record="trace"'):
        GRID.run(record="metrics").frames()


class LaterNode(TalkerNode):
    """A node whose behavior can be changed between runs."""

    change = staticmethod(lambda frames: frames)

    def take_frames(self):
        return LaterNode.change(TalkerNode.take_frames(self))


class Later(Talker):
    node = LaterNode


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda frames: [(to, frame + b"!") for to, frame in frames],
            "frame 0 of the run was 50 bytes from node 0 to node 1 at .*and frame 0 of the replay is 51 bytes",
        ),
        (
            lambda frames: [(None, frame) for _, frame in frames],
            "frame 0 of the run was 50 bytes from node 0 to node 1 .*the replay is 50 bytes from node 0 to all",
        ),
        (lambda frames: [], "the run sent 2 frames, and the replay sent 0"),
        (lambda frames: frames * 2 if frames[0][1][2] else frames, "the run sent 2 frames, and the replay sent more"),
    ],
    ids=["larger", "to others", "fewer", "more"],
)
def test_a_replay_that_differs_from_the_run_is_an_error(change, message, monkeypatch):
    run = play(LINE, [say(0, 1, start_s=1), say(0, 1, start_s=2)], protocol=Later())
    assert run.frames().num_rows == 2
    monkeypatch.setattr(LaterNode, "change", staticmethod(change))
    with pytest.raises(ScenarioError, match=message):
        run.frames()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": [0]}, 'row 0 of the trace is not "sent"'),
        ({"rows": [-1]}, "row -1"),
        ({"rows": [10**9]}, "row 1000000000"),
        ({"rows": [0.5]}, "must be positions of trace rows"),
        ({"rows": ["a"]}, "must be positions of trace rows"),
        ({"until_s": -1}, "until_s is -1"),
        ({"until_s": float("nan")}, "until_s is nan"),
        ({"most": 1.5}, "`most` is 1.5"),
        ({"most": -3}, "`most` is -3"),
    ],
)
def test_invalid_requests_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        GRID.run(engine="reference").frames(**arguments)
