"""Virtual motes in their rack: lines, clocks, deaths and restarts, with a small program instead of the mote's."""

import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from itertools import pairwise

import pytest

from tests.repository import REPOSITORY
from tests.until import PATIENCE_S, wait_until
from workbench.errors import LinkError
from workbench.motes import rack
from workbench.motes.rack import Rack

pytestmark = pytest.mark.skipif(rack.missing() is not None, reason=str(rack.missing()))

# A mote that echoes the bytes behind a "=", and obeys a few commands by their names.
PROGRAM = b"""
import board

class Mote:
    def __init__(self):
        self.wakes = 0
        self.wait_us = None

    def feed(self, data):
        if data[:1] == b"=":
            board.write(data[1:])
        elif data == b"boots":
            board.write(b"boots %d." % board.boots())
        elif data == b"remember":
            import remembered
            remembered.value += 1
            board.write(b"%d." % remembered.value)
        elif data == b"clock":
            board.write(b"%d." % board.now_us())
        elif data == b"ticks":
            self.wait_us = 20000
        elif data == b"reset":
            board.write(b"bye.")
            board.reset()
            board.write(b"never said.")
        elif data == b"print":
            print("a line")
        elif data == b"fail":
            raise ValueError("on purpose")
        elif data == b"hang":
            board.write(b"hanging.")
            while True:
                pass
        elif data == b"chatter":
            for _ in range(6000):
                board.write(b"c" * 1000)

    def step(self):
        if self.wait_us is not None:
            self.wakes += 1
            board.write(b"tick %d %d." % (self.wakes, board.now_us()))
        return self.wait_us

board.run(Mote())
"""


def program(main=PROGRAM):
    board = (rack.HARDWARE / "mote" / "boards" / "virtual.py").read_bytes()
    return [("main.py", main), ("board.py", board), ("lib/unused.py", b""), ("remembered.py", b"value = 0\n")]


@pytest.fixture(scope="module")
def pair():
    with Rack(2, program()) as running:
        yield running


class Reports(list):
    """A list of (mote, text) of prints or crashes of motes, with a method that waits for the first entry."""

    def __init__(self):
        self._is_new = threading.Condition()

    def __call__(self, mote, text):
        with self._is_new:
            self.append((mote, text))
            self._is_new.notify_all()

    def wait(self):
        with self._is_new:
            assert self._is_new.wait_for(lambda: self, timeout=PATIENCE_S), "no mote has reported"
        return self[0]


def connect(running, mote, buffer_B=None):
    return connect_url(running.urls[mote], buffer_B)


def connect_url(url, buffer_B=None):
    host, port = url.removeprefix("socket://").split(":")
    line = socket.socket()
    line.settimeout(PATIENCE_S)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if buffer_B is not None:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_B)
    try:
        line.connect((host, int(port)))
    except OSError:
        line.close()
        raise
    return line


def read_until(line, end):
    data = b""
    while not data.endswith(end):
        more = line.recv(65536)
        assert more, f"the line was cut after {data[-100:]!r}"
        data += more
    return data


def ask(running, mote, command, end=b"."):
    with connect(running, mote) as line:
        line.sendall(command)
        return read_until(line, end)


def is_cut(line):
    try:
        return line.recv(100) == b""
    except ConnectionResetError:
        return True


def test_bytes_of_any_value_are_echoed_unchanged(pair):
    data = bytes(range(256))
    with connect(pair, 0) as line:
        line.sendall(b"=" + data[:-1])
        assert read_until(line, data[-2:-1]) == data[:-1]


def test_hosts_on_one_line_read_the_same_bytes(pair):
    with connect(pair, 0) as first, connect(pair, 0) as second:
        first.sendall(b"=one.")
        assert read_until(first, b".") == read_until(second, b".") == b"one."
        second.sendall(b"=two.")
        assert read_until(first, b".") == read_until(second, b".") == b"two."


def test_a_mote_does_not_see_the_globals_of_another(pair):
    answers = [ask(pair, mote, b"remember") for mote in (0, 0, 1)]
    assert answers == [b"1.", b"2.", b"1."]


def test_a_mote_is_stepped_again_after_the_time_it_returned():
    with Rack(1, program()) as running, connect(running, 0) as line:
        line.sendall(b"ticks")
        ticks = b""
        while ticks.count(b".") < 4:
            ticks += line.recv(1000)
    parts = [tick.split() for tick in ticks.split(b".")[:4]]
    assert [int(part[1]) for part in parts] == [1, 2, 3, 4]
    times_us = [int(part[2]) for part in parts]
    assert all(later - earlier >= 18000 for earlier, later in pairwise(times_us))


def test_clocks_run_at_the_given_speed_and_exceed_32_bits():
    with Rack(1, program(), speed=1e6) as running:
        before_us = int(ask(running, 0, b"clock")[:-1])
        time.sleep(0.01)
        after_us = int(ask(running, 0, b"clock")[:-1])
    assert after_us - before_us >= 0.01 * 1e6 * 1e6 > 2**32


def test_a_restarted_mote_is_on_the_same_line_and_counts_one_more_boot(pair):
    url, boots = pair.urls[1], pair.boots[1]
    with connect(pair, 1) as line:
        pair.restart(1)
        assert is_cut(line)
    assert (pair.urls[1], pair.boots[1]) == (url, boots + 1)
    assert ask(pair, 1, b"boots") == b"boots %d." % (boots + 1)


def test_a_killed_mote_is_off_the_line_until_it_is_restarted(pair):
    pair.kill(1)
    pair.kill(1)
    with pytest.raises(ConnectionRefusedError):
        connect(pair, 1)
    assert 1 not in pair.memory().allocated_B
    assert ask(pair, 0, b"=alive.") == b"alive."
    pair.restart(1)
    assert ask(pair, 1, b"=again.") == b"again."


def test_a_mote_that_resets_itself_restarts_on_the_same_line(pair):
    boots = pair.boots[0]
    with connect(pair, 0) as line:
        line.sendall(b"reset")
        assert read_until(line, b".") == b"bye."
        assert is_cut(line)
    wait_until(lambda: pair.boots[0] > boots)
    assert ask(pair, 0, b"boots") == b"boots %d." % (boots + 1)


def test_an_endless_loop_blocks_neither_the_rack_nor_other_motes(pair):
    assert ask(pair, 0, b"hang") == b"hanging."
    assert ask(pair, 1, b"=well.") == b"well."
    pair.restart(0)
    assert ask(pair, 0, b"=well.") == b"well."


def test_output_and_crashes_of_a_mote_are_reported():
    printed, crashed = Reports(), Reports()
    with Rack(2, program(), on_print=printed, on_crash=crashed) as running:
        with connect(running, 1) as line:
            line.sendall(b"print")
            assert printed.wait() == (1, "a line")
            line.sendall(b"fail")
            mote, traceback = crashed.wait()
            assert is_cut(line)
        assert mote == 1
        assert "Traceback" in traceback and "ValueError: on purpose" in traceback
        assert running.crashes == {1: traceback}
        assert ask(running, 0, b"=alive.") == b"alive."
        running.restart(1)
        assert running.crashes == {}
        assert ask(running, 1, b"boots") == b"boots 1."


def test_a_program_that_fails_at_its_start_is_reported_in_one_sentence():
    with pytest.raises(LinkError, match="the program of virtual mote 0 ended during its start: ValueError: not today"):
        Rack(1, program(b"raise ValueError('not today')"), on_crash=lambda mote, text: None)


def test_a_flood_of_bytes_neither_hangs_a_mote_nor_fills_its_memory(pair):
    pair.restart(0)
    before_B = pair.memory().allocated_B[0]
    with connect(pair, 0) as line:
        line.sendall(b"." * 2**20)
    assert ask(pair, 0, b"=still here!", end=b"!").endswith(b"still here!")
    assert pair.memory().allocated_B[0] - before_B < 4096


def test_unread_output_is_bounded_and_its_loss_is_logged(pair, caplog):
    sent_B = 6000 * 1000
    with caplog.at_level("WARNING", rack.__name__), connect(pair, 0, buffer_B=4096) as deaf:
        deaf.sendall(b"chatter")
        assert deaf.recv(1) == b"c"  # The mote writes on although the host does not read.
        assert ask(pair, 0, b"=still here!", end=b"!").endswith(b"still here!")
        sent_B += len(b"still here!") - 1
        arrived_B = lost_B = 0
        deaf.settimeout(0.1)
        for _ in range(100):
            with suppress(TimeoutError):
                while data := deaf.recv(65536):
                    arrived_B += len(data)
            lost_B = sum(record.args[1] for record in caplog.records)
            if arrived_B + lost_B >= sent_B:
                break
    assert lost_B > 0
    assert arrived_B + lost_B == sent_B


def test_the_rack_ends_with_its_host_even_if_it_was_not_closed():
    code = (
        "import sys, os; from workbench.motes.rack import Rack; from tests.motes.test_rack import program\n"
        "running = Rack(1, program()); print(running.urls[0], flush=True); sys.stdin.read(1); os._exit(9)"
    )
    command = [sys.executable, "-c", code]
    host = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
    url = host.stdout.readline().strip()
    with connect_url(url) as line:
        host.communicate("x", timeout=PATIENCE_S)
        assert host.returncode == 9
        assert is_cut(line)
    with pytest.raises(ConnectionRefusedError):
        connect_url(url)


def test_closing_leaves_neither_process_nor_thread():
    threads = set(threading.enumerate())
    running = Rack(1, program())
    assert ask(running, 0, b"hang") == b"hanging."
    running.close()
    running.close()
    assert running._process.returncode == 0
    assert set(threading.enumerate()) <= threads
    with pytest.raises(LinkError, match="is closed"):
        running.restart(0)


def test_a_rack_whose_process_died_raises_an_error():
    with Rack(1, program()) as running:
        running._process.kill()
        with pytest.raises(LinkError, match="the rack of virtual motes has ended"):
            running.memory()


def test_missing_node_js_is_reported_in_one_sentence_with_the_remedy(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LinkError, match=r"need Node\.js 18 or later, but `node` is not on the PATH: apt-get"):
        Rack(1, program())


def test_a_missing_interpreter_is_reported_in_one_sentence_with_the_remedy(monkeypatch, tmp_path):
    monkeypatch.setattr(rack, "FOLDER", tmp_path)
    with pytest.raises(LinkError, match="the npm package @micropython/.*: npm ci --prefix"):
        Rack(1, program())


def test_a_too_old_node_js_is_refused(monkeypatch, tmp_path):
    old = tmp_path / "node"
    old.write_text("""#!/bin/sh\necho '{"node": "16.20.2"}'\nread line\n""")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(LinkError, match=r"need Node\.js 18 or later, and `node` is 16\.20\.2"):
        Rack(1, program())


def test_output_of_node_js_itself_may_look_like_json(monkeypatch, tmp_path):
    loud = tmp_path / "node"
    loud.write_text("""#!/bin/sh\necho 5\necho '["warning"]'\necho '{"node": "16.20.2"}'\nread line\n""")
    loud.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(LinkError, match=r"`node` is 16\.20\.2"):
        Rack(1, program())


@pytest.mark.parametrize(
    ("count", "files", "speed", "sentence"),
    [
        (0, program(), 1, "needs at least one mote"),
        (1, program(), 0, "must be a finite number above 0"),
        (1, program(), float("nan"), "must be a finite number above 0"),
        (1, [("board.py", b"")], 1, "has no main.py"),
    ],
)
def test_impossible_arguments_of_a_rack_are_refused(count, files, speed, sentence):
    with pytest.raises(LinkError, match=sentence):
        Rack(count, files, speed=speed)


def test_an_unknown_mote_is_refused_in_one_sentence(pair):
    with pytest.raises(LinkError, match="`mote` is 2; the virtual motes are numbered from 0 to 1"):
        pair.kill(2)
