"""A fake mote for tests: it acknowledges commands, and a test can let it restart or fall silent."""

import contextlib
import socket
import threading

from tests.until import PATIENCE_S
from workbench.motes import framing, messages


class FakeMote:
    """A server at ``url`` that answers as a mote does.

    If ``is_silent`` is set, it reads commands without an answer. Its greeting reports ``boot`` earlier starts.
    """

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"socket://127.0.0.1:{self._listener.getsockname()[1]}"
        self.is_silent = False
        self.boot = 0
        self.session = 0
        self.commands = []  # (type, fields) of each command that it has acknowledged
        self.is_reading = threading.Event()
        self.is_reading.set()
        self._line = None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for connection in (self._listener, self._line):
            with contextlib.suppress(OSError, AttributeError):
                connection.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.is_reading.set()
        self._thread.join(PATIENCE_S)

    def restart_silently(self):
        """Restart without a message to the host."""
        self.boot += 1
        self.session = 0

    def send(self, kind, *fields, rest=b""):
        self._line.sendall(framing.encode(messages.encode(kind, *fields, rest=rest)))

    def ready(self, session):
        self.send(messages.READY, messages.MAGIC, messages.VERSION, session, self.boot, 0, rest=b"fake")

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                self._line = self._listener.accept()[0]
                with self._line, contextlib.suppress(OSError):
                    self._answer()

    def _answer(self):
        deframer = framing.Deframer()
        while data := self._line.recv(65536):
            for body in deframer.feed(data):
                kind, fields, _ = messages.decode(body)
                if self.is_silent:
                    continue
                if kind == messages.HELLO:
                    self.session = fields[2]
                    self.ready(self.session)
                elif self.session:
                    self.commands.append((kind, fields))
                    self.send(messages.ANSWER, fields[1], 1, 0, -1, 0)
            self.is_reading.wait()
