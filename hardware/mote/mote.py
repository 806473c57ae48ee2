"""The program of a mote: one protocol node, driven by a clock, a radio, a sensor and the host link.

Theory of operation
    The node is the same file as in the simulator (workbench/protocols), and like it this program never waits: the board
    hands it what came over the host link (`feed`), steps it when time has passed (`step`), and is told when to step it
    next. After whatever happened, the node's events go to the host and its frames to the radio.

    The mote belongs to the host that greeted it last, as long as that one is heard of at least every BUSY_US: it does
    what comes with the secret of that host's greeting. Any other command is refused, and its host hears of it. A mote
    without a host goes on with what it was doing; one whose clock is held, as it is after a run, stays silent.

    What no frame of the host link can carry, be it an event or a frame, is told as a complaint; the rest of what
    the node did goes on.

Clock
    ``now()`` is the board's clock plus an offset, both in µs; the host sets it to the time of its run. A host may also
    hold it: then time stands still until it is set again, and timers go off when the host says so, which is how a
    simulator drives motes in its own time. What a radio of the mote's own hears meanwhile is thrown away.

This file runs under MicroPython.
"""

import json

from radio_serial import SerialRadio

from workbench import draws
from workbench.errors import DecodeError, WorkbenchError
from workbench.motes import framing
from workbench.motes import messages as link
from workbench.protocols.contract import NOBODY, Settings

BUSY_US = 5000000
# A node that fails when it is stepped would fail again at once.
FAILED_US = 1000000
LONGEST_TEXT = 240  # characters, which may take four bytes each


class Mote:
    """A mote on a board (see boards/ for what a board has)."""

    def __init__(self, board):
        self.board = board
        self.boot = board.boots()
        self.node = None
        self.radio = None
        self.sensor = None
        self.random = None
        self._deframer = framing.Deframer()
        self._spoilt = 0
        self._secret = None  # of the host that it belongs to
        self._contested = 0  # greetings and commands of others so far
        self._foreign = 0  # what the radio has counted, as far as it was told
        self._greeted_us = 0
        self._offset_us = 0
        self._held_us = None
        self._greet(0)

    def now(self):
        """The time in µs, as the host set it."""
        return self.board.now_us() + self._offset_us if self._held_us is None else self._held_us

    # What the board calls

    def feed(self, data):
        """Take bytes that came over the host link."""
        contested = self._contested
        for body in self._deframer.feed(data):
            try:
                kind, fields, rest = link.decode(body)
                self._take(kind, fields, rest)
            except DecodeError:
                self._deframer.spoilt += 1
        if self._deframer.spoilt != self._spoilt:
            self._spoilt = self._deframer.spoilt
            self.tell("noise", 0, self._spoilt, "")
        if self._contested != contested:
            self.tell("contested", 0, self._contested, "another host greeted or commanded this mote, and was refused")

    def step(self):
        """Do what is due; returns in how many µs to be stepped again, None if nothing is planned."""
        if self.node is None:
            return None
        try:
            if self._held_us is not None:
                self.radio.poll(self._held_us)  # Heard too late, or by a node that is off: it would be old news.
                if hasattr(self.radio, "outcomes"):
                    self.radio.outcomes()
                return None
            return self._step(self.now())
        except Exception as error:  # Whatever it is, the host hears of it and the mote goes on.
            self._complain("the mote failed: %r" % error)
            return FAILED_US

    def _step(self, now):
        for frame, previous_hop, broadcast in self.radio.poll(now):
            self._tell_frame("received", previous_hop, frame, broadcast)
            self.node.receive(frame, previous_hop, now, broadcast)
            self._pass_on()
        if hasattr(self.radio, "outcomes"):
            for destination, frame, ok in self.radio.outcomes():
                self.node.sent(destination, frame, ok, now)
                self._pass_on()
        foreign = getattr(self.radio, "foreign", 0)
        if foreign != self._foreign:
            self._foreign = foreign
            self.tell("foreign", 0, foreign, "frames of another run, which this one does not take")
        if self.node.next_wake is not None and self.node.next_wake <= now:
            self.node.wake(now)
            self._pass_on()
        if self.sensor is not None and self.sensor.next_us <= now:
            self._publish(self.sensor.read(now), now)
        times = [self.node.next_wake, self.radio.next_us, self.sensor and self.sensor.next_us]
        times = [time for time in times if time is not None]
        return max(0, min(times) - self.now()) if times else None

    # What it tells

    def write(self, body):
        """Send a message to the host; one that no frame can carry is told as a complaint."""
        try:
            self.board.write(framing.encode(body))
        except WorkbenchError as error:
            self._complain(str(error))

    def tell(self, name, sequence, value, detail):
        """Tell the host of an event of the mote's own."""
        address = NOBODY if self.node is None else self.node.address
        self.write(link.encode_own_event(self.now(), name, NOBODY, "", address, sequence, 0, value, detail))

    def _complain(self, detail):
        self.tell("told", 0, 0, detail[:LONGEST_TEXT])

    def _tell_frame(self, name, peer, frame, broadcast):
        try:
            message, origin, sequence = self.node.describe(frame, broadcast)
        except Exception:  # Whatever a stranger's bytes make of it.
            message, origin, sequence = "", NOBODY, 0
        self.write(link.encode_own_event(self.now(), name, peer, message, origin, sequence, len(frame), 0, ""))

    def _pass_on(self):
        """The node's events go to the host, its frames to the radio."""
        now = self.now()
        for event in self.node.take_events():
            self.write(link.encode_event(now, event, self.node.EVENTS))
        for subscription in self.subscriptions.values():
            subscription.take()  # The host has heard of them as events; here they would fill the memory.
        for destination, frame in self.node.take_frames():
            if not self.radio.is_serial:
                peer = NOBODY if destination is None else destination
                self._tell_frame("sent", peer, frame, destination is None)
            self.radio.send(destination, frame, now)

    def _greet(self, number):
        """Answer the greeting with this session number, or (0) announce that the mote begins."""
        has_radio = getattr(self.board, "HAS_RADIO", False)
        name = self.board.NAME.encode()
        self.write(link.encode(link.READY, link.MAGIC, link.VERSION, number, self.boot, has_radio, rest=name))

    def _refuse(self, number, reason):
        self.write(link.encode(link.REFUSED, link.MAGIC, link.VERSION, number, reason))

    # What the host asks for

    def _take(self, kind, fields, rest):
        if kind == link.HELLO:
            magic, version, session = fields
            if magic != link.MAGIC or version != link.VERSION:
                self._refuse(session, link.OTHER_VERSION)
                return
            if len(rest) != link.SECRET_B:
                raise DecodeError("a greeting has a secret of %d bytes; it needs %d" % (len(rest), link.SECRET_B))
            now = self.board.now_us()
            if self._secret not in (None, rest) and now - self._greeted_us < BUSY_US:
                self._contested += 1
                self._refuse(session, link.BUSY)
                return
            self._secret = rest
            self._greeted_us = now
            self._greet(session)
            return
        if kind >= link.READY or self._secret is None:
            return
        if fields[0] != self._secret:
            self._contested += 1
            self._refuse(0, link.NO_SECRET)
            return
        self._greeted_us = self.board.now_us()
        token, fields = fields[1], fields[2:]
        number = 0
        is_right = 1
        text = ""
        try:
            number = self._act(kind, fields, rest) or 0
        except WorkbenchError as error:
            is_right, text = 0, str(error)
        except Exception as error:  # A mote that is asked for what it cannot do says so, and goes on.
            is_right, text = 0, "the mote failed: %r" % error
        if not token and not is_right:
            self._complain(text)  # Nobody waits for an answer that could say so.
        if token:
            wake = NOBODY if self.node is None or self.node.next_wake is None else self.node.next_wake
            answer = token, is_right, number, wake, self.now()
            self.write(link.encode(link.ANSWER, *answer, rest=text[:LONGEST_TEXT].encode()))
        if kind == link.RESET:
            self.board.reset()

    def _act(self, kind, fields, rest):
        """Do what a command asks; returns the number to answer with."""
        if kind == link.PING:
            return self.board.memory()[0]
        if kind == link.CONFIGURE:
            return self._configure(rest)
        if kind == link.SET_TIME:
            time_us, clock = fields
            self._held_us = time_us if clock == link.HELD else None
            self._offset_us = time_us - self.board.now_us()
            return 0
        if kind == link.GOODBYE:
            self._secret = None
            return 0
        if kind == link.RESET:
            return 0
        if self.node is None:
            raise WorkbenchError("the mote is not configured; it needs a protocol and an address first")
        now = self.now()
        number = 0
        if kind == link.HEARD:
            previous_hop, broadcast = fields
            self.node.receive(rest, previous_hop, now, broadcast == 1)
        elif kind == link.WAKE:
            self.node.wake(now)
        elif kind == link.PUBLISH:
            return self._publish(link.decode_attribute_list(rest), now)
        elif kind == link.SUBSCRIBE:
            number = self._subscribe(fields[0], fields[1] == 1, link.decode_attribute_list(rest), now)
        elif kind == link.UNSUBSCRIBE:
            self._unsubscribe(fields[0], now)
        elif kind == link.LINK_QUALITY:
            self.node.link_quality(fields[0], fields[1], fields[2], now)
        elif kind == link.OUTCOME:
            self.node.sent(fields[0], rest, fields[1] == 1, now)
        self._pass_on()
        return number

    def _configure(self, rest):
        wanted = json.loads(rest)
        for number, name, kind, unit, steps, minimum, maximum in wanted.get("keys", ()):
            from workbench.attributes.keys import register_key

            register_key(number, name, unit, steps, kind, minimum, maximum)
        module, name = wanted["node"].split(":")
        try:
            kind = getattr(__import__(module, None, None, (name,)), name)
        except ImportError as error:
            raise WorkbenchError("this mote's program cannot load %s: %s" % (module, error)) from None
        settings = Settings(wanted["settings"])
        kind.prepare(settings)
        random = draws.Stream(wanted["key"])
        node = kind(wanted["address"], settings, random)
        sensor = None
        if wanted.get("sensor"):
            from sensors import make_sensor

            sensor = make_sensor(wanted["sensor"], self.now(), self.board)
        # Up to here nothing has changed: a mote that is asked for what it cannot be stays what it was.
        self.node, self.sensor, self.random = None, sensor, random
        self.subscriptions, self.subscribed = {}, -1  # by number, without those that have expired; the last number
        if self.radio is not None:
            self.radio.close()
            self.radio = None
            self._foreign = 0
        if getattr(self.board, "HAS_RADIO", False):
            self.radio = self.board.make_radio(self, wanted["address"], wanted.get("radio") or {})
        else:
            self.radio = SerialRadio(self.write)
        self.node = node
        # A host that makes it a node again says how often it did: a lost line is no reboot, yet memory is lost.
        self.node.start(self.now(), wanted.get("boot", self.boot))
        self._pass_on()
        return self.boot

    def _subscribe(self, expires_s, match_all, attributes, now):
        expires_s = None if expires_s < 0 else expires_s
        for number, old in list(self.subscriptions.items()):
            if old.expires_us is not None and old.expires_us <= now:
                del self.subscriptions[number]
        subscription = self.node.subscribe(attributes, now, expires_s, match_all)
        self.subscriptions[subscription.number] = subscription
        self.subscribed = subscription.number
        if self._held_us is None:
            expires_us = NOBODY if subscription.expires_us is None else subscription.expires_us
            self.tell("subscribed", subscription.number, expires_us, attributes)
        return subscription.number

    def _unsubscribe(self, number, now):
        if not self.node.first_number <= number <= self.subscribed:
            raise WorkbenchError("there is no subscription %d at node %d" % (number, self.node.address))
        if number not in self.subscriptions:
            return  # It has ended, or expired: that is no error.
        if self._held_us is None:
            self.tell("unsubscribed", number, 0, "")
        self.node.unsubscribe(self.subscriptions.pop(number), now)

    def _publish(self, attributes, now):
        number = self.node.publish(attributes, now)
        if self._held_us is None:
            self.tell("published", number, 0, attributes)
        self._pass_on()
        return number
