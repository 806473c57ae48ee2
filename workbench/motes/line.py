"""The host's line to a mote: a thread opens it, greets the mote, reads messages, and reconnects after a loss.

Theory of operation
    A thread reads the line. It reports the mote's messages by ``report(kind, value)``, in the order of arrival:

    "event"     (time_us, kind, peer, message, origin, sequence, size_B, value, detail): see events.decode_row
    "send"      (destination or None, frame): its radio is attached to the host
    "lost"      the mote is unreachable; a sentence with the reason. The thread continues to try
    "noise"     bytes that were not a message; the number of such frames so far
    "ready"     a Greeting: the mote was greeted again after it was lost
    "refused"   a sentence: the mote is lost and refuses to be greeted again

    A mote is lost if its line breaks, a write fails, it restarts, another host greets it, or the processing of its
    messages raises. It is also lost if no message arrives for SILENT_S although SILENT_PINGS commands were sent. A
    lost mote is greeted every GREETING_S; a silent line is reopened every REOPEN_S. The driver must send a command
    from time to time, or silence is never noticed.

    Messages from before the mote has greeted this host on a line, or after it has greeted another host, belong to
    another session and are ignored.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from workbench.errors import DecodeError, LinkError
from workbench.motes import framing, messages
from workbench.motes.events import decode_row
from workbench.motes.port import Port, open_port
from workbench.motes.second_host import LINE_IN_USE

GREETING_S = 0.5  # between two greetings; a mote that is starting up misses the first
SILENT_S = 5.0  # as long as a mote waits for its host before it accepts another
SILENT_PINGS = 3
REOPEN_S = 15.0  # opening a serial port resets some boards, so they need time to start
_AGAIN_S = 0.3

Report = Callable[[str, Any], None]


class Greeting(NamedTuple):
    """A mote's description of itself: number of earlier starts, whether it has a radio of its own, its board's name."""

    boot: int
    has_radio: bool
    board: str


class Answer(NamedTuple):
    """The answer to a command: a number, the node's next wake-up (µs or None), the mote's clock, a text."""

    number: int
    next_wake: int | None
    time_us: int
    text: str


Then = Callable[[Answer | LinkError], None]


class MoteLine:
    """The line at ``url``, and the host's session with the mote at its other end."""

    def __init__(self, url: str, report: Report | None = None) -> None:
        self.url = url
        self.greeting: Greeting | None = None
        self._report = report if report is not None else lambda kind, value: None
        # Random, so that of two hosts on one line each recognizes its own answers. Answers carry no session, so tokens
        # begin at random numbers, too.
        self._session = secrets.randbits(31) | 1
        self._token = secrets.randbits(16)
        self._secret = secrets.token_bytes(messages.SECRET_B)
        self._is_ours = False
        self._port: Port | None = None
        self._deframer = framing.Deframer()
        self._greetings: SimpleQueue[Greeting | LinkError] = SimpleQueue()
        self._answers: dict[int, Then] = {}  # by token
        self._loss: LinkError | None = None  # the reason, while the mote is lost
        self._is_refused = False
        self._greeted_s = self._heard_s = self._opened_s = 0.0
        self._pings = 0  # since the last message
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._reader = threading.Thread(target=self._read, name=f"mote {url}", daemon=True)

    @property
    def is_lost(self) -> bool:
        """Whether the mote was greeted and is unreachable now."""
        return self._loss is not None

    def open(self, timeout_s: float = 5.0) -> Greeting:
        """Open the line and greet the mote. Raises LinkError if the line, the version or the mote is wrong."""
        self._open_port()
        self._reader.start()
        try:
            self.greeting = self._greet(timeout_s)
        except BaseException:
            self._hang_up()
            raise
        return self.greeting

    def _hang_up(self) -> None:
        with self._lock:
            self._closed.set()
            port = self._port
        if port is not None:
            port.close()
        if self._reader.is_alive() and self._reader is not threading.current_thread():
            self._reader.join(2)  # If it is opening the line at this moment, it closes it again.

    def _open_port(self) -> None:
        port = open_port(self.url)
        with self._lock:
            self._port = port
            is_late = self._closed.is_set()
        if is_late:
            port.close()
            raise LinkError(f"{self.url} is closed")
        self._deframer = framing.Deframer()
        self._is_ours = False
        self._opened_s = time.monotonic()

    def _greet(self, timeout_s: float) -> Greeting:
        end = time.monotonic() + timeout_s
        while (left := end - time.monotonic()) > 0:
            self._greet_once()
            try:
                answer = self._greetings.get(timeout=min(left, GREETING_S))
            except Empty:
                continue
            if isinstance(answer, LinkError):
                raise answer
            return answer
        raise LinkError(
            f"{self.url} does not answer; check that a mote with the workbench's program is at the other end, and that "
            "no other host uses it"
        )

    # Writing

    def post(self, kind: int, *fields: Any, rest: bytes = b"", then: Then | None = None) -> int:
        """Send a command without waiting; the reading thread calls ``then`` with the answer or the error.

        Returns the command's token, 0 without ``then``. Raises LinkError if the mote is lost, EncodeError for a command
        that does not fit in a frame; ``then`` is not called after these errors.
        """
        token = 0
        if then is not None:
            token = self._next_token()
            self._answers[token] = then
        try:
            if (loss := self._loss) is not None:
                raise LinkError(str(loss))
            self._write(messages.encode(kind, self._secret, token, *fields, rest=rest))
        except BaseException:
            self._answers.pop(token, None)
            raise
        self._pings += kind == messages.PING
        return token

    def _next_token(self) -> int:
        with self._lock:
            self._token = self._token % 0xFFFF + 1
            return self._token

    def _write(self, body: bytes) -> None:
        port = self._port
        if port is None:
            raise LinkError(f"{self.url} is not open")
        port.write(framing.encode(body))

    def _greet_once(self) -> None:
        self._greeted_s = time.monotonic()
        hello = messages.MAGIC, messages.VERSION, self._session
        self._write(messages.encode(messages.HELLO, *hello, rest=self._secret))

    # The reading thread

    def _read(self) -> None:
        while not self._closed.is_set():
            try:
                self._listen()
            except LinkError as error:
                if not self._closed.is_set():
                    self._lose(error)
                    self._find_again()
            except Exception as error:  # raised by the receiver of a report or an answer; it must not pass silently
                self._lose(LinkError(f"{self.url}: a message of the mote could not be processed: {error!r}"))
                self._closed.wait(_AGAIN_S)
        if self._port is not None:
            self._port.close()

    def _listen(self) -> None:
        """Read for a moment; detect silence, and greet a lost mote."""
        assert self._port is not None
        data = self._port.read()
        if data:
            self._process(data)
        now_s = time.monotonic()
        if self._loss is None:
            if self._pings >= SILENT_PINGS and now_s - self._heard_s > SILENT_S:
                self._lose(LinkError(f"{self.url} is silent: {self._pings} commands were not answered"))
        elif now_s - max(self._heard_s, self._opened_s) > REOPEN_S:
            raise LinkError(f"{self.url} is silent")
        elif now_s - self._greeted_s > (SILENT_S if self._is_refused else GREETING_S):
            self._greet_once()

    def _process(self, data: bytes) -> None:
        damaged = self._deframer.spoilt
        for body in self._deframer.feed(data):
            try:
                kind, fields, rest = messages.decode(body)
                self._heard_s, self._pings = time.monotonic(), 0
                self._take(kind, fields, rest)
            except DecodeError:
                self._deframer.spoilt += 1
        if self._deframer.spoilt != damaged:
            self._report("noise", self._deframer.spoilt)

    def _take(self, kind: int, fields: tuple[Any, ...], rest: bytes) -> None:
        if kind == messages.READY:
            self._ready(fields, rest)
        elif kind == messages.REFUSED and fields[2] == self._session:
            self._refuse(self._refusal(fields))
        elif not self._is_ours:
            return
        elif kind == messages.EVENT:
            self._report("event", decode_row(fields, rest))
        elif kind == messages.SEND:
            destination = fields[0]
            self._report("send", (None if destination < 0 else destination, rest))
        elif kind == messages.ANSWER:
            self._answer(fields, rest)

    def _answer(self, fields: tuple[Any, ...], rest: bytes) -> None:
        token, is_right, number, next_wake, time_us = fields
        then = self._answers.pop(token, None)
        if then is None:
            return  # The answer came too late.
        text = rest.decode(errors="replace")
        wake = None if next_wake < 0 else next_wake
        if is_right:
            then(Answer(number, wake, time_us, text))
        else:
            remedy = f"={number}; use that value, or compile the program with yours" if number > 0 else ""
            then(LinkError(f"{self.url}: {text}{remedy}"))

    def _ready(self, fields: tuple[Any, ...], rest: bytes) -> None:
        magic, version, session, boot, has_radio = fields
        self._is_ours = session == self._session
        if magic != messages.MAGIC or version != messages.VERSION:
            self._refuse(self._refusal((magic, version, session, messages.OTHER_VERSION)))
        elif session == self._session:
            greeting = Greeting(boot, has_radio == 1, rest.decode(errors="replace"))
            if self.greeting is None:
                self._greetings.put(greeting)
            elif self._loss is not None:
                self._begin_again(greeting)
        elif self.greeting is not None and session:
            self._lose(LinkError(f"{self.url} belongs to another host, which has greeted the mote"))
        elif self.greeting is not None:
            # The mote restarted while the line stayed: greet it, and its answer arrives here.
            self._lose(LinkError(f"{self.url}: the mote restarted"))
            self._greet_once()

    def _refusal(self, fields: tuple[Any, ...]) -> LinkError:
        _, version, _, reason = fields
        if reason == messages.BUSY:
            return LinkError(f"{self.url} belongs to another host, which was active within the last seconds")
        if reason == LINE_IN_USE:
            return LinkError(
                f"{self.url} has another host, and this mote's line serves only one; end that connection first"
            )
        return LinkError(
            f"{self.url} uses version {version} of the host link, this workbench {messages.VERSION}; "
            "install the program of the same release on the mote"
        )

    def _refuse(self, error: LinkError) -> None:
        if self.greeting is None:
            self._greetings.put(error)
        elif self._loss is not None and not self._is_refused:
            self._is_refused = True  # The mote is greeted further, and would report each refusal.
            self._report("refused", str(error))

    def _begin_again(self, greeting: Greeting) -> None:
        self.greeting = greeting
        self._loss, self._is_refused = None, False
        self._report("ready", greeting)

    def _lose(self, error: LinkError) -> None:
        is_new = self._loss is None and self.greeting is not None
        if is_new:
            self._loss = error
        for token in list(self._answers):
            then = self._answers.pop(token, None)
            if then is not None:
                with suppress(Exception):  # The mote is lost already, and further errors are of no use.
                    then(error)
        if self.greeting is None:
            self._greetings.put(error)
        elif is_new:
            with suppress(Exception):
                self._report("lost", str(error))

    def _find_again(self) -> None:
        """Reopen the line and greet the mote until it succeeds."""
        assert self._port is not None
        self._port.close()
        if self.greeting is None:
            self._closed.set()  # The mote was lost before it was greeted; `open` has raised the error.
            return
        while not self._closed.wait(_AGAIN_S):
            try:
                self._open_port()
                self._greet_once()
                return
            except LinkError:
                self._port.close()
