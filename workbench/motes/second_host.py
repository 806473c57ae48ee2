"""Refusal of a second host on the line of an emulated mote.

Theory of operation
    QEMU serves one connection to a UART at a time. A second connection would wait, unanswered, in the queue of the
    listening socket until the first one ends. A thread watches that queue. While QEMU reports that the UART has a host,
    the thread accepts a waiting connection, answers its greeting with REFUSED, and closes it. The mote is not involved.

    QEMU reports over a control socket (its machine protocol, QMP). If the host has just disconnected, the first report
    may still name it, but QEMU handles the disconnection before it sends a second report. So the thread refuses a
    connection only if two reports name a host. Thus a host that disconnects and reconnects at once is not refused.
"""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from contextlib import suppress
from typing import Any

from workbench.errors import DecodeError
from workbench.motes import framing, messages

LINE_IN_USE = 4  # a reason of REFUSED that only this module sends
_POLL_S = 0.05  # interval of queries while QEMU has not yet accepted the first host
_REFUSING_S = 2.0  # timeout for a host to greet and to close the connection


def refuse_second_hosts(listener: socket.socket, control: socket.socket, chardev: str) -> None:
    """Start a thread that refuses a second host of an emulated UART until QEMU ends.

    ``listener`` is the listening socket of the UART, ``chardev`` the UART's character device in QEMU, and ``control``
    this process's end of QEMU's control socket. The thread closes both sockets.
    """
    arguments = (listener, control, chardev)
    threading.Thread(
        target=_refuse_second_hosts, args=arguments, name=f"second hosts of {chardev}", daemon=True
    ).start()


class _Control:
    """A connection to QEMU's control socket."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._incomplete_line = b""

    def read(self) -> list[dict[str, Any]]:
        """Wait for messages of QEMU and return them. Raises EOFError if QEMU has ended."""
        data = self.connection.recv(1 << 16)
        if not data:
            raise EOFError
        *lines, self._incomplete_line = (self._incomplete_line + data).split(b"\n")
        return [json.loads(line) for line in lines if line.strip()]

    def query(self, command: str) -> Any:
        """Send a command to QEMU and return its result."""
        self.connection.sendall(json.dumps({"execute": command}).encode())
        while True:
            for message in self.read():
                if "return" in message:
                    return message["return"]

    def has_host(self, chardev: str) -> bool:
        """Return whether a host is connected to the character device ``chardev`` (a UART)."""
        [address] = [device["filename"] for device in self.query("query-chardev") if device["label"] == chardev]
        return not address.startswith("disconnected:")


def _refuse_second_hosts(listener: socket.socket, connection: socket.socket, chardev: str) -> None:
    with listener, connection, suppress(OSError, EOFError):
        listener.setblocking(False)
        control = _Control(connection)
        control.query("qmp_capabilities")
        while True:
            ready = select.select([listener, connection], [], [])[0]
            if connection in ready:
                control.read()  # An event, or the end of QEMU.
            elif control.has_host(chardev) and control.has_host(chardev):
                _refuse_host(listener)
            else:
                time.sleep(_POLL_S)


def _refuse_host(listener: socket.socket) -> None:
    try:
        host = listener.accept()[0]
    except BlockingIOError:  # QEMU accepted it first.
        return
    deframer, end_s = framing.Deframer(), time.monotonic() + _REFUSING_S
    with host, suppress(OSError):
        host.settimeout(_REFUSING_S / 2)
        while time.monotonic() < end_s and (data := host.recv(4096)):
            for session in _greeted_sessions(deframer.feed(data)):
                refusal = messages.MAGIC, messages.VERSION, session, LINE_IN_USE
                host.sendall(framing.encode(messages.encode(messages.REFUSED, *refusal)))


def _greeted_sessions(bodies: list[bytes]) -> list[int]:
    """Return the session numbers of the HELLO messages among these message bodies; skip invalid bodies."""
    sessions = []
    for body in bodies:
        with suppress(DecodeError):
            kind, fields, _ = messages.decode(body)
            if kind == messages.HELLO:
                sessions.append(fields[2])
    return sessions
