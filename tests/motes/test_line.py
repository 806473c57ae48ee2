"""When a mote counts as lost, and how it is found again: silence, another host, defects, writes that fail, closing."""

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
    with FakeMote() as one:
        yield one


@pytest.fixture
def impatient(monkeypatch):
    """A mote that says nothing for a fifth of a second is silent."""
    monkeypatch.setattr(mote_line, "SILENT_S", 0.2)
    monkeypatch.setattr(mote_line, "GREETING_S", 0.1)


def ask_until(mote, is_so):
    """As whoever drives it does: ask now and then."""

    def asked():
        if not mote.is_lost:
            mote.ping()
        return is_so()

    wait_until(asked)


def test_a_mote_that_falls_silent_is_lost_and_greeted_until_it_answers(fake, impatient):
    told, answers = [], []
    with Mote(fake.url, lambda *what: told.append(what)) as mote:
        fake.is_silent = True
        mote.post(messages.PING, then=answers.append)
        ask_until(mote, lambda: mote.is_lost)
        [(kind, reason)] = told
        assert kind == "lost" and "is silent: " in reason and "commands were not answered" in reason
        # Nobody waits any longer for an answer, and nobody begins to.
        assert [str(answer) for answer in answers] == [reason]
        assert mote._answers == {}
        with pytest.raises(LinkError, match="is silent"):
            mote.request_clock()
        assert mote._answers == {}
        fake.is_silent = False
        wait_until(lambda: not mote.is_lost)
        assert told[1:] == [("ready", mote_line.Greeting(0, False, "fake"))]
        assert mote.command(messages.PING).number == 0


def test_a_mote_that_is_asked_nothing_may_be_silent(fake, impatient):
    with Mote(fake.url) as mote:
        time.sleep(0.5)
        assert not mote.is_lost


def test_a_mote_that_began_again_unheard_is_greeted_again(fake, impatient):
    told = []
    with Mote(fake.url, lambda *what: told.append(what)) as mote:
        fake.forget()
        ask_until(mote, lambda: len(told) == 2)
        assert [kind for kind, _ in told] == ["lost", "ready"]
        assert mote.greeting.boot == 1


def test_a_silent_line_is_opened_again(fake, impatient, monkeypatch):
    monkeypatch.setattr(mote_line, "REOPEN_S", 0.4)
    with Mote(fake.url) as mote:
        first = mote._port
        fake.is_silent = True
        ask_until(mote, lambda: mote.is_lost)
        wait_until(lambda: mote._port is not first)
        fake.is_silent = False
        wait_until(lambda: not mote.is_lost)


def test_a_host_that_hears_another_one_greeted_knows_that_the_mote_is_lost(fake):
    told = []
    with Mote(fake.url, lambda *what: told.append(what)) as mote:
        fake.ready(mote._session ^ 2)
        wait_until(lambda: told)
        assert told[0] == ("lost", f"{fake.url} belongs to another host, which has greeted the mote")


def test_what_a_mote_says_to_another_host_is_not_taken(fake, impatient):
    told, answers = [], []
    with Mote(fake.url, lambda *what: told.append(what)) as mote:
        fake.is_silent = True
        fake.ready(mote._session ^ 2)
        wait_until(lambda: mote.is_lost)
        token = mote._next_token()
        mote._answers[token] = answers.append
        fake.say(messages.SEND, -1, rest=b"another's")
        fake.say(messages.ANSWER, token, 1, 0, -1, 0)
        fake.ready(mote._session)
        fake.say(messages.SEND, -1, rest=b"ours")
        wait_until(lambda: len(told) == 3)
    assert [kind for kind, _ in told] == ["lost", "ready", "send"]
    assert told[2][1] == (None, b"ours") and answers == []


def test_every_host_has_a_secret_of_its_own_and_sends_it_with_every_command(fake):
    assert len({Mote(fake.url)._secret for _ in range(20)}) == 20
    with Mote(fake.url) as mote:
        fake.heard.clear()
        mote.command(messages.PING)
        mote.blacklist(3)
        assert [fields[0] for _, fields in fake.heard] == [mote._secret] * 2


def test_a_lost_mote_that_refuses_says_so_once(fake, impatient):
    told = []
    with Mote(fake.url, lambda *what: told.append(what)) as mote:
        fake.is_silent = True
        ask_until(mote, lambda: mote.is_lost)
        for _ in range(3):
            fake.say(messages.REFUSED, messages.MAGIC, messages.VERSION, mote._session, messages.BUSY)
        wait_until(lambda: len(told) == 2)
        fake.is_silent = False
        wait_until(lambda: not mote.is_lost)
    assert [kind for kind, _ in told] == ["lost", "refused", "ready"]


def test_a_defect_of_who_is_told_is_a_loss_with_its_reason(fake, impatient):
    told = []

    def tell(kind, value):
        if kind == "send":
            raise RuntimeError("cannot take it")
        told.append((kind, value))

    def fail(answer):
        raise RuntimeError("cannot hear it")

    with Mote(fake.url, tell) as mote:
        fake.say(messages.SEND, -1, rest=b"frame")
        wait_until(lambda: len(told) == 2)
        assert told[0][0] == "lost" and "RuntimeError('cannot take it')" in told[0][1]
        assert told[1][0] == "ready"
        mote.post(messages.PING, then=fail)
        wait_until(lambda: len(told) == 4)
        assert told[2][0] == "lost" and "RuntimeError('cannot hear it')" in told[2][1]
        assert told[3][0] == "ready"


def test_hosts_begin_with_tokens_of_their_own():
    assert len({Mote("socket://127.0.0.1:1")._next_token() for _ in range(20)}) > 1


# Lines


class SlowPort(port.Port):
    """One that is opened while the mote is being closed."""

    def __init__(self):
        super().__init__("slow")
        self.is_closed = False

    def close(self):
        self.is_closed = True


def test_a_line_that_is_opened_while_the_mote_is_closed_is_given_back(fake, monkeypatch):
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


def test_a_line_on_which_no_greeting_can_be_written_is_given_back(fake, monkeypatch):
    opened = []

    def open_one(url):
        opened.append(SlowPort())  # It can neither write nor read.
        opened[-1]._write = lambda data: (_ for _ in ()).throw(LinkError("no"))
        return opened[-1]

    with Mote(fake.url):
        monkeypatch.setattr(mote_line, "open_port", open_one)
        monkeypatch.setattr(mote_line, "_RETRY_S", 0.01)
        fake._line.shutdown(socket.SHUT_RDWR)
        wait_until(lambda: len(opened) > 2)
        assert all(one.is_closed for one in opened[:-1])


def test_a_write_that_is_held_up_is_a_lost_line(fake, monkeypatch):
    monkeypatch.setattr(port, "WRITE_S", 0.1)
    told = []
    with Mote(fake.url, lambda *what: told.append(what)) as mote:
        fake.is_reading.clear()
        with pytest.raises(LinkError, match="is lost: "):
            for _ in range(100_000):  # as much as the system keeps for a reader who does not come, and more
                mote.post(messages.HEARD, 1, 1, rest=bytes(2000))
        fake.is_reading.set()
        wait_until(lambda: [kind for kind, _ in told][-1:] == ["ready"])
        assert told[0][0] == "lost"


def test_an_end_that_meets_itself_is_no_mote(monkeypatch):
    def meet(address, timeout):
        one = socket.socket()
        one.bind(("127.0.0.1", 0))
        one.connect(one.getsockname())
        made.append(one)
        return one

    made = []
    monkeypatch.setattr(socket, "create_connection", meet)
    with pytest.raises(LinkError, match="cannot be opened: no program listens on that port"):
        port.open_port("socket://127.0.0.1:40000")
    assert made[0].fileno() == -1
