"""A mote at the other end of a line, as the host has it: greeted, given commands, listened to.

Theory of operation
    A thread reads the line. What the mote tells goes to ``tell(kind, value)``, in the order in which it came:

    "event"     (time_us, kind, peer, message, origin, sequence, size_B, value, detail): see messages.decode_row
    "send"      (destination or None, frame): its radio is attached to the host
    "lost"      the line is gone; a sentence says how. The thread goes on trying to open it
    "noise"     bytes that were no message came from it; how many frames of them so far
    "ready"     a Greeting: the mote was greeted again after the line was lost, or after it began again by itself

    `command` waits for the mote's answer, `post` does not.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from workbench import draws
from workbench.attributes import Attribute
from workbench.errors import DecodeError, LinkError
from workbench.links import framing, messages
from workbench.links.clock import Clock
from workbench.links.port import Port, open_port

ANSWER_S = 3.0
GREETING_S = 0.5  # between two greetings; a mote that is just starting up misses the first
GOODBYE_S = 1.0
_AGAIN_S = 0.3

Tell = Callable[[str, Any], None]


class Greeting(NamedTuple):
    """What a mote says of itself: how often it began before, whether it has a radio of its own, its board's name."""

    boot: int
    has_radio: bool
    board: str


class Answer(NamedTuple):
    """What came of a command: a number, when the node wants to be woken (µs or None), the mote's clock, a text."""

    number: int
    next_wake: int | None
    time_us: int
    text: str


class Mote:
    """A mote at ``url``. ``now_us`` is the host's clock that the mote's times are mapped to."""

    def __init__(self, url: str, tell: Tell | None = None, now_us: Callable[[], float] | None = None) -> None:
        self.url = url
        self.clock = Clock()
        self.greeting: Greeting | None = None
        self._tell = tell if tell is not None else lambda kind, value: None
        self._now_us = now_us if now_us is not None else lambda: time.perf_counter() * 1e6
        # Another one every time, so that two hosts on one line know which answers are theirs.
        self._session = draws.mix64(time.perf_counter_ns()) & 0x7FFFFFFF | 1
        self._port: Port | None = None
        self._deframer = framing.Deframer()
        self._greetings: SimpleQueue[Greeting | LinkError] = SimpleQueue()
        self._answers: dict[int, Callable[[Answer | LinkError], None]] = {}  # by token
        self._is_lost = False
        self._greeted_s = 0.0
        self._token = 0
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._reader = threading.Thread(target=self._read, name=f"mote {url}", daemon=True)

    # Opening and closing

    def open(self, timeout_s: float = 5.0) -> Greeting:
        """Open the line and greet the mote; LinkError if the line, the version or the mote is not right."""
        self._port = open_port(self.url)
        self._reader.start()
        try:
            self.greeting = self._greet(timeout_s)
        except LinkError:
            self.close()
            raise
        return self.greeting

    def close(self) -> None:
        """Let the mote go; it carries on by itself."""
        if self._closed.is_set():
            return
        if self.greeting is not None and not self._is_lost:
            # Without its answer the goodbye may be lost with the line, and the mote be ours for some seconds more.
            with suppress(LinkError):
                if threading.current_thread() is self._reader:
                    self.post(messages.GOODBYE)
                else:
                    self.command(messages.GOODBYE, timeout_s=GOODBYE_S)
        self._closed.set()
        if self._port is not None:
            self._port.close()
        if self._reader.is_alive() and self._reader is not threading.current_thread():
            self._reader.join(2)

    def __enter__(self) -> Mote:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _greet(self, timeout_s: float) -> Greeting:
        end = time.monotonic() + timeout_s
        while (left := end - time.monotonic()) > 0:
            self._say_hello()
            try:
                answer = self._greetings.get(timeout=min(left, GREETING_S))
            except Empty:
                continue
            if isinstance(answer, LinkError):
                raise answer
            return answer
        raise LinkError(f"{self.url} does not answer; is a mote with the workbench's program at the other end?")

    # Commands

    def command(self, kind: int, *fields: Any, rest: bytes = b"", timeout_s: float = ANSWER_S) -> Answer:
        """Send a command and return the mote's answer; LinkError if it says no, or nothing."""
        inbox: SimpleQueue[Answer | LinkError] = SimpleQueue()
        token = self._next_token()
        self._answers[token] = inbox.put
        try:
            self._write(messages.encode(kind, token, *fields, rest=rest))
            answer = inbox.get(timeout=timeout_s)
        except Empty:
            raise LinkError(f"{self.url} did not answer within {timeout_s:g} s") from None
        finally:
            self._answers.pop(token, None)
        if isinstance(answer, LinkError):
            raise answer
        return answer

    def post(
        self, kind: int, *fields: Any, rest: bytes = b"", then: Callable[[Answer | LinkError], None] | None = None
    ) -> None:
        """Send a command without waiting; ``then`` is called with what came of it, by the reading thread."""
        token = 0
        if then is not None:
            token = self._next_token()
            self._answers[token] = then
        self._write(messages.encode(kind, token, *fields, rest=rest))

    def configure(self, address: int, protocol: dict[str, Any], key: int, **more: Any) -> Answer:
        """Make the mote a node: ``protocol`` as {"protocol": "module:class", "settings": {...}}."""
        return self.command(messages.CONFIGURE, rest=configuration(address, protocol, key, **more))

    def subscribe(
        self, attributes: Iterable[Attribute], expires_s: float | None = None, match_all: bool = False
    ) -> int:
        """Subscribe at the mote's node; returns the subscription's number."""
        seconds = -1.0 if expires_s is None else expires_s
        wanted = messages.encode_attribute_list(tuple(attributes))
        return self.command(messages.SUBSCRIBE, seconds, match_all, rest=wanted).number

    def unsubscribe(self, number: int) -> None:
        """End a subscription by its number."""
        self.command(messages.UNSUBSCRIBE, number)

    def publish(self, attributes: Iterable[Attribute]) -> int:
        """Publish at the mote's node; returns the reading's number."""
        return self.command(messages.PUBLISH, rest=messages.encode_attribute_list(tuple(attributes))).number

    def blacklist(self, neighbor: int, is_listed: bool = True) -> None:
        """Put a neighbor on the node's black list, or take it off, by what the link layer says of the link."""
        ratio = 0.0 if is_listed else 1.0
        self.command(messages.LINK_QUALITY, neighbor, ratio, ratio)

    def set_time(self, time_us: int, held: bool = False) -> None:
        """Set the mote's clock; held, it stands still until it is set again."""
        self.command(messages.SET_TIME, time_us, messages.HELD if held else messages.RUNNING)
        self.clock.forget()

    def reset(self) -> None:
        """Let the mote begin again, as after power-on; it tells when it is ready."""
        self.command(messages.RESET)

    def read_clock(self) -> int:
        """Ask for the mote's clock, for `clock`; returns the bytes that its heap has given out."""
        asked_us = self._now_us()
        answer = self.command(messages.PING)
        self.clock.add(asked_us, self._now_us(), answer.time_us)
        return answer.number

    def ask_clock(self) -> None:
        """As `read_clock`, without waiting for the answer."""
        asked_us = self._now_us()

        def note(answer: Answer | LinkError) -> None:
            if isinstance(answer, Answer):
                self.clock.add(asked_us, self._now_us(), answer.time_us)

        self.post(messages.PING, then=note)

    def _next_token(self) -> int:
        with self._lock:
            self._token = self._token % 0xFFFF + 1
            return self._token

    def _write(self, body: bytes) -> None:
        port = self._port
        if port is None:
            raise LinkError(f"{self.url} is not open")
        port.write(framing.encode(body))

    def _say_hello(self) -> None:
        self._greeted_s = time.monotonic()
        self._write(messages.encode(messages.HELLO, messages.MAGIC, messages.VERSION, self._session))

    # The reading thread

    def _read(self) -> None:
        while not self._closed.is_set():
            port = self._port
            try:
                data = port.read() if port is not None else b""
                if self._is_lost and time.monotonic() - self._greeted_s > GREETING_S:
                    self._say_hello()
            except LinkError as error:
                if self._closed.is_set():
                    return
                self._lose(error)
                self._find_again()
                continue
            if data:
                self._hear(data)

    def _hear(self, data: bytes) -> None:
        spoilt = self._deframer.spoilt
        for body in self._deframer.feed(data):
            try:
                kind, fields, rest = messages.decode(body)
                self._take(kind, fields, rest)
            except DecodeError:
                self._deframer.spoilt += 1
        if self._deframer.spoilt != spoilt:
            self._tell("noise", self._deframer.spoilt)

    def _take(self, kind: int, fields: tuple, rest: bytes) -> None:
        if kind == messages.EVENT:
            self._tell("event", messages.decode_row(fields, rest))
        elif kind == messages.SEND:
            destination = fields[0]
            self._tell("send", (None if destination < 0 else destination, rest))
        elif kind == messages.ANSWER:
            self._answer(fields, rest)
        elif kind == messages.READY:
            self._ready(fields, rest)
        elif kind == messages.REFUSED and fields[2] == self._session:
            self._greetings.put(self._refusal(fields))

    def _answer(self, fields: tuple, rest: bytes) -> None:
        token, is_right, number, next_wake, time_us = fields
        then = self._answers.pop(token, None)
        if then is None:
            return  # It came too late.
        text = rest.decode(errors="replace")
        wake = None if next_wake < 0 else next_wake
        then(Answer(number, wake, time_us, text) if is_right else LinkError(f"{self.url}: {text}"))

    def _ready(self, fields: tuple, rest: bytes) -> None:
        magic, version, session, boot, has_radio = fields
        if magic != messages.MAGIC or version != messages.VERSION:
            self._greetings.put(self._refusal((magic, version, session, messages.OTHER_VERSION)))
        elif session == self._session:
            greeting = Greeting(boot, has_radio == 1, rest.decode(errors="replace"))
            if self.greeting is None:
                self._greetings.put(greeting)
            elif self._is_lost:
                self._begin_again(greeting)
        elif session == 0 and self.greeting is not None and boot != self.greeting.boot:
            # It began again while the line stayed: greet it, and its answer comes here.
            self._lose(LinkError(f"{self.url}: the mote began again"))
            self._say_hello()

    def _refusal(self, fields: tuple) -> LinkError:
        _, version, _, reason = fields
        if reason == messages.BUSY:
            return LinkError(f"{self.url} belongs to another host, which was heard of within the last seconds")
        return LinkError(
            f"{self.url} speaks version {version} of the host link, this workbench {messages.VERSION}; "
            "put the program of the same release on the mote"
        )

    def _begin_again(self, greeting: Greeting) -> None:
        self.greeting = greeting
        self._is_lost = False
        self.clock.forget()
        self._tell("ready", greeting)

    def _lose(self, error: LinkError) -> None:
        for token in list(self._answers):
            then = self._answers.pop(token, None)
            if then is not None:
                then(error)
        if self.greeting is None:
            self._greetings.put(error)
        elif not self._is_lost:
            self._is_lost = True
            self._tell("lost", str(error))

    def _find_again(self) -> None:
        """Open the line again, and greet the mote, as often as it takes."""
        assert self._port is not None
        self._port.close()
        if self.greeting is None:
            self._closed.set()  # It was lost before it was greeted: `open` has said so.
            return
        while not self._closed.wait(_AGAIN_S):
            try:
                self._port = open_port(self.url)
                self._deframer = framing.Deframer()
                self._say_hello()
                return
            except LinkError:
                continue


def configuration(address: int, protocol: dict[str, Any], key: int, **more: Any) -> bytes:
    """What CONFIGURE carries; ``more``: sensor, radio, keys. LinkError if it is too long for a frame."""
    text = json.dumps({"address": address, **protocol, "key": key, **more}, separators=(",", ":")).encode()
    if len(text) > framing.LONGEST_BODY - 3:
        raise LinkError(
            f"node {address}'s configuration takes {len(text)} bytes and the host link carries "
            f"{framing.LONGEST_BODY - 3}; use fewer filters or keys of your own"
        )
    return text
