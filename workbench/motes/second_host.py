"""Refusal of a second host at the line of an emulated mote.

Theory of operation
    QEMU serves one connection to a UART at a time. A further one is accepted by the system and waits, unanswered, in
    the queue of the listening socket until the first one ends. A thread here watches that queue. While QEMU reports
    that the UART has a host, a connection in the queue is taken out, its greeting is answered with REFUSED, and it is
    closed. The mote does not notice.

    QEMU reports over a control socket (its machine protocol, QMP). Its main loop handles a disconnection before it
    answers the second of two queries, so a host that reconnects at once is not refused.
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

LINE_IN_USE = 4  # a reason of REFUSED that no mote gives
_LOOK_AGAIN_S = 0.05  # while QEMU has not yet accepted its first host
_REFUSING_S = 2.0  # for a host to greet and to hang up


def refuse_second_hosts(listener: socket.socket, control: socket.socket, chardev: str) -> None:
    """Watch the listening socket that QEMU has for a character device, in a thread, until QEMU ends.

    ``control``: the other end of QEMU's control socket. The thread closes both.
    """
    arguments = (listener, control, chardev)
    threading.Thread(target=_watch, args=arguments, name=f"second hosts of {chardev}", daemon=True).start()


class _Control:
    """QEMU's control socket."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._begun = b""

    def read(self) -> list[dict[str, Any]]:
        """Wait for messages and return them; EOFError when QEMU has ended."""
        data = self.connection.recv(1 << 16)
        if not data:
            raise EOFError
        *lines, self._begun = (self._begun + data).split(b"\n")
        return [json.loads(line) for line in lines if line.strip()]

    def ask(self, command: str) -> Any:
        """Send a command and return its result."""
        self.connection.sendall(json.dumps({"execute": command}).encode())
        while True:
            for message in self.read():
                if "return" in message:
                    return message["return"]

    def has_host(self, chardev: str) -> bool:
        """Return whether a host is connected to a character device."""
        [where] = [one["filename"] for one in self.ask("query-chardev") if one["label"] == chardev]
        return not where.startswith("disconnected:")


def _watch(listener: socket.socket, connection: socket.socket, chardev: str) -> None:
    with listener, connection, suppress(OSError, EOFError):
        listener.setblocking(False)
        control = _Control(connection)
        control.ask("qmp_capabilities")
        while True:
            ready = select.select([listener, connection], [], [])[0]
            if connection in ready:
                control.read()  # An event, or the end of QEMU.
            elif control.has_host(chardev) and control.has_host(chardev):
                _refuse(listener)
            else:
                time.sleep(_LOOK_AGAIN_S)


def _refuse(listener: socket.socket) -> None:
    try:
        host = listener.accept()[0]
    except BlockingIOError:  # QEMU was faster.
        return
    deframer, end_s = framing.Deframer(), time.monotonic() + _REFUSING_S
    with host, suppress(OSError):
        host.settimeout(_REFUSING_S / 2)
        while time.monotonic() < end_s and (data := host.recv(4096)):
            for session in _sessions(deframer.feed(data)):
                refusal = messages.MAGIC, messages.VERSION, session, LINE_IN_USE
                host.sendall(framing.encode(messages.encode(messages.REFUSED, *refusal)))


def _sessions(bodies: list[bytes]) -> list[int]:
    """Return the sessions of the greetings among these messages."""
    sessions = []
    for body in bodies:
        with suppress(DecodeError):
            kind, fields, _ = messages.decode(body)
            if kind == messages.HELLO:
                sessions.append(fields[2])
    return sessions
