"""A mote that is a process of this machine: Python, or MicroPython where it has sockets. For trying out, and for tests.

Its line is a TCP port on loopback (host link as everywhere), which hosts share as they would share a wire: the mote
hears each of them, and they all hear the mote. Its radio is UDP broadcasts on loopback. Its arguments are the port of
the line (0: any; it prints which) and how often it began before.
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


def boots():
    """How often it began before."""
    return int(sys.argv[2]) if len(sys.argv) > 2 else 0


def now_us():
    """A clock that never goes back."""
    return time.monotonic_ns() // 1000 if hasattr(time, "monotonic_ns") else time.ticks_us()


def memory():
    """(bytes allocated, bytes free) of the heap; 0 where nobody knows."""
    if hasattr(gc, "mem_alloc"):
        return gc.mem_alloc(), gc.mem_free()
    return 0, 0


def write(data):
    """Bytes to the host; gone if nobody listens, as on any line."""
    for connection in list(_line):
        try:
            connection.sendall(data)
        except OSError:  # It is gone, or does not read, which must not hold up the mote.
            _hang_up(connection)


def make_radio(mote, address, settings):
    """The UDP radio."""
    from radio_udp import UdpRadio

    return UdpRadio(address, settings, mote.random)


def reset():
    """A process that is reset ends; whoever started it starts it again."""
    sys.exit(0)


def run(mote):
    """Serve the line and the radio for ever."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    listener.bind(socket.getaddrinfo("127.0.0.1", port)[0][-1])
    listener.listen(1)
    if hasattr(listener, "getsockname"):
        print(listener.getsockname()[1])
        sys.stdout.flush()
    while True:
        wait_us = mote.step()
        sockets = [listener] + _line + ([mote.radio.fileno()] if mote.radio is not None else [])
        readable = select.select(sockets, [], [], 1.0 if wait_us is None else min(1.0, wait_us / 1e6))[0]
        if listener in readable:
            connection = listener.accept()[0]
            if len(_line) == _MOST_HOSTS:
                _hang_up(_line[-1])
            # Messages are small and wanted at once: Nagle's algorithm would hold them back for 40 ms.
            connection.setsockopt(6, 1, 1)  # IPPROTO_TCP, TCP_NODELAY
            connection.setblocking(False)
            _line.append(connection)
        for connection in [one for one in _line if one in readable]:
            _read(mote, connection)


def _read(mote, connection):
    try:
        data = connection.recv(4096)
    except OSError:
        data = b""
    if data:
        mote.feed(data)
    else:
        _hang_up(connection)


def _hang_up(connection):
    if connection in _line:
        _line.remove(connection)
    connection.close()
