"""The host's line to a mote: a thread opens it, greets the mote, reads messages, and reconnects after a loss.

Theory of operation
    A thread reads the line. It reports the mote's messages by ``report(kind, value)``, in the order of arrival:

    kind        value
    "event"     (time_us, kind, peer, message, origin, sequence, size_B, value, detail): see events.decode_row
    "send"      (destination, frame): a frame that the host must transmit; destination None: a broadcast
    "lost"      a sentence with the reason why the mote is unreachable. The thread tries to reconnect
    "noise"     number of damaged or invalid frames since the line was opened
    "ready"     a Greeting: the mote was lost and has answered a new greeting
    "refused"   a sentence with the reason why a lost mote refuses a new greeting

    A mote is lost if its line breaks, a write fails, the mote restarts, another host greets it, or processing one of
    its messages raises an error. It is also lost if no message arrives for SILENT_S and at least SILENT_PINGS pings
    were sent. A lost mote is greeted every GREETING_S. A silent line is reopened every REOPEN_S. The user of the line
    must send pings regularly; otherwise silence is not detected.

    Messages are ignored if they arrive before the mote has answered this host's greeting, or after it has answered
    another host's: they belong to another session.
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
SILENT_S = 5.0  # a mote waits as long for its host before it accepts another one
SILENT_PINGS = 3
REOPEN_S = 15.0  # opening a serial port resets some boards, so they need time to start
_RETRY_S = 0.3

Report = Callable[[str, Any], None]


class Greeting(NamedTuple):
    """A mote's answer to the greeting with which a host begins a session.

    ``boot`` is the number of its earlier starts. ``has_radio`` is whether the mote has a radio of its own. ``board`` is
    the name of its board.
    """

    boot: int
    has_radio: bool
    board: str


class Answer(NamedTuple):
    """A mote's answer to a command that succeeded.

    number       the result of the command; `workbench.motes.messages` defines it for each command, under ANSWER
    next_wake    time of the node's next timer in µs, or None if no timer is set
    time_us      the time of the mote's clock in µs
    text         always "": only the answer to a command that failed has a text
    """

    number: int
    next_wake: int | None
    time_us: int
    text: str


Then = Callable[[Answer | LinkError], None]


class MoteLine:
    """The line (serial port or socket) at ``url``, and the host's session with the mote at its far end."""

    def __init__(self, url: str, report: Report | None = None) -> None:
        self.url = url
        self.greeting: Greeting | None = None
        self._report = report if report is not None else lambda kind, value: None
        # Random, so that of two hosts on one line each recognizes its own answers. Answers carry no session, so tokens
        # begin at random numbers, too.
        self._session = secrets.randbits(31) | 1
        self._token = secrets.randbits(16)
        self._secret = secrets.token_bytes(messages.SECRET_B)
        self._is_in_session = False
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
        self._reader = threading.Thread(target=self._read_until_closed, name=f"mote {url}", daemon=True)

    @property
    def is_lost(self) -> bool:
        """True if the session with the mote was once established but the mote is unreachable now."""
        return self._loss is not None

    def open(self, timeout_s: float = 5.0) -> Greeting:
        """Open the line and greet the mote; return its answer.

        Raises LinkError if the line cannot be opened, or if the mote does not answer, refuses the greeting, or has
        another version of the host link.
        """
        self._open_port()
        self._reader.start()
        try:
            self.greeting = self._await_greeting(timeout_s)
        except BaseException:
            self._close_line()
            raise
        return self.greeting

    def _close_line(self) -> None:
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
            is_closed = self._closed.is_set()
        if is_closed:
            port.close()
            raise LinkError(f"{self.url} was closed while it was being opened")
        self._deframer = framing.Deframer()
        self._is_in_session = False
        self._opened_s = time.monotonic()

    def _await_greeting(self, timeout_s: float) -> Greeting:
        end_s = time.monotonic() + timeout_s
        while (remaining_s := end_s - time.monotonic()) > 0:
            self._send_greeting()
            try:
                greeting_answer = self._greetings.get(timeout=min(remaining_s, GREETING_S))
            except Empty:
                continue
            if isinstance(greeting_answer, LinkError):
                raise greeting_answer
            return greeting_answer
        raise LinkError(
            f"{self.url} does not answer; check that a mote with the workbench's program is at the other end, and that "
            "no other host uses it"
        )

    # Writing

    def post(self, kind: int, *fields: Any, rest: bytes = b"", then: Then | None = None) -> int:
        """Send a command of type ``kind`` without waiting.

        ``fields`` are the command's fields after the token, ``rest`` the bytes after them, as in `messages`. The
        reading thread calls ``then`` with the answer or the error.

        Returns the command's token, or 0 without ``then``. Raises LinkError if the mote is lost, EncodeError if the
        command does not fit in a frame. After such an error ``then`` is not called.
        """
        token = 0
        if then is not None:
            token = self._make_token()
            self._answers[token] = then
        try:
            if (loss := self._loss) is not None:
                raise LinkError(str(loss))
            self._write_message(messages.encode(kind, self._secret, token, *fields, rest=rest))
        except BaseException:
            self._answers.pop(token, None)
            raise
        self._pings += kind == messages.PING
        return token

    def _make_token(self) -> int:
        with self._lock:
            self._token = self._token % 0xFFFF + 1
            return self._token

    def _write_message(self, body: bytes) -> None:
        port = self._port
        if port is None:
            raise LinkError(f"{self.url} is not open; call open() first")
        port.write(framing.encode(body))

    def _send_greeting(self) -> None:
        self._greeted_s = time.monotonic()
        hello = messages.MAGIC, messages.VERSION, self._session
        self._write_message(messages.encode(messages.HELLO, *hello, rest=self._secret))

    # The reading thread

    def _read_until_closed(self) -> None:
        while not self._closed.is_set():
            try:
                self._read_once()
            except LinkError as error:
                if not self._closed.is_set():
                    self._report_loss(error)
                    self._reopen()
            except Exception as error:  # raised by the receiver of a report or an answer; it must not pass silently
                self._report_loss(LinkError(f"{self.url}: a message of the mote could not be processed: {error!r}"))
                self._closed.wait(_RETRY_S)
        if self._port is not None:
            self._port.close()

    def _read_once(self) -> None:
        """Read the line once and process the bytes. Detect a silent mote, and greet a lost mote.

        Raises LinkError if the line of a lost mote is silent for so long that it must be reopened.
        """
        assert self._port is not None
        data = self._port.read()
        if data:
            self._process_data(data)
        now_s = time.monotonic()
        if self._loss is None:
            if self._pings >= SILENT_PINGS and now_s - self._heard_s > SILENT_S:
                self._report_loss(LinkError(f"{self.url} is silent: {self._pings} commands were not answered"))
        elif now_s - max(self._heard_s, self._opened_s) > REOPEN_S:
            raise LinkError(f"{self.url} is silent; the line is being reopened")
        elif now_s - self._greeted_s > (SILENT_S if self._is_refused else GREETING_S):
            self._send_greeting()

    def _process_data(self, data: bytes) -> None:
        previous_damaged_count = self._deframer.spoilt
        for body in self._deframer.feed(data):
            try:
                kind, fields, trailing_bytes = messages.decode(body)
                self._heard_s, self._pings = time.monotonic(), 0
                self._dispatch(kind, fields, trailing_bytes)
            except DecodeError:
                self._deframer.spoilt += 1
        if self._deframer.spoilt != previous_damaged_count:
            self._report("noise", self._deframer.spoilt)

    def _dispatch(self, kind: int, fields: tuple[Any, ...], rest: bytes) -> None:
        if kind == messages.READY:
            self._process_ready(fields, rest)
        elif kind == messages.REFUSED and fields[2] == self._session:
            self._process_refusal(self._refusal_error(fields))
        elif not self._is_in_session:
            return
        elif kind == messages.EVENT:
            self._report("event", decode_row(fields, rest))
        elif kind == messages.SEND:
            destination = fields[0]
            self._report("send", (None if destination < 0 else destination, rest))
        elif kind == messages.ANSWER:
            self._process_answer(fields, rest)

    def _process_answer(self, fields: tuple[Any, ...], rest: bytes) -> None:
        token, is_success, result_number, next_wake, time_us = fields
        callback = self._answers.pop(token, None)
        if callback is None:
            return  # The answer came too late.
        text = rest.decode(errors="replace")
        wake = None if next_wake < 0 else next_wake
        if is_success:
            callback(Answer(result_number, wake, time_us, text))
        else:
            remedy = f"={result_number}; use that value, or compile the program with yours" if result_number > 0 else ""
            callback(LinkError(f"{self.url}: {text}{remedy}"))

    def _process_ready(self, fields: tuple[Any, ...], rest: bytes) -> None:
        magic, version, session, boot, has_radio = fields
        self._is_in_session = session == self._session
        if magic != messages.MAGIC or version != messages.VERSION:
            self._process_refusal(self._refusal_error((magic, version, session, messages.OTHER_VERSION)))
        elif session == self._session:
            greeting = Greeting(boot, has_radio == 1, rest.decode(errors="replace"))
            if self.greeting is None:
                self._greetings.put(greeting)
            elif self._loss is not None:
                self._accept_greeting(greeting)
        elif self.greeting is not None and session:
            self._report_loss(LinkError(f"another host has connected to the mote at {self.url}"))
        elif self.greeting is not None:
            # The mote restarted while the line stayed: greet it, and its answer arrives here.
            self._report_loss(LinkError(f"{self.url}: the mote restarted"))
            self._send_greeting()

    def _refusal_error(self, fields: tuple[Any, ...]) -> LinkError:
        _, version, _, reason = fields
        if reason == messages.BUSY:
            return LinkError(
                f"{self.url} is in use by another host, which was active within the last seconds; end its connection "
                "first"
            )
        if reason == LINE_IN_USE:
            return LinkError(
                f"{self.url} is in use by another host, and this mote's line serves only one; end that connection first"
            )
        return LinkError(
            f"{self.url} uses version {version} of the host link, this workbench {messages.VERSION}; "
            "install the program of the same release on the mote"
        )

    def _process_refusal(self, error: LinkError) -> None:
        if self.greeting is None:
            self._greetings.put(error)
        elif self._loss is not None and not self._is_refused:
            self._is_refused = True  # The mote is greeted further, and would report each refusal.
            self._report("refused", str(error))

    def _accept_greeting(self, greeting: Greeting) -> None:
        self.greeting = greeting
        self._loss, self._is_refused = None, False
        self._report("ready", greeting)

    def _report_loss(self, error: LinkError) -> None:
        is_new = self._loss is None and self.greeting is not None
        if is_new:
            self._loss = error
        for token in list(self._answers):
            callback = self._answers.pop(token, None)
            if callback is not None:
                with suppress(Exception):  # The mote is lost already, and further errors are of no use.
                    callback(error)
        if self.greeting is None:
            self._greetings.put(error)
        elif is_new:
            with suppress(Exception):
                self._report("lost", str(error))

    def _reopen(self) -> None:
        """Reopen the line and send a greeting; retry until both succeed or the line is closed.

        If the mote has never answered a greeting, give up at once.
        """
        assert self._port is not None
        self._port.close()
        if self.greeting is None:
            self._closed.set()  # The mote was lost before it was greeted; `open` has raised the error.
            return
        while not self._closed.wait(_RETRY_S):
            try:
                self._open_port()
                self._send_greeting()
                return
            except LinkError:
                self._port.close()
