"""Runs on motes that fail, are stopped, compete for the same motes, or are displayed: their results are not lost."""

import os
import signal
import threading

import pytest

import workbench as wb
from tests.until import PATIENCE_S, wait_until
from workbench import motes
from workbench.errors import LinkError, ScenarioError
from workbench.motes import line as mote_line
from workbench.motes import messages, rack
from workbench.motes.live import driver
from workbench.motes.live.application import Subscriptions
from workbench.sim import workload

needs_node = pytest.mark.skipif(rack.missing() is not None, reason=str(rack.missing()))

LINE = wb.topology.line(3)


@pytest.fixture(scope="module")
def three_motes():
    with motes.virtual(speed=2) as on:
        yield on


def scenario(*more, duration_s=2, protocol=None, topology=LINE, **fields):
    items = [wb.subscribe(0, "TEMP GE 25"), wb.publish(2, "TEMP IS 26", every_s=0.3, start_s=0.3), *more]
    return wb.Scenario(topology, protocol or wb.Flooding(), items, duration_s=duration_s, **fields)


def rows_of(run, event, **wanted):
    """Return the rows of an event so far that have the wanted values."""
    rows = [row for row in run.so_far().trace.to_pylist() if row["event"] == event]
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


# Messages that do not fit, and errors that end a run


@needs_node
def test_a_publication_too_long_for_a_frame_is_refused_and_the_run_continues(three_motes):
    too_long = wb.publish(1, "TEMP IS 27", payload=bytes(2100), start_s=0.5)
    run = scenario(too_long).run(on=three_motes)
    assert run.wait(120)
    assert run.error is None
    [note] = run.notes
    assert note.startswith("node 1: the command was not sent: a body of ")
    assert len(rows_of(run, "refused", node=1)) == 1
    assert len(rows_of(run, "delivered", node=0, detail="TEMP IS 26")) >= 4


@needs_node
def test_an_event_too_long_for_a_frame_is_reported_and_its_command_is_executed(three_motes):
    too_long_for_event = wb.publish(1, "TEMP IS 27", payload=bytes(1990), start_s=0.5)
    run = scenario(too_long_for_event).run(on=three_motes)
    assert run.wait(120)
    assert not rows_of(run, "refused")
    complaints = [row["detail"] for row in rows_of(run, "told", node=1)]
    assert complaints and all("is too long for a frame" in text for text in complaints)
    # The frame was sent all the same, and its neighbors, which cannot report it either, forwarded it.
    assert {row["node"] for row in rows_of(run, "sent") if row["size_B"] > 1990} == {0, 1, 2}
    assert len(rows_of(run, "delivered", node=0, detail="TEMP IS 26")) >= 4


@needs_node
def test_an_error_of_the_run_is_raised_and_the_results_so_far_remain(three_motes, capsys):
    def stumble(share):
        if share > 0.4:
            raise RuntimeError("stumbled")

    run = scenario().run(on=three_motes, progress=stumble)
    with pytest.raises(RuntimeError, match="stumbled"):
        run.wait(120)
    assert str(run.error) == "stumbled"
    assert run.notes == ["the run ended early: stumbled"]
    assert 0.8 <= run.now_s < 2
    assert run.metrics["delivery_ratio"] > 0
    assert run.trace.num_rows == run.so_far().trace.num_rows
    assert run.trace is run.trace
    assert "ended early at" in repr(run) and repr(run).endswith("stumbled")
    with pytest.raises(RuntimeError, match="stumbled"):
        run.wait()
    assert scenario(duration_s=0.5).run(on=three_motes).wait(120)


# One run at a time


@needs_node
def test_motes_of_a_run_are_not_given_to_another(three_motes):
    run = scenario(duration_s=60).run(on=three_motes)
    before = three_motes.rack
    with pytest.raises(LinkError, match="another run still uses these motes; call its wait"):
        scenario(topology=wb.topology.line(4)).run(on=three_motes)
    assert three_motes.rack is before and run.is_running
    wait_until(lambda: rows_of(run, "delivered"))
    assert run.stop()
    assert 0 < run.now_s < 60
    assert scenario(duration_s=0.5).run(on=three_motes).wait(120)


@needs_node
def test_the_end_of_a_with_statement_stops_the_run():
    with motes.virtual() as on:
        run = scenario(duration_s=60).run(on=on)
        wait_until(lambda: rows_of(run, "delivered"))
    assert not run.is_running
    assert run.wait() and run.notes == []


class RecordingMotes(motes.Motes):
    """Motes that record the calls that start and end them."""

    def __init__(self):
        self.calls = []

    def start(self, scenario):
        self.calls.append("start")
        if scenario is None:
            raise LinkError("no")
        return {0: "url"}

    def end(self):
        self.calls.append("end")


def test_motes_end_only_with_the_run_that_took_them():
    recorder = RecordingMotes()
    assert recorder.take("scenario", "first") == {0: "url"}
    recorder.give_back("second")
    with pytest.raises(LinkError, match="another run still uses"):
        recorder.take("scenario", "second")
    assert recorder.calls == ["start"]
    recorder.give_back("first")
    with pytest.raises(LinkError, match="no"):
        recorder.take(None, "third")
    assert recorder.take("scenario", "fourth")
    assert recorder.calls == ["start", "end", "start", "start"]


@needs_node
def test_motes_that_are_down_or_gone_are_started_for_the_next_run():
    with motes.virtual(speed=4) as on:
        assert scenario(duration_s=0.5).run(on=on).wait(120)
        on.kill(1)
        run = scenario().run(on=on)
        assert run.wait(120) and run.notes == []
        on.rack._process.kill()
        on.rack._reader.join(PATIENCE_S)
        assert scenario(duration_s=0.5).run(on=on).wait(120)


@needs_node
def test_the_traceback_of_a_mote_whose_program_ends_is_a_note(three_motes):
    run = scenario(duration_s=60).run(on=three_motes)
    three_motes._report_crash(1, "Traceback\nMemoryError: full\n")
    assert run.notes == ["node 1: the mote's program ended: Traceback\nMemoryError: full"]
    run.stop()
    three_motes._report_crash(1, "Traceback\nafter the run\n")
    assert len(run.notes) == 1


@pytest.mark.parametrize("options", [{"record": "metrics"}, {"engine": "compiled"}])
def test_options_that_motes_do_not_support_are_refused(options):
    with pytest.raises(ScenarioError, match="on motes"):
        scenario().run(on=motes.virtual(), **options)


# Outages, losses, and commands after them


@needs_node
def test_a_mote_that_returns_during_an_outage_resumes_its_node_when_the_outage_ends(three_motes):
    run = scenario(wb.outage(2, start_s=2, stop_s=8), duration_s=60).run(on=three_motes)
    wait_until(lambda: rows_of(run, "failed", node=2))
    three_motes.restart(2)
    wait_until(lambda: rows_of(run, "link_found", node=2))
    assert not rows_of(run, "recovered")
    wait_until(lambda: [row for row in rows_of(run, "published", node=2) if row["time_us"] > 8e6])
    run.stop()
    [link_found], [recovered] = rows_of(run, "link_found"), rows_of(run, "recovered", node=2)
    assert link_found["time_us"] < 8e6 <= recovered["time_us"]
    assert len(rows_of(run, "failed")) == 1
    times = [row["time_us"] for row in rows_of(run, "published", node=2)]
    assert not [time for time in times if 2.2e6 < time < 7.8e6]


@needs_node
def test_a_restarted_node_gets_its_link_qualities_again(three_motes, monkeypatch):
    links = []
    monkeypatch.setattr(driver.LiveNode, "link_quality", lambda self, *link: links.append((self.address, *link)))
    one_way = LINE.copy()
    one_way.remove_edge(1, 2)
    one_way.edges[2, 1]["pdr"] = 0.7
    run = scenario(topology=one_way, duration_s=60).run(on=three_motes)
    wait_until(lambda: rows_of(run, "published"))
    at_first = list(links)
    three_motes.restart(1)
    wait_until(lambda: rows_of(run, "recovered", node=1))
    run.stop()
    sent_to_1 = [link[:4] for link in at_first if link[0] == 1]
    assert sent_to_1 == [(1, 0, 1.0, 1.0), (1, 2, 0.7, 0.0)]
    assert [link[:4] for link in links[len(at_first) :]] == sent_to_1


@needs_node
def test_a_subscription_that_ends_while_its_mote_is_lost_is_not_repeated(three_motes):
    stops = wb.subscribe(1, "TEMP GE 20", stop_s=5)
    run = scenario(stops, duration_s=60).run(on=three_motes)
    wait_until(lambda: rows_of(run, "subscribed", node=1))
    three_motes.kill(1)
    wait_until(lambda: run.now_s > 5.2)
    three_motes.restart(1)
    wait_until(lambda: rows_of(run, "recovered", node=1))
    after = len(rows_of(run, "published"))
    wait_until(lambda: len(rows_of(run, "published")) > after + 2)
    run.stop()
    assert len(rows_of(run, "subscribed", node=1)) == 1


class Posted(list):
    def __call__(self, node, kind, *fields, rest=b"", then=None):
        self.append((node, kind, fields, then))


def begin_and_end():
    """Return the two actions, begin and end, of a subscription from 0 s to 1 s."""
    return workload.expand([wb.subscribe(1, "TEMP GE 20", stop_s=1)], (0, 1), 9_000_000, 1)


def test_a_subscription_that_ends_before_it_has_a_number_is_ended_when_the_number_arrives():
    posted, answers = Posted(), []
    subscriptions = Subscriptions(posted, lambda *answer: answers.append(answer))
    begin, end = begin_and_end()
    subscriptions.begin(begin, 0)
    subscriptions.end(end)
    [(_, kind, _, then)] = posted
    assert kind == messages.SUBSCRIBE
    then(mote_line.Answer(7, None, 0, ""))
    [(node, report, value)] = answers
    assert (node, report) == (1, "numbered")
    subscriptions.store_number(*value)
    assert [(node, kind, fields) for node, kind, fields, _ in posted[1:]] == [(1, messages.UNSUBSCRIBE, (7,))]


def test_numbers_of_a_mote_that_is_lost_are_forgotten():
    posted = Posted()
    subscriptions = Subscriptions(posted, lambda *answer: None)
    begin, end = begin_and_end()
    subscriptions.begin(begin, 0)
    subscriptions.store_number((1, 0), 7)
    subscriptions.forget_numbers(1)
    subscriptions.repeat(1, 500_000)
    subscriptions.repeat(0, 500_000)
    assert [kind for _, kind, *_ in posted] == [messages.SUBSCRIBE] * 2
    subscriptions.end(end)
    assert len(posted) == 2
    subscriptions.repeat(1, 600_000)
    assert len(posted) == 2


@needs_node
def test_numbers_of_a_node_begin_at_the_boot_count_of_its_mote(three_motes):
    three_motes.restart(2)
    boots = three_motes.rack.boots[2]
    run = scenario(duration_s=1).run(on=three_motes)
    assert run.wait(120)
    assert rows_of(run, "published", node=2)[0]["sequence"] == boots << 24


@needs_node
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="processes cannot be suspended here")
def test_motes_that_are_suspended_are_lost_and_recovered(monkeypatch):
    monkeypatch.setattr(mote_line, "SILENT_S", 1.0)
    monkeypatch.setattr(driver, "SYNC_S", 0.1)
    with motes.virtual() as on:
        run = scenario(duration_s=120).run(on=on)
        wait_until(lambda: rows_of(run, "delivered"))
        os.kill(on.rack._process.pid, signal.SIGSTOP)
        try:
            wait_until(lambda: len(rows_of(run, "link_lost")) == 3)
            assert all("is silent" in note for note in run.notes)
            assert all(not mote._answers for mote in run._session.motes.values())
        finally:
            os.kill(on.rack._process.pid, signal.SIGCONT)
        wait_until(lambda: len(rows_of(run, "recovered")) == 3)
        last_us = rows_of(run, "recovered")[-1]["time_us"]
        wait_until(lambda: [row for row in rows_of(run, "delivered") if row["time_us"] > last_us])
        run.stop()


# Displaying a run


@needs_node
def test_a_run_as_the_last_expression_of_a_cell_does_not_wait_for_its_end(three_motes):
    run = scenario(duration_s=6000).run(on=three_motes)
    shown = []
    thread = threading.Thread(target=lambda: shown.append(run._repr_mimebundle_()))
    thread.start()
    thread.join(PATIENCE_S)
    assert run.is_running
    [bundle] = shown
    assert list(bundle) == ["text/plain"] and bundle["text/plain"].startswith("LiveRun(")
    run.stop()
    assert "text/html" in run._repr_mimebundle_() or len(run._repr_mimebundle_()) > 1
