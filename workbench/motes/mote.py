"""`Mote`, the host's object for a mote at the other end of a line: it sends commands and reads the mote's clock.

Theory of operation
    `line.MoteLine` greets the mote, reads its messages and reconnects after a loss. `command` waits for the answer,
    `post` does not. The fastest answers give the best readings of the mote's clock (`clock.Clock`).
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from workbench.attributes.model import Attribute
from workbench.errors import LinkError
from workbench.motes import framing, messages
from workbench.motes.clock import Clock
from workbench.motes.line import Answer, Greeting, MoteLine, Report

ANSWER_S = 3.0
CONFIGURED_S = 10.0  # a mote loads its protocol meanwhile
GOODBYE_S = 1.0
_MOST_B = framing.LONGEST_BODY - len(messages.encode(messages.CONFIGURE, bytes(messages.SECRET_B), 0))


class Mote(MoteLine):
    """A mote at the other end of a line, a serial port or socket whose URL is ``url``.

    ``now_us`` is a function that returns the host's time in µs; None stands for `time.perf_counter`. ``report(kind,
    value)`` is called for each message of the mote and each loss of the line; `workbench.motes.line` lists the kinds.
    The attribute ``clock`` converts times of the mote's clock to the host's time.
    """

    def __init__(self, url: str, report: Report | None = None, now_us: Callable[[], float] | None = None) -> None:
        super().__init__(url, report)
        self.clock = Clock()
        self._now_us = now_us if now_us is not None else lambda: time.perf_counter() * 1e6

    def close(self) -> None:
        """End the session and close the line.

        The mote's node keeps running. After a run the mote's clock is stopped, so the node sends nothing.
        """
        if self._closed.is_set():
            return
        if self.greeting is not None and not self.is_lost:
            # Without its answer the goodbye may be lost with the line, and the mote be ours for some seconds more.
            with suppress(LinkError):
                if threading.current_thread() is self._reader:
                    self.post(messages.GOODBYE)
                else:
                    self.command(messages.GOODBYE, timeout_s=GOODBYE_S)
        self._close_line()

    def __enter__(self) -> Mote:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def command(self, kind: int, *fields: Any, rest: bytes = b"", timeout_s: float = ANSWER_S) -> Answer:
        """Send a command and return the mote's answer.

        ``kind`` is a message type of `workbench.motes.messages`, ``fields`` are the message's fields, and ``rest`` is
        the bytes after them. Raises LinkError if the mote refuses, or does not answer within ``timeout_s``.
        """
        inbox: SimpleQueue[Answer | LinkError] = SimpleQueue()
        token = self.post(kind, *fields, rest=rest, then=inbox.put)
        try:
            answer = inbox.get(timeout=timeout_s)
        except Empty:
            raise LinkError(f"{self.url} did not answer within {timeout_s:g} s") from None
        finally:
            self._answers.pop(token, None)
        if isinstance(answer, LinkError):
            raise answer
        return answer

    def configure(self, address: int, protocol: dict[str, Any], key: int, **more: Any) -> Answer:
        """Configure the mote to run a node; return the mote's answer.

        ``address`` is the node's address, ``protocol`` names its class and settings, and ``key`` is the key of its
        random draws. ``more`` has the optional fields boot, keys, sensor and radio, as for `configuration`.
        """
        configuration_json = configuration(address, protocol, key, **more)
        return self.command(messages.CONFIGURE, rest=configuration_json, timeout_s=CONFIGURED_S)

    def subscribe(
        self, attributes: Iterable[Attribute], expires_s: float | None = None, match_all: bool = False
    ) -> int:
        """Subscribe to ``attributes`` at the mote's node; return the subscription's number, for `unsubscribe`.

        ``expires_s`` is the duration of the subscription; None: until `unsubscribe`. ``match_all`` permits a
        subscription that matches every publication.
        """
        duration_s = -1.0 if expires_s is None else expires_s
        attribute_list = messages.encode_attribute_list(tuple(attributes))
        return self.command(messages.SUBSCRIBE, duration_s, match_all, rest=attribute_list).number

    def unsubscribe(self, number: int) -> None:
        """End the subscription for which `subscribe` returned ``number``."""
        self.command(messages.UNSUBSCRIBE, number)

    def publish(self, attributes: Iterable[Attribute]) -> int:
        """Let the mote's node publish a reading with these attributes; return the reading's sequence number."""
        return self.command(messages.PUBLISH, rest=messages.encode_attribute_list(tuple(attributes))).number

    def blacklist(self, neighbor: int, is_listed: bool = True) -> None:
        """Put a neighbor on the node's black list by reporting a link quality of 0, or remove it by reporting 1."""
        ratio = 0.0 if is_listed else 1.0
        self.command(messages.LINK_QUALITY, neighbor, ratio, ratio)

    def set_time(self, time_us: int, held: bool = False) -> None:
        """Set the mote's clock to ``time_us``. With ``held`` the clock stands still until it is set again."""
        self.command(messages.SET_TIME, time_us, messages.HELD if held else messages.RUNNING)
        self.clock.forget()

    def reset(self) -> None:
        """Restart the mote, as switching it off and on does.

        The thread that reads the line (line.py) then reports that the mote is "lost", and later that it is "ready".
        """
        self.command(messages.RESET)

    def read_clock(self) -> None:
        """Read the mote's clock and add the reading to `clock`. Waits for the answer."""
        asked_us = self._now_us()
        answer = self.command(messages.PING)
        self.clock.add(asked_us, self._now_us(), answer.time_us)

    def allocated_B(self) -> int:
        """Return the number of bytes of memory that the mote has allocated."""
        return self.command(messages.PING).number

    def request_clock(self) -> None:
        """Request the time of the mote's clock without waiting. When the answer arrives, it is added to `clock`.

        Raises LinkError if the mote is lost.
        """
        asked_us = self._now_us()

        def add_reading(answer: Answer | LinkError) -> None:
            if isinstance(answer, Answer):
                self.clock.add(asked_us, self._now_us(), answer.time_us)

        self.post(messages.PING, then=add_reading)

    def ping(self) -> None:
        """Send a ping and ignore the answer. Regular pings reveal that a mote with a stopped clock is lost."""
        self.post(messages.PING, then=lambda answer: None)

    def _accept_greeting(self, greeting: Greeting) -> None:
        self.clock.forget()
        super()._accept_greeting(greeting)


def configuration(address: int, protocol: dict[str, Any], key: int, **more: Any) -> bytes:
    """Return the JSON of a CONFIGURE message.

    ``address`` is the node's address, ``protocol`` is {"node": "module:class", "settings": {...}}, and ``key`` is the
    key of the node's random draws. ``more`` has the optional fields boot, keys, sensor and radio, as in `messages`.
    Raises LinkError if the JSON is too long for a frame.
    """
    text = json.dumps({"address": address, **protocol, "key": key, **more}, separators=(",", ":")).encode()
    if len(text) > _MOST_B:
        raise LinkError(
            f"the configuration of node {address} has {len(text)} bytes; the host link carries at most {_MOST_B}, so "
            "use fewer filters or attribute keys of your own"
        )
    return text
