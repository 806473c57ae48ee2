"""Kinds of lines to a mote: sockets, a pty, and a serial port of another machine (RFC 2217)."""

import contextlib
import os
import select
import socket
import threading

import pytest

import workbench as wb
from tests.until import PATIENCE_S
from workbench.errors import LinkError
from workbench.motes import framing, messages, port, rack
from workbench.motes.mote import Mote
from workbench.motes.program import program_files
from workbench.motes.rack import Rack
from workbench.motes.session import protocol_on_a_mote
from workbench.protocols.contract import Delivered

needs_node = pytest.mark.skipif(rack.missing() is not None, reason=str(rack.missing()))

FLOODING = protocol_on_a_mote(wb.Flooding())


@pytest.fixture(scope="module")
def socket_url():
    """Yield the URL of a virtual mote."""
    with Rack(1, program_files("virtual")) as running:
        yield running.urls[0]


def connect(url):
    host, number = url.removeprefix("socket://").split(":")
    line = socket.create_connection((host, int(number)), timeout=PATIENCE_S)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return line


@contextlib.contextmanager
def bridged(read, write, line):
    """Forward bytes between file descriptors and a socket until the end of the ``with`` statement."""
    ends, stop = os.pipe()

    def carry():
        while True:
            readable = select.select([read, line, ends], [], [])[0]
            if ends in readable and read not in readable:
                return
            if read in readable:
                line.sendall(os.read(read, 4096))
            if line in readable:
                os.write(write, line.recv(4096))

    thread = threading.Thread(target=carry, daemon=True)
    thread.start()
    try:
        yield
    finally:
        os.write(stop, b"x")
        thread.join(PATIENCE_S)
        os.close(ends)
        os.close(stop)
        line.close()


@pytest.fixture
def pty_url(socket_url):
    tty = pytest.importorskip("tty", reason="this system has no ptys")
    pytest.importorskip("serial")
    master, slave = os.openpty()
    tty.setraw(master)
    with bridged(master, master, connect(socket_url)):
        yield os.ttyname(slave)
    os.close(master)
    os.close(slave)


@pytest.fixture
def rfc2217_url(socket_url):
    """Yield the URL of pyserial's port server, which forwards one connection to the mote's line."""
    serial = pytest.importorskip("serial")
    rfc2217 = pytest.importorskip("serial.rfc2217")
    device = serial.serial_for_url(socket_url, timeout=0.02)
    listener = socket.create_server(("127.0.0.1", 0))
    is_over = threading.Event()
    server = threading.Thread(target=serve, args=(rfc2217, device, listener, is_over), daemon=True)
    server.start()
    yield f"rfc2217://127.0.0.1:{listener.getsockname()[1]}"
    is_over.set()
    listener.close()
    server.join(PATIENCE_S)
    device.close()


def serve(rfc2217, device, listener, is_over):
    connection = listener.accept()[0]
    lock = threading.Lock()

    class Connection:
        def write(self, data):
            with lock, contextlib.suppress(OSError):
                connection.sendall(data)

    manager = rfc2217.PortManager(device, Connection())

    def to_host():
        while not is_over.is_set():
            if data := device.read(1):
                Connection().write(b"".join(manager.escape(data)))

    reader = threading.Thread(target=to_host, daemon=True)
    reader.start()
    with contextlib.suppress(OSError):
        while data := connection.recv(1024):
            device.write(b"".join(manager.filter(data)))
    is_over.set()
    reader.join(PATIENCE_S)
    connection.close()


@needs_node
@pytest.mark.filterwarnings("ignore:set(Daemon|Name):DeprecationWarning")  # pyserial's own
@pytest.mark.parametrize("kind", ["socket_url", "pty_url", "rfc2217_url"])
def test_a_mote_is_reached_over_any_line(kind, request):
    reports = []
    with Mote(request.getfixturevalue(kind), lambda report, value: reports.append((report, value))) as mote:
        assert mote.greeting.board == "virtual"
        mote.set_time(0)
        mote.configure(3, FLOODING, 1)
        assert mote.subscribe(wb.parse("TEMP GE 25")) == 0
        payload = bytes(range(256))[:250]  # every byte that a line could mistake for a command to itself
        reading = wb.parse("TEMP IS 26.5") + (wb.Attribute(69, 1, payload),)
        for number in range(3):
            assert mote.publish(reading) == number
        kind = messages.EVENTS.index(Delivered)
        delivered = [value[8] for report, value in reports if report == "event" and value[1] == kind]
        assert delivered == [reading] * 3
        assert mote.allocated_B() > 0


@needs_node
def test_a_mote_that_is_released_greets_the_next_host_at_once(socket_url):
    for _ in range(3):
        with Mote(socket_url) as mote:
            assert mote.command(messages.PING).number > 0


@needs_node
def test_a_line_may_be_closed_twice(socket_url):
    line = port.open_port(socket_url)
    line.close()
    line.close()
    with pytest.raises(LinkError, match="is lost: "):
        line.write(b"x")


def test_a_pty_without_a_mote_is_lost_when_its_other_end_is_closed():
    tty = pytest.importorskip("tty", reason="this system has no ptys")
    pytest.importorskip("serial")
    master, slave = os.openpty()
    tty.setraw(master)
    line = port.open_port(os.ttyname(slave))
    os.close(slave)
    os.write(master, b"hi")
    assert line.read() + line.read() == b"hi"
    assert line.read() == b""
    os.close(master)
    with pytest.raises(LinkError, match="is lost: "):
        line.read()
    line.close()


def test_radio_on_its_own_line_gets_its_messages_and_is_read_with_the_host_link():
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        numbers = [listener.getsockname()[1] for listener in listeners]
        line = port.open_port(f"socket://127.0.0.1:{numbers[0]}?radio={numbers[1]}")
        host, radio = (stack.enter_context(listener.accept()[0]) for listener in listeners)
        ping, heard, outcome = (framing.encode(messages.encode(kind, bytes(8), 0, *fields)) for kind, *fields in SENT)
        for frame in (heard, ping, outcome):
            line.write(frame)
        assert host.recv(100) == ping and read_exactly(radio, len(heard + outcome)) == heard + outcome
        # Half a frame of one line is never put into a frame of the other.
        host.sendall(ping[:-3])
        assert line.read() == b"\0"
        radio.sendall(heard)
        assert line.read() == heard
        host.sendall(ping[-3:])
        assert line.read() == ping[1:]
        radio.close()
        with pytest.raises(LinkError, match=f"{numbers[1]} is lost"):
            line.read()
        line.close()
        with pytest.raises(LinkError):
            line.read()


SENT = ((messages.PING,), (messages.HEARD, 3, 1), (messages.OUTCOME, 3, 1))


def read_exactly(connection, size):
    data = b""
    while len(data) < size:
        data += connection.recv(size - len(data))
    return data


def test_missing_radio_is_reported():
    with socket.create_server(("127.0.0.1", 0)) as host, pytest.raises(LinkError, match=":9 cannot be opened"):
        port.open_port(f"socket://127.0.0.1:{host.getsockname()[1]}?radio=9")
