"""How a mote is lost and found again: silence, another host, defects, failing writes, and a line being closed."""

import socket
import threading
import time

import pytest

from tests.motes.fake_mote import FakeMote
from tests.until import PATIENCE_S, wait_until
from workbench.errors import LinkError
from workbench.motes import line as mote_line
from workbench.motes import messages, port
from workbench.motes.mote import Mote


@pytest.fixture
def fake():
    with FakeMote() as mote:
        yield mote


@pytest.fixture
def impatient(monkeypatch):
    """Shorten the timeouts: a mote without a message for 0.2 s counts as silent."""
    monkeypatch.setattr(mote_line, "SILENT_S", 0.2)
    monkeypatch.setattr(mote_line, "GREETING_S", 0.1)


def ping_until(mote, is_true):
    """Wait until ``is_true()`` holds, and ping the mote meanwhile, as its driver does."""

    def ping_and_check():
        if not mote.is_lost:
            mote.ping()
        return is_true()

    wait_until(ping_and_check)


def test_a_mote_that_falls_silent_is_lost_and_greeted_until_it_answers(fake, impatient):
    reports, answers = [], []
    with Mote(fake.url, lambda *report: reports.append(report)) as mote:
        fake.is_silent = True
        mote.post(messages.PING, then=answers.append)
        ping_until(mote, lambda: mote.is_lost)
        [(kind, reason)] = reports
        assert kind == "lost" and "is silent: " in reason and "commands were not answered" in reason
        # Every pending command has failed, and a new command fails at once.
        assert [str(answer) for answer in answers] == [reason]
        assert mote._answers == {}
        with pytest.raises(LinkError, match="is silent"):
            mote.request_clock()
        assert mote._answers == {}
        fake.is_silent = False
        wait_until(lambda: not mote.is_lost)
        assert reports[1:] == [("ready", mote_line.Greeting(0, False, "fake"))]
        assert mote.command(messages.PING).number == 0


def test_a_mote_without_pending_commands_may_be_silent(fake, impatient):
    with Mote(fake.url) as mote:
        time.sleep(0.5)
        assert not mote.is_lost


def test_a_mote_that_restarted_unnoticed_is_greeted_again(fake, impatient):
    reports = []
    with Mote(fake.url, lambda *report: reports.append(report)) as mote:
        fake.restart_silently()
        ping_until(mote, lambda: len(reports) == 2)
        assert [kind for kind, _ in reports] == ["lost", "ready"]
        assert mote.greeting.boot == 1


def test_a_silent_line_is_reopened(fake, impatient, monkeypatch):
    monkeypatch.setattr(mote_line, "REOPEN_S", 0.4)
    with Mote(fake.url) as mote:
        first = mote._port
        fake.is_silent = True
        ping_until(mote, lambda: mote.is_lost)
        wait_until(lambda: mote._port is not first)
        fake.is_silent = False
        wait_until(lambda: not mote.is_lost)


def test_a_mote_that_answers_the_greeting_of_another_host_is_lost(fake):
    reports = []
    with Mote(fake.url, lambda *report: reports.append(report)) as mote:
        fake.ready(mote._session ^ 2)
        wait_until(lambda: reports)
        assert reports[0] == ("lost", f"another host has connected to the mote at {fake.url}")


def test_messages_of_a_mote_to_another_host_are_ignored(fake, impatient):
    reports, answers = [], []
    with Mote(fake.url, lambda *report: reports.append(report)) as mote:
        fake.is_silent = True
        fake.ready(mote._session ^ 2)
        wait_until(lambda: mote.is_lost)
        token = mote._make_token()
        mote._answers[token] = answers.append
        fake.send(messages.SEND, -1, rest=b"another's")
        fake.send(messages.ANSWER, token, 1, 0, -1, 0)
        fake.ready(mote._session)
        fake.send(messages.SEND, -1, rest=b"ours")
        wait_until(lambda: len(reports) == 3)
    assert [kind for kind, _ in reports] == ["lost", "ready", "send"]
    assert reports[2][1] == (None, b"ours") and answers == []


def test_every_host_has_its_own_secret_and_sends_it_with_every_command(fake):
    assert len({Mote(fake.url)._secret for _ in range(20)}) == 20
    with Mote(fake.url) as mote:
        fake.commands.clear()
        mote.command(messages.PING)
        mote.blacklist(3)
        assert [fields[0] for _, fields in fake.commands] == [mote._secret] * 2


def test_refusals_of_a_lost_mote_are_reported_once(fake, impatient):
    reports = []
    with Mote(fake.url, lambda *report: reports.append(report)) as mote:
        fake.is_silent = True
        ping_until(mote, lambda: mote.is_lost)
        for _ in range(3):
            fake.send(messages.REFUSED, messages.MAGIC, messages.VERSION, mote._session, messages.BUSY)
        wait_until(lambda: len(reports) == 2)
        fake.is_silent = False
        wait_until(lambda: not mote.is_lost)
    assert [kind for kind, _ in reports] == ["lost", "refused", "ready"]


def test_an_error_in_a_callback_is_a_loss_with_its_reason(fake, impatient):
    reports = []

    def fail_for_frames(kind, value):
        if kind == "send":
            raise RuntimeError("cannot take it")
        reports.append((kind, value))

    def fail_for_answer(answer):
        raise RuntimeError("cannot hear it")

    with Mote(fake.url, fail_for_frames) as mote:
        fake.send(messages.SEND, -1, rest=b"frame")
        wait_until(lambda: len(reports) == 2)
        assert reports[0][0] == "lost" and "RuntimeError('cannot take it')" in reports[0][1]
        assert reports[1][0] == "ready"
        mote.post(messages.PING, then=fail_for_answer)
        wait_until(lambda: len(reports) == 4)
        assert reports[2][0] == "lost" and "RuntimeError('cannot hear it')" in reports[2][1]
        assert reports[3][0] == "ready"


def test_hosts_begin_with_different_tokens():
    assert len({Mote("socket://127.0.0.1:1")._make_token() for _ in range(20)}) > 1


# Lines


class SlowPort(port.Port):
    """A port that is opened while the mote is being closed."""

    def __init__(self):
        super().__init__("slow")
        self.is_closed = False

    def close(self):
        self.is_closed = True


def test_a_line_that_is_opened_while_the_mote_is_being_closed_is_closed(fake, monkeypatch):
    begun, go_on, slow = threading.Event(), threading.Event(), SlowPort()

    def open_slowly(url):
        begun.set()
        go_on.wait(120)
        return slow

    mote = Mote(fake.url)
    mote.open()
    monkeypatch.setattr(mote_line, "open_port", open_slowly)
    fake._line.shutdown(socket.SHUT_RDWR)
    assert begun.wait(120)
    closing = threading.Thread(target=mote.close)
    closing.start()
    assert mote._closed.wait(120)
    go_on.set()
    closing.join(PATIENCE_S)
    mote._reader.join(PATIENCE_S)
    assert slow.is_closed and not mote._reader.is_alive()


def test_a_line_that_cannot_carry_the_greeting_is_closed(fake, monkeypatch):
    opened = []

    def open_one(url):
        opened.append(SlowPort())  # It fails when it is written.
        opened[-1]._write = lambda data: (_ for _ in ()).throw(LinkError("no"))
        return opened[-1]

    with Mote(fake.url):
        monkeypatch.setattr(mote_line, "open_port", open_one)
        monkeypatch.setattr(mote_line, "_RETRY_S", 0.01)
        fake._line.shutdown(socket.SHUT_RDWR)
        wait_until(lambda: len(opened) > 2)
        assert all(slow.is_closed for slow in opened[:-1])


def test_a_write_that_blocks_too_long_loses_the_line(fake, monkeypatch):
    monkeypatch.setattr(port, "WRITE_S", 0.1)
    reports = []
    with Mote(fake.url, lambda *report: reports.append(report)) as mote:
        fake.is_reading.clear()
        with pytest.raises(LinkError, match="is lost: "):
            for _ in range(100_000):  # more than the system buffers for a reader that never reads
                mote.post(messages.HEARD, 1, 1, rest=bytes(2000))
        fake.is_reading.set()
        wait_until(lambda: [kind for kind, _ in reports][-1:] == ["ready"])
        assert reports[0][0] == "lost"


def test_a_socket_connected_to_itself_is_not_a_mote(monkeypatch):
    def connect_to_itself(address, timeout):
        end = socket.socket()
        end.bind(("127.0.0.1", 0))
        end.connect(end.getsockname())
        sockets.append(end)
        return end

    sockets = []
    monkeypatch.setattr(socket, "create_connection", connect_to_itself)
    with pytest.raises(LinkError, match="cannot be opened: no program listens on this port"):
        port.open_port("socket://127.0.0.1:40000")
    assert sockets[0].fileno() == -1
