"""What goes wrong with motes and their lines: each ends in an event and a sentence, the rest goes on, nothing hangs."""

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
def virtual():
    """Three motes, which are killed and restarted."""
    with motes.virtual() as on:
        yield on


@pytest.fixture(scope="module")
def three():
    """Three motes on lines of their own."""
    with Rack(3, program_files("virtual")) as running:
        yield running


def scenario(duration_s=120):
    """Longer than any test: they stop a run when they have seen what they wait for."""
    workload = [wb.subscribe(SINK, "TEMP GE 25"), wb.publish(SOURCE, "TEMP IS 26", every_s=0.2, start_s=0.3)]
    protocol = wb.Diffusion(refresh_s=0.5, tick_s=0.2)
    return wb.Scenario(wb.topology.line(3), protocol, workload, radio=wb.Radio(loss="none"), duration_s=duration_s)


@contextlib.contextmanager
def running(on):
    """A run that has begun to deliver; it is stopped in the end, whatever happened."""
    run = scenario().run(on=on)
    try:
        wait_until(lambda: told(run, "delivered"))
        yield run
    finally:
        run.stop()


def told(run, event, **wanted):
    """The rows of an event so far."""
    rows = [row for row in run.so_far().trace.to_pylist() if row["event"] == event]
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def wait_for_deliveries_after(run, time_us):
    wait_until(lambda: [row for row in told(run, "delivered") if row["time_us"] > time_us])


def check_that_it_was_lost_and_found(run, node):
    """A mote that was lost counts as failed until it has answered again; returns when that was."""
    [lost], [failed] = told(run, "link_lost", node=node), told(run, "failed", node=node)
    [found], [recovered] = told(run, "link_found", node=node), told(run, "recovered", node=node)
    assert lost["time_us"] <= failed["time_us"] <= found["time_us"] <= recovered["time_us"]
    assert {row["node"] for row in told(run, "link_lost")} == {node}
    assert [note for note in run.notes if note.startswith(f"node {node}: ") and lost["detail"] in note]
    return recovered["time_us"]


# Motes that lose their power


@needs_node
@pytest.mark.parametrize("node", NODES)
def test_a_mote_that_is_killed_and_restarted_is_its_node_again(virtual, node):
    with running(virtual) as run:
        virtual.kill(node)
        wait_until(lambda: told(run, "failed", node=node))
        assert run.is_running
        virtual.restart(node)
        wait_until(lambda: told(run, "recovered", node=node))
        recovered_us = check_that_it_was_lost_and_found(run, node)
        wait_for_deliveries_after(run, recovered_us)
    assert run.wait(120)
    check_numbers_of_the_source(run)
    if node == SINK:
        first, again = (row["sequence"] for row in told(run, "subscribed"))
        assert again - first == NUMBERS_PER_BOOT


def check_numbers_of_the_source(run):
    numbers = [row["sequence"] for row in told(run, "published", node=SOURCE)]
    assert len(numbers) == len(set(numbers))
    in_messages = [(row["sequence"], row["value"]) for row in told(run, "originated", node=SOURCE, message="data")]
    assert {reading for _, reading in in_messages} <= set(numbers)
    assert len(in_messages) == len(set(in_messages)) > 0
    if told(run, "recovered", node=SOURCE):
        # Where the motes are up for longer than the run, the first start in it is not the mote's first.
        assert numbers[0] % NUMBERS_PER_BOOT == 0 and numbers[-1] >= numbers[0] + NUMBERS_PER_BOOT


@needs_node
def test_a_mote_that_stays_dead_ends_nothing_but_itself(virtual):
    with running(virtual) as run:
        virtual.kill(SINK)
        wait_until(lambda: told(run, "failed", node=SINK))
        count = len(told(run, "published"))
        wait_until(lambda: len(told(run, "published")) > count + 3)
    assert run.wait(120)
    assert not told(run, "link_found")
    virtual.restart(SINK)


@needs_node
def test_a_mote_that_is_reset_is_its_node_again(three):
    with running(motes.boards(three.urls)) as run:
        run._session.motes[SOURCE].post(messages.RESET)
        wait_until(lambda: told(run, "recovered", node=SOURCE))
        wait_for_deliveries_after(run, check_that_it_was_lost_and_found(run, SOURCE))
    check_numbers_of_the_source(run)


# Lines that break, and noise on them


@needs_node
@pytest.mark.parametrize("towards", ["host", "mote"])
@pytest.mark.parametrize("node", [RELAY, SOURCE])
def test_a_line_that_is_cut_in_the_middle_of_a_frame_is_opened_again(three, node, towards):
    with Proxy(three.urls[node]) as proxy:
        urls = {**dict(zip(NODES, three.urls, strict=True)), node: proxy.url}
        with running(motes.boards(urls)) as run:
            proxy.cut(towards)
            wait_until(lambda: told(run, "recovered", node=node))
            wait_for_deliveries_after(run, check_that_it_was_lost_and_found(run, node))
        assert proxy.cuts == 1
    # The mote has not begun again, but it was made its node anew: that too must not number from the start.
    check_numbers_of_the_source(run)


@needs_node
def test_a_megabyte_of_noise_both_ways_is_told_and_the_run_goes_on(three):
    noise = random.Random(3).randbytes(1 << 20)
    with Proxy(three.urls[RELAY]) as proxy:
        urls = [three.urls[SINK], proxy.url, three.urls[SOURCE]]
        with running(motes.boards(urls)) as run:
            before_B = three.memory().allocated_B[RELAY]
            proxy.disturb(host=noise, mote=noise)
            wait_until(lambda: told(run, "noise", detail=""))
            wait_until(lambda: told(run, "noise", detail="on the way to the host"))
            wait_until(lambda: told(run, "noise", detail="")[-1]["value"] > 3000)
            assert {row["node"] for row in told(run, "noise")} == {RELAY}
            wait_for_deliveries_after(run, run.now_s * 1e6)
            assert three.memory().allocated_B[RELAY] - before_B < 8192
        assert not told(run, "link_lost")
        # Noise that happened upon no message: nothing that a mote did not say is in the trace.
        assert {row["node"] for row in told(run, "delivered")} == {SINK}
        check_numbers_of_the_source(run)


def test_a_line_without_a_mote_is_one_sentence():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"socket://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(LinkError, match="does not answer; check that a mote with the workbench's program"):
            Mote(url).open(timeout_s=0.6)
    for wrong in (url, "socket://127.0.0.1", "socket://nowhere.invalid:7", "/dev/no-such-port"):
        with pytest.raises(LinkError, match="cannot be opened: "):
            Mote(wrong).open()


@needs_node
def test_a_mote_that_is_not_there_ends_the_run_before_it_begins(three):
    three.kill(RELAY)
    before = threading.active_count()
    with pytest.raises(LinkError, match="cannot be opened: "):
        scenario().run(on=motes.boards(three.urls))
    three.restart(RELAY)
    wait_until(lambda: threading.active_count() <= before)


# Greetings that fail


@needs_node
def test_a_host_of_another_version_is_told_which_the_mote_speaks(three, monkeypatch):
    monkeypatch.setattr(messages, "VERSION", VERSION + 1)
    with pytest.raises(
        LinkError,
        match=f"uses version {VERSION} of the host link, this workbench {VERSION + 1}; install the program of the",
    ):
        Mote(three.urls[0]).open()
    with pytest.raises(LinkError, match=f"uses version {VERSION} of the host link, this workbench {VERSION + 1}"):
        scenario().run(on=motes.boards(three.urls))
    monkeypatch.undo()
    with Mote(three.urls[0]) as mote:
        assert mote.greeting.board == "virtual"


def test_a_mote_of_another_version_is_told_too():
    """One that answers every greeting as the program of another release would."""
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
def test_a_second_host_is_turned_away_and_the_first_goes_on(three):
    with running(motes.boards(three.urls)) as run:
        with pytest.raises(LinkError, match="belongs to another host, which was active within the last seconds"):
            Mote(three.urls[RELAY]).open()
        wait_until(lambda: told(run, "contested"))
        with pytest.raises(LinkError, match="belongs to another host"):
            scenario().run(on=motes.boards(three.urls))
        wait_for_deliveries_after(run, run.now_s * 1e6)
        assert not told(run, "link_lost")
    assert told(run, "contested", node=RELAY)
    assert run.notes.count(f"node {RELAY}: another host greeted or commanded this mote, and was refused") == 1
    with Mote(three.urls[RELAY]) as mote:  # After the run they are free.
        assert mote.command(messages.PING).number > 0


ORDERS = [
    (messages.PUBLISH, (), messages.encode_attribute_list(wb.parse("TEMP IS 99"))),
    (messages.HEARD, (SOURCE, 1), b"frame"),
    (messages.SET_TIME, (0, messages.HELD), b""),
    (messages.GOODBYE, (), b""),
    (messages.RESET, (), b""),
]


@needs_node
def test_a_second_connection_commands_nothing_is_refused_and_leaves_a_row(three):
    orders = [messages.encode(kind, bytes(messages.SECRET_B), 1, *fields, rest=rest) for kind, fields, rest in ORDERS]
    with running(motes.boards(three.urls)) as run, contextlib.closing(port.open_port(three.urls[RELAY])) as stranger:
        for order in orders:
            stranger.write(framing.encode(order))
        refusals, deframer = [], framing.Deframer()

        def read():
            decoded = [messages.decode(body) for body in deframer.feed(stranger.read())]
            refusals.extend(fields for kind, fields, _ in decoded if kind == messages.REFUSED)
            return len(refusals) == len(orders)

        wait_until(read)
        assert set(refusals) == {(messages.MAGIC, VERSION, 0, messages.NO_SECRET)}
        wait_until(lambda: told(run, "contested"))
        wait_for_deliveries_after(run, run.now_s * 1e6)
        assert not told(run, "link_lost")
    assert {row["node"] for row in told(run, "contested")} == {RELAY}
    assert run.notes == [f"node {RELAY}: another host greeted or commanded this mote, and was refused"]
    assert not told(run, "published", node=RELAY)


# Answers that fail


@needs_node
def test_a_command_that_is_not_answered_is_one_sentence(three):
    said = []
    with Proxy(three.urls[0]) as proxy, Mote(proxy.url, lambda kind, value: said.append(kind)) as mote:
        mote.configure(0, FLOODING, 1)
        proxy.cut("mote")
        with pytest.raises(LinkError, match="is lost: "):
            mote.command(messages.PING)
        wait_until(lambda: "ready" in said)
        assert mote.command(messages.PING).number > 0


@needs_node
def test_a_command_that_cannot_be_is_one_sentence_from_the_mote(three):
    with Mote(three.urls[0]) as mote:
        mote.configure(0, FLOODING, 1)
        with pytest.raises(LinkError, match=r"socket://.*: there is no subscription 5 at node 0"):
            mote.unsubscribe(5)
        with pytest.raises(LinkError, match="the mote failed: AttributeError"):
            mote.configure(0, {**FLOODING, "settings": {}}, 1)
        assert mote.publish(wb.parse("TEMP IS 26")) == 0


def test_a_configuration_that_no_frame_can_carry_is_one_sentence():
    with pytest.raises(LinkError, match=r"node 3's configuration takes \d+ bytes and the host link carries 2037"):
        Mote("socket://127.0.0.1:1").configure(3, FLOODING, 1, keys=["x" * 3000])
