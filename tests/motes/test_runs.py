"""Runs on motes that go wrong, or that are stopped, asked for twice, or looked at: nothing of them is lost."""

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
def three():
    with motes.virtual(speed=2) as on:
        yield on


def scenario(*more, duration_s=2, protocol=None, topology=LINE, **fields):
    items = [wb.subscribe(0, "TEMP GE 25"), wb.publish(2, "TEMP IS 26", every_s=0.3, start_s=0.3), *more]
    return wb.Scenario(topology, protocol or wb.Flooding(), items, duration_s=duration_s, **fields)


def told(run, event, **wanted):
    """The rows of an event so far."""
    rows = [row for row in run.so_far().trace.to_pylist() if row["event"] == event]
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


# What does not fit, and what ends a run


@needs_node
def test_a_publication_that_no_frame_can_carry_is_refused_and_the_run_goes_on(three):
    too_long = wb.publish(1, "TEMP IS 27", payload=bytes(2100), start_s=0.5)
    run = scenario(too_long).run(on=three)
    assert run.wait(120)
    assert run.error is None
    [note] = run.notes
    assert note.startswith("node 1: the command was not sent: a body of ")
    assert len(told(run, "refused", node=1)) == 1
    assert len(told(run, "delivered", node=0, detail="TEMP IS 26")) >= 4


@needs_node
def test_what_fits_the_command_but_not_the_event_is_told_and_the_command_is_done(three):
    nearly = wb.publish(1, "TEMP IS 27", payload=bytes(1990), start_s=0.5)
    run = scenario(nearly).run(on=three)
    assert run.wait(120)
    assert not told(run, "refused")
    complaints = [row["detail"] for row in told(run, "told", node=1)]
    assert complaints and all("is too long for a frame" in text for text in complaints)
    # It went on the air all the same, and its neighbors, which cannot tell it either, sent it on.
    assert {row["node"] for row in told(run, "sent") if row["size_B"] > 1990} == {0, 1, 2}
    assert len(told(run, "delivered", node=0, detail="TEMP IS 26")) >= 4


@needs_node
def test_an_error_of_the_run_leaves_what_there_is_and_says_so(three, capsys):
    def stumble(share):
        if share > 0.4:
            raise RuntimeError("stumbled")

    run = scenario().run(on=three, progress=stumble)
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
    assert scenario(duration_s=0.5).run(on=three).wait(120)


# One run at a time


@needs_node
def test_motes_that_are_in_a_run_are_not_given_to_another(three):
    run = scenario(duration_s=60).run(on=three)
    before = three.rack
    with pytest.raises(LinkError, match="another run still uses these motes; call its wait"):
        scenario(topology=wb.topology.line(4)).run(on=three)
    assert three.rack is before and run.is_running
    wait_until(lambda: told(run, "delivered"))
    assert run.stop()
    assert 0 < run.now_s < 60
    assert scenario(duration_s=0.5).run(on=three).wait(120)


@needs_node
def test_the_end_of_a_with_stops_the_run_that_goes_on():
    with motes.virtual() as on:
        run = scenario(duration_s=60).run(on=on)
        wait_until(lambda: told(run, "delivered"))
    assert not run.is_running
    assert run.wait() and run.notes == []


class Places(motes.Motes):
    """Motes that note who starts and ends them."""

    def __init__(self):
        self.said = []

    def start(self, scenario):
        self.said.append("start")
        if scenario is None:
            raise LinkError("no")
        return {0: "url"}

    def end(self):
        self.said.append("end")


def test_motes_end_with_the_run_that_has_them_alone():
    places = Places()
    assert places.take("scenario", "first") == {0: "url"}
    places.give_back("second")
    with pytest.raises(LinkError, match="another run still uses"):
        places.take("scenario", "second")
    assert places.said == ["start"]
    places.give_back("first")
    with pytest.raises(LinkError, match="no"):
        places.take(None, "third")
    assert places.take("scenario", "fourth")
    assert places.said == ["start", "end", "start", "start"]


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
def test_the_traceback_of_a_mote_whose_program_ends_is_a_note(three):
    run = scenario(duration_s=60).run(on=three)
    three._report_crash(1, "Traceback\nMemoryError: full\n")
    assert run.notes == ["node 1: the mote's program ended: Traceback\nMemoryError: full"]
    run.stop()
    three._report_crash(1, "Traceback\nafter the run\n")
    assert len(run.notes) == 1


@pytest.mark.parametrize("asked", [{"record": "metrics"}, {"engine": "compiled"}])
def test_what_motes_cannot_do_is_refused(asked):
    with pytest.raises(ScenarioError, match="on motes"):
        scenario().run(on=motes.virtual(), **asked)


# Outages, losses, and what is told after them


@needs_node
def test_a_mote_that_answers_again_within_an_outage_is_its_node_when_that_ends(three):
    run = scenario(wb.outage(2, start_s=2, stop_s=8), duration_s=60).run(on=three)
    wait_until(lambda: told(run, "failed", node=2))
    three.restart(2)
    wait_until(lambda: told(run, "link_found", node=2))
    assert not told(run, "recovered")
    wait_until(lambda: [row for row in told(run, "published", node=2) if row["time_us"] > 8e6])
    run.stop()
    [found], [recovered] = told(run, "link_found"), told(run, "recovered", node=2)
    assert found["time_us"] < 8e6 <= recovered["time_us"]
    assert len(told(run, "failed")) == 1
    times = [row["time_us"] for row in told(run, "published", node=2)]
    assert not [time for time in times if 2.2e6 < time < 7.8e6]


@needs_node
def test_after_a_restart_a_node_is_told_of_the_links_that_lead_to_it(three, monkeypatch):
    links = []
    monkeypatch.setattr(driver.LiveNode, "link_quality", lambda self, *link: links.append((self.address, *link)))
    one_way = LINE.copy()
    one_way.remove_edge(1, 2)
    one_way.edges[2, 1]["pdr"] = 0.7
    run = scenario(topology=one_way, duration_s=60).run(on=three)
    wait_until(lambda: told(run, "published"))
    at_first = list(links)
    three.restart(1)
    wait_until(lambda: told(run, "recovered", node=1))
    run.stop()
    told_to_1 = [link[:4] for link in at_first if link[0] == 1]
    assert told_to_1 == [(1, 0, 1.0, 1.0), (1, 2, 0.7, 0.0)]
    assert [link[:4] for link in links[len(at_first) :]] == told_to_1


@needs_node
def test_a_subscription_whose_end_falls_while_its_mote_is_lost_is_not_made_again(three):
    stops = wb.subscribe(1, "TEMP GE 20", stop_s=5)
    run = scenario(stops, duration_s=60).run(on=three)
    wait_until(lambda: told(run, "subscribed", node=1))
    three.kill(1)
    wait_until(lambda: run.now_s > 5.2)
    three.restart(1)
    wait_until(lambda: told(run, "recovered", node=1))
    after = len(told(run, "published"))
    wait_until(lambda: len(told(run, "published")) > after + 2)
    run.stop()
    assert len(told(run, "subscribed", node=1)) == 1


class Posted(list):
    def __call__(self, node, kind, *fields, rest=b"", then=None):
        self.append((node, kind, fields, then))


def asked_and_ended():
    """What a node subscribes to from 0 s to 1 s."""
    return workload.expand([wb.subscribe(1, "TEMP GE 20", stop_s=1)], (0, 1), 9_000_000, 1)


def test_a_subscription_that_ends_before_it_has_a_number_is_ended_when_that_comes():
    posted, answers = Posted(), []
    subscriptions = Subscriptions(posted, lambda *answer: answers.append(answer))
    begin, end = asked_and_ended()
    subscriptions.begin(begin, 0)
    subscriptions.end(end)
    [(_, kind, _, then)] = posted
    assert kind == messages.SUBSCRIBE
    then(mote_line.Answer(7, None, 0, ""))
    [(node, what, value)] = answers
    assert (node, what) == (1, "numbered")
    subscriptions.store_number(*value)
    assert [(node, kind, fields) for node, kind, fields, _ in posted[1:]] == [(1, messages.UNSUBSCRIBE, (7,))]


def test_numbers_of_a_mote_that_is_lost_are_forgotten():
    posted = Posted()
    subscriptions = Subscriptions(posted, lambda *answer: None)
    begin, end = asked_and_ended()
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
def test_a_node_numbers_from_its_motes_own_starts_on(three):
    three.restart(2)
    boots = three.rack.boots[2]
    run = scenario(duration_s=1).run(on=three)
    assert run.wait(120)
    assert told(run, "published", node=2)[0]["sequence"] == boots << 24


@needs_node
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="processes cannot be suspended here")
def test_motes_that_are_suspended_are_lost_and_found(monkeypatch):
    monkeypatch.setattr(mote_line, "SILENT_S", 1.0)
    monkeypatch.setattr(driver, "SYNC_S", 0.1)
    with motes.virtual() as on:
        run = scenario(duration_s=120).run(on=on)
        wait_until(lambda: told(run, "delivered"))
        os.kill(on.rack._process.pid, signal.SIGSTOP)
        try:
            wait_until(lambda: len(told(run, "link_lost")) == 3)
            assert all("is silent" in note for note in run.notes)
            assert all(not mote._answers for mote in run._session.motes.values())
        finally:
            os.kill(on.rack._process.pid, signal.SIGCONT)
        wait_until(lambda: len(told(run, "recovered")) == 3)
        last_us = told(run, "recovered")[-1]["time_us"]
        wait_until(lambda: [row for row in told(run, "delivered") if row["time_us"] > last_us])
        run.stop()


# Looking at it


@needs_node
def test_as_the_last_expression_of_a_cell_a_run_does_not_wait_for_its_end(three):
    run = scenario(duration_s=6000).run(on=three)
    shown = []
    thread = threading.Thread(target=lambda: shown.append(run._repr_mimebundle_()))
    thread.start()
    thread.join(PATIENCE_S)
    assert run.is_running
    [bundle] = shown
    assert list(bundle) == ["text/plain"] and bundle["text/plain"].startswith("LiveRun(")
    run.stop()
    assert "text/html" in run._repr_mimebundle_() or len(run._repr_mimebundle_()) > 1
