"""A mote that is a process of this machine: Python, or MicroPython's port for Unix. For trials and tests.

Its line is a TCP port on loopback, which carries the host link. Hosts share the port as they would share a wire: the
mote receives the messages of every host, and every host receives the mote's. Its radio sends UDP broadcasts on
loopback. Arguments of the program: the port of the line, and the number of earlier starts. With port 0 the program
chooses a port and prints its number. MicroPython cannot report the number, so there the port must be given.
"""

import gc
import select
import socket
import sys
import time

NAME = "process"
HAS_RADIO = True

_line = []  # the connections of hosts
_MOST_HOSTS = 8
_clock = [0, 0]  # of MicroPython: µs so far, and the last reading of its counter


def boots():
    """Return the number of earlier starts of the mote."""
    return int(sys.argv[2]) if len(sys.argv) > 2 else 0


def now_us():
    """Return the time of a monotonic clock in µs."""
    if hasattr(time, "monotonic_ns"):
        return time.monotonic_ns() // 1000
    ticks = time.ticks_us()  # It wraps, on 32 bits after some minutes. `run` reads it every second.
    _clock[0] += time.ticks_diff(ticks, _clock[1]) if _clock[0] else 1
    _clock[1] = ticks
    return _clock[0]


def memory():
    """Return (bytes allocated, bytes free) of the heap; (0, 0) under CPython."""
    if hasattr(gc, "mem_alloc"):
        return gc.mem_alloc(), gc.mem_free()
    return 0, 0


def write(data):
    """Send bytes to all connected hosts; they are lost if no host is connected, as on a serial line."""
    for connection in list(_line):
        rest = data
        try:
            while rest:  # MicroPython's sendall gives up without an error.
                rest = rest[connection.send(rest) :]
        except OSError:  # The host is gone, or does not read, which must not block the mote.
            _close_connection(connection)


def make_radio(mote, address, settings):
    """Return the UDP radio of a node with this address; ``settings`` are the radio's settings of the run.

    If ``link_quality`` in the settings is "learned", the radio also sends beacons.
    """
    from radio_udp import UdpRadio

    radio = UdpRadio(address, settings, mote.random)
    if settings.get("link_quality") != "learned":
        return radio
    from radio_learning import LearningRadio

    return LearningRadio(mote, radio, address)


def reset():
    """End the process; the program that started it may start it again."""
    sys.exit(0)


def run(mote):
    """Serve the line and the radio for ever."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if not port and not hasattr(listener, "getsockname"):
        sys.exit("port is 0; MicroPython cannot report the port that it gets, so give one: micropython main.py 40001")
    listener.bind(socket.getaddrinfo("127.0.0.1", port)[0][-1])
    listener.listen(1)
    if hasattr(listener, "getsockname"):
        print(listener.getsockname()[1])
        sys.stdout.flush()
    while True:
        wait_us = mote.step()
        sockets = [listener] + _line + ([mote.radio.fileno()] if mote.radio is not None else [])
        readable = _wait_readable(sockets, 1000000 if wait_us is None else min(1000000, wait_us))
        if listener in readable:
            connection = listener.accept()[0]
            if len(_line) == _MOST_HOSTS:
                _close_connection(_line[-1])
            # Messages are small and urgent: Nagle's algorithm would hold them back for 40 ms.
            connection.setsockopt(6, 1, 1)  # IPPROTO_TCP, TCP_NODELAY
            connection.setblocking(False)
            _line.append(connection)
        for connection in [host for host in _line if host in readable]:
            _read_connection(mote, connection)


def _wait_readable(sockets, wait_us):
    """Wait at most ``wait_us`` until a socket has data; return the sockets that have data."""
    if hasattr(select, "select"):
        return select.select(sockets, [], [], wait_us / 1e6)[0]
    poller = select.poll()  # MicroPython has no select, and Python on Windows no poll.
    for end in sockets:
        poller.register(end, select.POLLIN)
    return [ready[0] for ready in poller.poll((wait_us + 999) // 1000)]


def _read_connection(mote, connection):
    try:
        data = connection.recv(4096)
    except OSError:
        data = b""
    if data:
        mote.feed(data)
    else:
        _close_connection(connection)


def _close_connection(connection):
    if connection in _line:
        _line.remove(connection)
    connection.close()
