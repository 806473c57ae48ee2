"""The program of a mote: one protocol node, driven by a clock, a radio, a sensor and the host link.

Theory of operation
    The node's code is the same file as in the simulator (workbench/protocols). Like the node, this program never waits.
    The board passes it the bytes from the host link (`feed`). The board also calls `step`, which executes what is due
    and returns the time until the next call. After each call, the node's events go to the host and its frames to the
    radio.

    The mote belongs to the host that greeted it last, as long as that host sends a message at least every BUSY_US. It
    executes commands that have the secret of this host's greeting. It refuses all other commands, and reports them to
    its host. A mote without a host continues as before. A mote whose clock is held, as after a run, sends nothing.

    An event or a frame that does not fit in a frame of the host link is dropped and reported as a problem. The node's
    other events and frames are sent.

Clock
    ``now()`` is the board's clock plus an offset, both in µs; the host sets it to the time of its run. A host may also
    hold the clock: then time stops until it is set again, and timers fire only on the host's command. So a simulator
    runs motes in its own time. Frames that the mote's own radio receives meanwhile are dropped.

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
    """A mote on a board; ``board`` is the board's driver, a module such as those in boards/."""

    def __init__(self, board):
        self.board = board
        self.boot = board.boots()
        self.node = None
        self.radio = None
        self.sensor = None
        self.random = None
        self._deframer = framing.Deframer()
        self.spoilt = 0
        self._secret = None  # of the present host
        self._contested = 0  # greetings and commands of others so far
        self.foreign = 0  # the radio's count, as last reported
        self.simulated = ()  # neighbors that the host simulates, in a run of a mote with a radio
        self._greeted_us = 0
        self._offset_us = 0
        self._held_us = None
        self._send_ready(0)

    def now(self):
        """Return the mote's time in µs, according to the clock that the host has set."""
        return self.board.now_us() + self._offset_us if self._held_us is None else self._held_us

    # Called by the board

    def feed(self, data):
        """Process bytes received over the host link: execute the complete messages among them."""
        contested = self._contested
        for body in self._deframer.feed(data):
            try:
                kind, fields, rest = link.decode(body)
                self.take(kind, fields, rest)
            except DecodeError:
                self._deframer.spoilt += 1
        if self._deframer.spoilt != self.spoilt:
            self.spoilt = self._deframer.spoilt
            self.tell("noise", 0, self.spoilt, "")
        if self._contested != contested:
            self.tell("contested", 0, self._contested, "another host greeted or commanded this mote, and was refused")

    def step(self):
        """Execute everything that is due; return the µs until the next step, or None if nothing is planned."""
        if self.node is None:
            return None
        try:
            if self._held_us is not None:
                self.radio.poll(self._held_us)  # These frames are dropped: time does not advance.
                if hasattr(self.radio, "outcomes"):
                    self.radio.outcomes()
                return None
            return self._step(self.now())
        except Exception as error:  # Any error is reported to the host, and the mote continues.
            self._report_error("the mote failed: %r" % error)
            return FAILED_US

    def _step(self, now):
        for heard in self.radio.poll(now):
            frame, previous_hop, broadcast = heard[:3]
            self._report_frame("received", previous_hop, frame, broadcast, heard[3] if len(heard) > 3 else 0)
            self.node.receive(frame, previous_hop, now, broadcast)
            self._forward_output()
        if hasattr(self.radio, "outcomes"):
            for destination, frame, ok in self.radio.outcomes():
                self.node.sent(destination, frame, ok, now)
                self._forward_output()
        foreign = getattr(self.radio, "foreign", 0)
        if foreign != self.foreign:
            self.foreign = foreign
            self.tell("foreign", 0, foreign, "frames of another run, which this one does not take")
        if hasattr(self.radio, "report"):
            self.radio.report(self.tell)
        if self.node.next_wake is not None and self.node.next_wake <= now:
            self.node.wake(now)
            self._forward_output()
        if self.sensor is not None and self.sensor.next_us <= now:
            self.publish(self.sensor.read(now), now)
        times = [self.node.next_wake, self.radio.next_us, self.sensor and self.sensor.next_us]
        times = [time for time in times if time is not None]
        return max(0, min(times) - self.now()) if times else None

    # Messages to the host

    def write(self, body):
        """Send a message to the host; a message too long for a frame is reported as a problem."""
        try:
            self.board.write(framing.encode(body))
        except WorkbenchError as error:
            self._report_error(str(error))

    def tell(self, name, sequence, value, detail):
        """Send the host an event of the mote itself, not of its node; ``name`` is one of OWN_EVENTS of the host link.

        ``sequence``, ``value`` and ``detail`` are the event's columns of the trace.
        """
        address = NOBODY if self.node is None else self.node.address
        self.write(link.encode_own_event(self.now(), name, NOBODY, "", address, sequence, 0, value, detail))

    def _report_error(self, detail):
        self.tell("told", 0, 0, detail[:LONGEST_TEXT])

    def _report_frame(self, name, peer, frame, broadcast, value=0):
        """Send the host an event on a frame of the mote's own radio; ``name`` is the event's name, such as "sent".

        ``peer`` is the other node, ``value`` the RSSI in dBm (0: not measured).
        """
        try:
            message, origin, sequence = self.node.describe(frame, broadcast)
        except Exception:  # Describing invalid bytes may raise any error.
            message, origin, sequence = "", NOBODY, 0
        self.write(link.encode_own_event(self.now(), name, peer, message, origin, sequence, len(frame), value, ""))

    def _forward_output(self):
        """Send the node's events to the host and its frames to the radio."""
        now = self.now()
        for event in self.node.take_events():
            self.write(link.encode_event(now, event, self.node.EVENTS))
        for subscription in self.subscriptions.values():
            subscription.take()  # The host has these readings as events; stored here they would fill the memory.
        for destination, frame in self.node.take_frames():
            peer = NOBODY if destination is None else destination
            if not self.radio.is_serial:
                # A frame that simulated neighbors receive goes to the host too, which reports it as sent.
                if self.simulated if destination is None else destination in self.simulated:
                    self.write(link.encode(link.SEND, peer, rest=frame))
                    if destination is not None:
                        continue
                else:
                    self._report_frame("sent", peer, frame, destination is None)
            self.radio.send(destination, frame, now)

    def _send_ready(self, number):
        """Send the host a READY message, with ``number`` as its session.

        With the session of a greeting, the message answers this greeting; with 0, it announces a start of the mote.
        """
        has_radio = getattr(self.board, "HAS_RADIO", False)
        name = self.board.NAME.encode()
        self.write(link.encode(link.READY, link.MAGIC, link.VERSION, number, self.boot, has_radio, rest=name))

    def _send_refusal(self, number, reason):
        self.write(link.encode(link.REFUSED, link.MAGIC, link.VERSION, number, reason))

    # Commands from the host

    def take(self, kind, fields, rest):
        if kind == link.HELLO:
            magic, version, session = fields
            if magic != link.MAGIC or version != link.VERSION:
                self._send_refusal(session, link.OTHER_VERSION)
                return
            if len(rest) != link.SECRET_B:
                raise DecodeError("a greeting has a secret of %d bytes; it needs %d" % (len(rest), link.SECRET_B))
            now = self.board.now_us()
            if self._secret not in (None, rest) and now - self._greeted_us < BUSY_US:
                self._contested += 1
                self._send_refusal(session, link.BUSY)
                return
            self._secret = rest
            self._greeted_us = now
            self._send_ready(session)
            return
        if kind >= link.READY or self._secret is None:
            return
        if fields[0] != self._secret:
            self._contested += 1
            self._send_refusal(0, link.NO_SECRET)
            return
        self._greeted_us = self.board.now_us()
        token, fields = fields[1], fields[2:]
        number = 0
        is_right = 1
        text = ""
        try:
            number = self._execute(kind, fields, rest) or 0
        except WorkbenchError as error:
            is_right, text = 0, str(error)
        except Exception as error:  # The answer reports any error, and the mote continues.
            is_right, text = 0, "the mote failed: %r" % error
        if not token and not is_right:
            self._report_error(text)  # The host does not expect an answer to this command.
        if token:
            wake = NOBODY if self.node is None or self.node.next_wake is None else self.node.next_wake
            answer = token, is_right, number, wake, self.now()
            self.write(link.encode(link.ANSWER, *answer, rest=text[:LONGEST_TEXT].encode()))
        if kind == link.RESET:
            self.board.reset()

    def _execute(self, kind, fields, rest):
        """Execute a command of the host; return the number for its answer. None counts as 0."""
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
            return self.publish(link.decode_attribute_list(rest), now)
        elif kind == link.SUBSCRIBE:
            number = self.subscribe(fields[0], fields[1] == 1, link.decode_attribute_list(rest), now)
        elif kind == link.UNSUBSCRIBE:
            self.unsubscribe(fields[0], now)
        elif kind == link.LINK_QUALITY:
            self.node.link_quality(fields[0], fields[1], fields[2], now)
        elif kind == link.OUTCOME:
            self.node.sent(fields[0], rest, fields[1] == 1, now)
        self._forward_output()
        return number

    def _configure(self, rest):
        configuration = json.loads(rest)
        for number, name, kind, unit, steps, minimum, maximum in configuration.get("keys", ()):
            from workbench.attributes.keys import register_key

            register_key(number, name, unit, steps, kind, minimum, maximum)
        module, name = configuration["node"].split(":")
        try:
            kind = getattr(__import__(module, None, None, (name,)), name)
        except ImportError as error:
            raise WorkbenchError("this mote's program cannot load %s: %s" % (module, error)) from None
        settings = Settings(configuration["settings"])
        kind.prepare(settings)
        random = draws.Stream(configuration["key"])
        node = kind(configuration["address"], settings, random)
        sensor = None
        sensor_settings = configuration.get("sensor") or getattr(self.board, "sensor", None)
        if sensor_settings:
            from sensors import make_sensor

            sensor = make_sensor(sensor_settings, self.now(), self.board)
        # An invalid configuration raises an error above, so the mote keeps its present node.
        self.node, self.sensor, self.random = None, sensor, random
        self.subscriptions, self.subscribed = {}, -1  # by number, without those that have expired; the last number
        if self.radio is not None:
            self.radio.close()
            self.radio = None
            self.foreign = 0
        radio_settings = configuration.get("radio") or {}
        self.simulated = radio_settings.get("simulated", ())
        if getattr(self.board, "HAS_RADIO", False):
            self.radio = self.board.make_radio(self, configuration["address"], radio_settings)
        else:
            self.radio = SerialRadio(self.write)
        self.node = node
        # The host counts its configurations: each erases the node's memory, even if the mote did not restart.
        self.node.start(self.now(), configuration.get("boot", self.boot))
        self._forward_output()
        return self.boot

    def subscribe(self, expires_s, match_all, attributes, now):
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

    def unsubscribe(self, number, now):
        if not self.node.first_number <= number <= self.subscribed:
            raise WorkbenchError("subscription %d does not exist at node %d" % (number, self.node.address))
        if number not in self.subscriptions:
            return  # The subscription has ended or expired, which is not an error.
        if self._held_us is None:
            self.tell("unsubscribed", number, 0, "")
        self.node.unsubscribe(self.subscriptions.pop(number), now)

    def publish(self, attributes, now):
        number = self.node.publish(attributes, now)
        if self._held_us is None:
            self.tell("published", number, 0, attributes)
        self._forward_output()
        return number
