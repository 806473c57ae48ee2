"""Faults of motes and their lines: each leaves an event and a sentence, nothing hangs, and the run continues."""

import contextlib
import random
import socket
import threading

import pytest

import workbench as wb
from tests.motes.proxy import Proxy
from tests.until import PATIENCE_S, wait_until
from workbench import motes
from workbench.errors import LinkError
from workbench.motes import framing, messages, port, rack
from workbench.motes.mote import Mote
from workbench.motes.program import program_files
from workbench.motes.rack import Rack
from workbench.motes.session import protocol_on_a_mote
from workbench.protocols.contract import NUMBERS_PER_BOOT

needs_node = pytest.mark.skipif(rack.missing() is not None, reason=str(rack.missing()))

SINK, RELAY, SOURCE = NODES = (0, 1, 2)
VERSION = messages.VERSION
FLOODING = protocol_on_a_mote(wb.Flooding())


@pytest.fixture(scope="module")
def virtual_motes():
    """Yield three motes, which tests kill and restart."""
    with motes.virtual() as on:
        yield on


@pytest.fixture(scope="module")
def three_motes():
    """Yield a rack of three motes, each on its own line."""
    with Rack(3, program_files("virtual")) as running:
        yield running


def scenario(duration_s=120):
    """Return a scenario that lasts longer than any test; each test stops its run."""
    workload = [wb.subscribe(SINK, "TEMP GE 25"), wb.publish(SOURCE, "TEMP IS 26", every_s=0.2, start_s=0.3)]
    protocol = wb.Diffusion(refresh_s=0.5, tick_s=0.2)
    return wb.Scenario(wb.topology.line(3), protocol, workload, radio=wb.Radio(loss="none"), duration_s=duration_s)


@contextlib.contextmanager
def running(on):
    """Yield a run that has begun to deliver, and stop it at the end, even after an error."""
    run = scenario().run(on=on)
    try:
        wait_until(lambda: rows_of(run, "delivered"))
        yield run
    finally:
        run.stop()


def rows_of(run, event, **wanted):
    """Return the rows of an event so far that have the wanted values."""
    rows = [row for row in run.so_far().trace.to_pylist() if row["event"] == event]
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def wait_for_deliveries_after(run, time_us):
    wait_until(lambda: [row for row in rows_of(run, "delivered") if row["time_us"] > time_us])


def check_lost_and_recovered(run, node):
    """Check that the lost mote counted as failed until it answered again; return the time of its recovery in us."""
    [lost], [failed] = rows_of(run, "link_lost", node=node), rows_of(run, "failed", node=node)
    [link_found], [recovered] = rows_of(run, "link_found", node=node), rows_of(run, "recovered", node=node)
    assert lost["time_us"] <= failed["time_us"] <= link_found["time_us"] <= recovered["time_us"]
    assert {row["node"] for row in rows_of(run, "link_lost")} == {node}
    assert [note for note in run.notes if note.startswith(f"node {node}: ") and lost["detail"] in note]
    return recovered["time_us"]


# Motes that are killed, restarted and reset


@needs_node
@pytest.mark.parametrize("node", NODES)
def test_a_mote_that_is_killed_and_restarted_resumes_its_node(virtual_motes, node):
    with running(virtual_motes) as run:
        virtual_motes.kill(node)
        wait_until(lambda: rows_of(run, "failed", node=node))
        assert run.is_running
        virtual_motes.restart(node)
        wait_until(lambda: rows_of(run, "recovered", node=node))
        recovered_us = check_lost_and_recovered(run, node)
        wait_for_deliveries_after(run, recovered_us)
    assert run.wait(120)
    check_numbers_of_the_source(run)
    if node == SINK:
        first, again = (row["sequence"] for row in rows_of(run, "subscribed"))
        assert again - first == NUMBERS_PER_BOOT


def check_numbers_of_the_source(run):
    numbers = [row["sequence"] for row in rows_of(run, "published", node=SOURCE)]
    assert len(numbers) == len(set(numbers))
    in_messages = [(row["sequence"], row["value"]) for row in rows_of(run, "originated", node=SOURCE, message="data")]
    assert {reading for _, reading in in_messages} <= set(numbers)
    assert len(in_messages) == len(set(in_messages)) > 0
    if rows_of(run, "recovered", node=SOURCE):
        # Motes may run for longer than the run, so its first start need not be the first of the mote.
        assert numbers[0] % NUMBERS_PER_BOOT == 0 and numbers[-1] >= numbers[0] + NUMBERS_PER_BOOT


@needs_node
def test_a_mote_that_stays_dead_does_not_end_the_run(virtual_motes):
    with running(virtual_motes) as run:
        virtual_motes.kill(SINK)
        wait_until(lambda: rows_of(run, "failed", node=SINK))
        count = len(rows_of(run, "published"))
        wait_until(lambda: len(rows_of(run, "published")) > count + 3)
    assert run.wait(120)
    assert not rows_of(run, "link_found")
    virtual_motes.restart(SINK)


@needs_node
def test_a_mote_that_is_reset_resumes_its_node(three_motes):
    with running(motes.boards(three_motes.urls)) as run:
        run._session.motes[SOURCE].post(messages.RESET)
        wait_until(lambda: rows_of(run, "recovered", node=SOURCE))
        wait_for_deliveries_after(run, check_lost_and_recovered(run, SOURCE))
    check_numbers_of_the_source(run)


# Lines that break, and noise on them


@needs_node
@pytest.mark.parametrize("towards", ["host", "mote"])
@pytest.mark.parametrize("node", [RELAY, SOURCE])
def test_a_line_that_is_cut_in_the_middle_of_a_frame_is_reopened(three_motes, node, towards):
    with Proxy(three_motes.urls[node]) as proxy:
        urls = {**dict(zip(NODES, three_motes.urls, strict=True)), node: proxy.url}
        with running(motes.boards(urls)) as run:
            proxy.cut(towards)
            wait_until(lambda: rows_of(run, "recovered", node=node))
            wait_for_deliveries_after(run, check_lost_and_recovered(run, node))
        assert proxy.cuts == 1
    # The mote has not restarted, but its node was created again: its numbers must not restart either.
    check_numbers_of_the_source(run)


@needs_node
def test_a_megabyte_of_noise_in_both_directions_is_reported_and_the_run_continues(three_motes):
    noise = random.Random(3).randbytes(1 << 20)
    with Proxy(three_motes.urls[RELAY]) as proxy:
        urls = [three_motes.urls[SINK], proxy.url, three_motes.urls[SOURCE]]
        with running(motes.boards(urls)) as run:
            before_B = three_motes.memory().allocated_B[RELAY]
            proxy.disturb(host=noise, mote=noise)
            wait_until(lambda: rows_of(run, "noise", detail=""))
            wait_until(lambda: rows_of(run, "noise", detail="on the way to the host"))
            wait_until(lambda: rows_of(run, "noise", detail="")[-1]["value"] > 3000)
            assert {row["node"] for row in rows_of(run, "noise")} == {RELAY}
            wait_for_deliveries_after(run, run.now_s * 1e6)
            assert three_motes.memory().allocated_B[RELAY] - before_B < 8192
        assert not rows_of(run, "link_lost")
        # No noise was read as a message: the trace contains only deliveries of the sink.
        assert {row["node"] for row in rows_of(run, "delivered")} == {SINK}
        check_numbers_of_the_source(run)


def test_a_line_without_a_mote_is_refused_in_one_sentence():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"socket://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(LinkError, match="does not answer; check that a mote with the workbench's program"):
            Mote(url).open(timeout_s=0.6)
    for wrong in (url, "socket://127.0.0.1", "socket://nowhere.invalid:7", "/dev/no-such-port"):
        with pytest.raises(LinkError, match="cannot be opened: "):
            Mote(wrong).open()


@needs_node
def test_a_missing_mote_ends_the_run_before_it_begins(three_motes):
    three_motes.kill(RELAY)
    before = threading.active_count()
    with pytest.raises(LinkError, match="cannot be opened: "):
        scenario().run(on=motes.boards(three_motes.urls))
    three_motes.restart(RELAY)
    wait_until(lambda: threading.active_count() <= before)


# Greetings that fail


@needs_node
def test_a_host_of_another_version_is_refused_with_both_versions(three_motes, monkeypatch):
    monkeypatch.setattr(messages, "VERSION", VERSION + 1)
    with pytest.raises(
        LinkError,
        match=f"uses version {VERSION} of the host link, this workbench {VERSION + 1}; install the program of the",
    ):
        Mote(three_motes.urls[0]).open()
    with pytest.raises(LinkError, match=f"uses version {VERSION} of the host link, this workbench {VERSION + 1}"):
        scenario().run(on=motes.boards(three_motes.urls))
    monkeypatch.undo()
    with Mote(three_motes.urls[0]) as mote:
        assert mote.greeting.board == "virtual"


def test_a_mote_of_another_version_is_refused_with_both_versions():
    """The mote answers every greeting like the program of another release."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer():
            with contextlib.suppress(OSError), listener.accept()[0] as line:
                while line.recv(4096):
                    ready = messages.encode(messages.READY, messages.MAGIC, 9, 1, 0, 0, rest=b"late")
                    line.sendall(framing.encode(ready))

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(LinkError, match=f"uses version 9 of the host link, this workbench {VERSION}"):
            Mote(f"socket://127.0.0.1:{listener.getsockname()[1]}").open()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


@needs_node
def test_a_second_host_is_refused_and_the_first_continues(three_motes):
    with running(motes.boards(three_motes.urls)) as run:
        with pytest.raises(LinkError, match="is in use by another host, which was active within the last seconds"):
            Mote(three_motes.urls[RELAY]).open()
        wait_until(lambda: rows_of(run, "contested"))
        with pytest.raises(LinkError, match="is in use by another host"):
            scenario().run(on=motes.boards(three_motes.urls))
        wait_for_deliveries_after(run, run.now_s * 1e6)
        assert not rows_of(run, "link_lost")
    assert rows_of(run, "contested", node=RELAY)
    assert run.notes.count(f"node {RELAY}: another host greeted or commanded this mote, and was refused") == 1
    with Mote(three_motes.urls[RELAY]) as mote:  # After the run the motes are free.
        assert mote.command(messages.PING).number > 0


COMMANDS = [
    (messages.PUBLISH, (), messages.encode_attribute_list(wb.parse("TEMP IS 99"))),
    (messages.HEARD, (SOURCE, 1), b"frame"),
    (messages.SET_TIME, (0, messages.HELD), b""),
    (messages.GOODBYE, (), b""),
    (messages.RESET, (), b""),
]


@needs_node
def test_commands_of_a_second_connection_are_refused_and_recorded(three_motes):
    secret, urls = bytes(messages.SECRET_B), three_motes.urls
    commands = [messages.encode(kind, secret, 1, *fields, rest=rest) for kind, fields, rest in COMMANDS]
    with running(motes.boards(urls)) as run, contextlib.closing(port.open_port(urls[RELAY])) as stranger:
        for command in commands:
            stranger.write(framing.encode(command))
        refusals, deframer = [], framing.Deframer()

        def read():
            decoded = [messages.decode(body) for body in deframer.feed(stranger.read())]
            refusals.extend(fields for kind, fields, _ in decoded if kind == messages.REFUSED)
            return len(refusals) == len(commands)

        wait_until(read)
        assert set(refusals) == {(messages.MAGIC, VERSION, 0, messages.NO_SECRET)}
        wait_until(lambda: rows_of(run, "contested"))
        wait_for_deliveries_after(run, run.now_s * 1e6)
        assert not rows_of(run, "link_lost")
    assert {row["node"] for row in rows_of(run, "contested")} == {RELAY}
    assert run.notes == [f"node {RELAY}: another host greeted or commanded this mote, and was refused"]
    assert not rows_of(run, "published", node=RELAY)


# Answers that fail


@needs_node
def test_an_unanswered_command_ends_in_one_sentence(three_motes):
    reports = []
    with Proxy(three_motes.urls[0]) as proxy, Mote(proxy.url, lambda kind, value: reports.append(kind)) as mote:
        mote.configure(0, FLOODING, 1)
        proxy.cut("mote")
        with pytest.raises(LinkError, match="is lost: "):
            mote.command(messages.PING)
        wait_until(lambda: "ready" in reports)
        assert mote.command(messages.PING).number > 0


@needs_node
def test_an_impossible_command_is_refused_by_the_mote_in_one_sentence(three_motes):
    with Mote(three_motes.urls[0]) as mote:
        mote.configure(0, FLOODING, 1)
        with pytest.raises(LinkError, match=r"socket://.*: subscription 5 does not exist at node 0"):
            mote.unsubscribe(5)
        with pytest.raises(LinkError, match="the mote failed: AttributeError"):
            mote.configure(0, {**FLOODING, "settings": {}}, 1)
        assert mote.publish(wb.parse("TEMP IS 26")) == 0


def test_a_configuration_too_long_for_a_frame_is_refused_in_one_sentence():
    with pytest.raises(
        LinkError, match=r"the configuration of node 3 has \d+ bytes; the host link carries at most 2037"
    ):
        Mote("socket://127.0.0.1:1").configure(3, FLOODING, 1, keys=["x" * 3000])
