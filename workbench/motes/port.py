"""Lines to motes as streams of bytes, opened by a URL.

    /dev/ttyUSB0, COM3      a serial port or a pty, opened exclusively
    socket://host:port      a TCP connection
    socket://host:port?radio=port    two TCP connections: the host link, and the radio of an emulated mote
    rfc2217://host:port     a serial port of another machine, with its settings

Other URLs are opened by pyserial if it supports them.

A write that fails may have left half a frame on the line. All later reads then fail, so that the reading thread closes
the line and opens it again.

Sockets are read directly and not through pyserial, which returns their data byte by byte.
"""

from __future__ import annotations

import selectors
import socket
import threading
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

from workbench.errors import LinkError
from workbench.motes import messages

BAUD = 115200
_WAIT_S = 0.2
WRITE_S = 1.0  # longest time that a write may block; at BAUD it suffices for five of the longest frames
_CHUNK = 65536
_RADIO_KINDS = (bytes((messages.HEARD,)), bytes((messages.OUTCOME,)))


class Port:
    """An open line to a mote. Its methods raise LinkError if the line fails."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._write_lock = threading.Lock()
        self._failure: LinkError | None = None  # the error of the last failed write

    def read(self) -> bytes:
        """Wait for bytes and return them, or b"" if none arrive within 0.2 s."""
        if self._failure is not None:
            raise LinkError(str(self._failure))
        return self._read()

    def write(self, data: bytes) -> None:
        """Write all of these bytes to the line."""
        with self._write_lock:
            try:
                self._write(data)
            except LinkError as error:
                self._failure = error
                raise

    def close(self) -> None:
        """Close the line; repeated calls have no effect."""
        raise NotImplementedError

    def _read(self) -> bytes:
        raise NotImplementedError

    def _write(self, data: bytes) -> None:
        raise NotImplementedError


class _SocketPort(Port):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        url_parts = urlsplit(url)
        try:
            if not url_parts.hostname or not url_parts.port:
                raise ValueError("the URL must have the form socket://host:port")
            self._socket = socket.create_connection((url_parts.hostname, url_parts.port), timeout=3)
        except (OSError, ValueError) as error:
            raise LinkError(f"{url} cannot be opened: {error}") from None
        try:
            # If no server listens on a port of the range for clients, the system may connect this socket to itself.
            if self._socket.getsockname() == self._socket.getpeername():
                raise OSError("no program listens on this port")
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.settimeout(_WAIT_S)
            # A second handle, because a socket has only one timeout for reading and writing.
            self._write_socket = self._socket.dup()
            self._write_socket.settimeout(WRITE_S)
        except OSError as error:
            self._socket.close()
            raise LinkError(f"{url} cannot be opened: {error}") from None

    def _read(self) -> bytes:
        try:
            data = self._socket.recv(_CHUNK)
        except TimeoutError:
            return b""
        except OSError as error:
            raise LinkError(f"the connection to {self.url} is lost: {error}") from None
        if not data:
            raise LinkError(f"the connection to {self.url} is lost: the other end closed it")
        return data

    def _write(self, data: bytes) -> None:
        try:
            self._write_socket.sendall(data)
        except OSError as error:
            raise LinkError(f"the connection to {self.url} is lost: {error}") from None

    def close(self) -> None:
        with suppress(OSError):  # A thread that is reading then returns at once.
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._write_socket.close()

    @property
    def descriptor(self) -> int:
        """The connection's file descriptor."""
        return self._socket.fileno()


class _RadioPort(Port):
    """A port to an emulated mote, which has two connections: one for the host link and one for the radio.

    Frames read from both are merged. Frames to write are sent to the radio or to the host link, by their message type.
    """

    def __init__(self, url: str, radio_port: str) -> None:
        super().__init__(url)
        url_parts = urlsplit(url)
        self._host_link = _SocketPort(f"socket://{url_parts.netloc}")
        try:
            self._radio = _SocketPort(f"socket://{url_parts.hostname}:{radio_port}")
        except LinkError:
            self._host_link.close()
            raise
        self._selector = selectors.DefaultSelector()
        self._incomplete_frames: dict[_SocketPort, bytes] = {self._host_link: b"", self._radio: b""}
        for line in self._incomplete_frames:
            self._selector.register(line.descriptor, selectors.EVENT_READ, line)

    def _read(self) -> bytes:
        whole_frames = b""
        try:
            ready = self._selector.select(_WAIT_S)
        except (OSError, ValueError, KeyError, RuntimeError) as error:  # Another thread closed it.
            raise LinkError(f"the connection to {self.url} is lost: {error}") from None
        for selector_key, _ in ready:
            received_bytes = self._incomplete_frames[selector_key.data] + selector_key.data.read()
            # A zero ends a frame. Bytes after the last zero wait for the rest of their frame.
            whole_B = received_bytes.rfind(b"\0") + 1
            whole_frames += received_bytes[:whole_B]
            self._incomplete_frames[selector_key.data] = received_bytes[whole_B:]
        return whole_frames

    def _write(self, data: bytes) -> None:
        # A frame begins with a zero and the length of a block; the next byte is the message type.
        line = self._radio if data[2:3] in _RADIO_KINDS else self._host_link
        line.write(data)

    def close(self) -> None:
        for line in self._incomplete_frames:
            line.close()
        self._selector.close()


class _SerialPort(Port):
    def __init__(self, url: str, serial: Any) -> None:
        super().__init__(url)
        # pyserial supports these options only for ports of this machine.
        options = {"exclusive": True, "write_timeout": WRITE_S} if "://" not in url else {}
        self._failures = (
            serial.SerialException,
            OSError,
            TypeError,
        )  # TypeError: pyserial raises it if a port is closed while read
        try:
            self._serial = serial.serial_for_url(url, baudrate=BAUD, timeout=_WAIT_S, **options)
        except (*self._failures, ValueError, NotImplementedError) as error:
            raise LinkError(f"{url} cannot be opened: {error}") from None

    def _read(self) -> bytes:
        try:
            data = self._serial.read(1)
            available_B = self._serial.in_waiting if data else 0
            return data + self._serial.read(available_B) if available_B else data
        except self._failures as error:
            raise LinkError(f"the connection to {self.url} is lost: {error}") from None

    def _write(self, data: bytes) -> None:
        try:
            self._serial.write(data)
        except self._failures as error:
            raise LinkError(f"the connection to {self.url} is lost: {error}") from None

    def close(self) -> None:
        with suppress(*self._failures):  # It may be unplugged.
            self._serial.close()


def open_port(url: str) -> Port:
    """Open the line at ``url`` and return its port. Raises LinkError if the line cannot be opened."""
    if url.startswith("socket://"):
        radio = parse_qs(urlsplit(url).query).get("radio")
        return _RadioPort(url, radio[0]) if radio else _SocketPort(url)
    try:
        import serial
    except ImportError:
        raise LinkError(f"{url} needs pyserial, which is missing: pip install pyserial") from None
    return _SerialPort(url, serial)


def serial_ports() -> list[tuple[str, str]]:
    """Return (URL, description) of each serial port of this machine; an empty list if pyserial is not installed."""
    try:
        from serial.tools.list_ports import comports
    except ImportError:
        return []
    return [(port.device, port.description) for port in sorted(comports())]
