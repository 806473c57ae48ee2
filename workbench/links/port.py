"""A line to a mote as bytes: anything pyserial has a URL for.

    /dev/ttyUSB0, COM3      a serial port, or a pty; nobody else may open it meanwhile
    socket://host:port      a TCP connection
    rfc2217://host:port     a serial port of another machine, with its settings

Sockets are read here and not through pyserial, which hands them out byte by byte.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from workbench.errors import LinkError

BAUD = 115200
_WAIT_S = 0.2
_CHUNK = 65536


class Port:
    """An open line. `read` returns b"" when nothing came within a moment; any failure is a LinkError."""

    def __init__(self, url: str) -> None:
        self.url = url

    def read(self) -> bytes:
        """Bytes that have come, or b"" after a moment without."""
        raise NotImplementedError

    def write(self, data: bytes) -> None:
        """Send all of these bytes."""
        raise NotImplementedError

    def close(self) -> None:
        """Give the line back; a second time does nothing."""
        raise NotImplementedError


class _SocketPort(Port):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        parts = urlsplit(url)
        try:
            if not parts.hostname or not parts.port:
                raise ValueError("write socket://host:port")
            self._socket = socket.create_connection((parts.hostname, parts.port), timeout=3)
        except (OSError, ValueError) as error:
            raise LinkError(f"{url} cannot be opened: {error}") from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.settimeout(_WAIT_S)
        self._lock = threading.Lock()

    def read(self) -> bytes:
        try:
            data = self._socket.recv(_CHUNK)
        except TimeoutError:
            return b""
        except OSError as error:
            raise LinkError(f"{self.url} is lost: {error}") from None
        if not data:
            raise LinkError(f"{self.url} is lost: the other end closed it")
        return data

    def write(self, data: bytes) -> None:
        try:
            with self._lock:
                self._socket.sendall(data)
        except OSError as error:
            raise LinkError(f"{self.url} is lost: {error}") from None

    def close(self) -> None:
        self._socket.close()


class _SerialPort(Port):
    def __init__(self, url: str, serial: Any) -> None:
        super().__init__(url)
        # pyserial knows these for ports of this machine alone, and refuses or ignores them elsewhere.
        local = {"exclusive": True, "write_timeout": 3} if "://" not in url else {}
        self._failures = (
            serial.SerialException,
            OSError,
            TypeError,
        )  # TypeError: pyserial's, for a port closed while read
        try:
            self._serial = serial.serial_for_url(url, baudrate=BAUD, timeout=_WAIT_S, **local)
        except (*self._failures, ValueError, NotImplementedError) as error:
            raise LinkError(f"{url} cannot be opened: {error}") from None
        self._lock = threading.Lock()

    def read(self) -> bytes:
        try:
            data = self._serial.read(1)
            waiting = self._serial.in_waiting if data else 0
            return data + self._serial.read(waiting) if waiting else data
        except self._failures as error:
            raise LinkError(f"{self.url} is lost: {error}") from None

    def write(self, data: bytes) -> None:
        try:
            with self._lock:
                self._serial.write(data)
        except self._failures as error:
            raise LinkError(f"{self.url} is lost: {error}") from None

    def close(self) -> None:
        with suppress(*self._failures):  # It may be unplugged: then there is nothing left to give back.
            self._serial.close()


def open_port(url: str) -> Port:
    """Open a line by its URL; LinkError, in a sentence, if that fails."""
    if url.startswith("socket://"):
        return _SocketPort(url)
    try:
        import serial
    except ImportError:
        raise LinkError(f"{url} needs pyserial, which is missing: pip install pyserial") from None
    return _SerialPort(url, serial)


def serial_ports() -> list[tuple[str, str]]:
    """(URL, what it is) of the serial ports of this machine; none if pyserial is missing."""
    try:
        from serial.tools.list_ports import comports
    except ImportError:
        return []
    return [(port.device, port.description) for port in sorted(comports())]
