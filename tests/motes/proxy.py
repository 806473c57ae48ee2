"""A line with faults, for tests: a TCP connection between a host and a mote that can be cut and disturbed."""

import socket
import threading
from contextlib import suppress

from tests.until import PATIENCE_S


class Proxy:
    """A server at ``url`` that connects each host to the mote at ``target``.

    cut(towards)            break the line in the middle of the next frame towards the "host" or the "mote"
    disturb(host, mote)     send noise to host and mote, between the bytes that they exchange
    """

    def __init__(self, target):
        host, port = target.removeprefix("socket://").split(":")
        self._target = host, int(port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"socket://127.0.0.1:{self._listener.getsockname()[1]}"
        self.cuts = 0
        self._cut = None
        self._ends = {}
        self._locks = {"host": threading.Lock(), "mote": threading.Lock()}
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._hang_up()
        for thread in self._threads:
            thread.join(PATIENCE_S)

    def cut(self, towards):
        self._cut = towards

    def disturb(self, host=b"", mote=b""):
        for towards, noise in (("host", host), ("mote", mote)):
            for start in range(0, len(noise), 4096):
                self._send(towards, noise[start : start + 4096])

    def _accept(self):
        while True:
            try:
                host = self._listener.accept()[0]
            except OSError:
                return  # The listener is closed.
            self._hang_up()
            try:
                mote = socket.create_connection(self._target, timeout=PATIENCE_S)
            except OSError:
                host.close()
                continue
            mote.settimeout(None)
            for end in (host, mote):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._ends = {"host": host, "mote": mote}
            for source, towards in ((host, "mote"), (mote, "host")):
                thread = threading.Thread(target=self._pump, args=(source, towards), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _pump(self, source, towards):
        with suppress(OSError):
            while data := source.recv(65536):
                if self._cut == towards:
                    self._cut = None
                    # A frame is longer than two bytes and ends in a zero; this part of it does not.
                    self._send(towards, data[: max(1, len(data) - 3)])
                    self.cuts += 1
                    break
                self._send(towards, data)
        if source in self._ends.values():
            self._hang_up()

    def _send(self, towards, data):
        with suppress(OSError, KeyError), self._locks[towards]:
            self._ends[towards].sendall(data)

    def _hang_up(self):
        ends, self._ends = self._ends, {}
        for end in ends.values():
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
