"""The host link's messages between a host and a mote, one message in a frame (framing.py).

Theory of operation
    The host greets the mote (HELLO) with its version of the host link, a session number of its choice and a secret. The
    mote accepts (READY) or refuses with a reason (REFUSED). Then the host sends commands, each with the secret and a
    token. The mote executes a command, sends the resulting events and frames, and then answers with that token. A
    command with token 0 gets no answer. Later events are sent when they happen.

    All hosts on a line receive everything that the mote sends, so the mote sends the session and never the secret.
    While the mote is in use, only the host that chose the secret can command it or greet it again. The mote answers a
    command with another secret by REFUSED and reports it to its own host. This REFUSED has session 0, because commands
    contain no session. If a mote that is not in use accepts another host, READY contains that host's session; the first
    host then sends no more commands. A host's tokens begin at a random number, so an answer to another host is unlikely
    to have an expected token.

Layout (little-endian; the first byte is the message type)
    host -> mote
    HELLO          magic "WB", version u8, session u32, secret of SECRET_B bytes. The fields up to the session are
                   the same in every version, so that each version can refuse any other

    All other messages of the host begin with the secret, SECRET_B bytes, and then have
    GOODBYE        token u16
    CONFIGURE      token u16, JSON: address; node ("module:class") and its settings; key of its random draws; optionally
                   boot (number of the node's earlier starts; default: the mote's own count), keys (registered by the
                   user: number, name, type, unit, steps, minimum, maximum), sensor (see hardware/mote/sensors.py),
                   radio (for the board's make_radio: jitter_ms, neighbors, the user's own settings;
                   link_quality: "learned" if the mote learns link qualities from beacons)
    SUBSCRIBE      token u16, number of seconds f64 (negative: no expiry), match all u8, attributes
    UNSUBSCRIBE    token u16, the subscription's number u32
    PUBLISH        token u16, attributes
    LINK_QUALITY   token u16, neighbor u32, delivery ratios from and to it f32, f32 (0, 0: add it to the black list)
    SET_TIME       token u16, time u64 (µs), clock u8: RUNNING, or HELD: the clock stops until it is set again
    WAKE           token u16: fire the timers that are due (needed only while the clock is held)
    HEARD          token u16, previous hop u32, broadcast u8, frame: received for the mote by a radio at the host
    PING           token u16
    RESET          token u16: restart as after power-on
    OUTCOME        token u16, destination i32 (-1: not a node of this network), acknowledged u8 (0: given up), frame:
                   the outcome of a unicast frame that the mote sent, as reported by a radio at the host. It is sent
                   only to nodes of protocols that override `Node.sent`

    mote -> host
    READY          magic "WB", version u8, session u32, boot u32, radio u8 (1: its own), name of the board (text)
    REFUSED        magic "WB", version u8, session u32, reason u8
    ANSWER         token u16, success u8, number i64, next wake i64 (µs, -1: none), time u64 (µs), text: the error. The
                   number is the command's result: of SUBSCRIBE the subscription's number, of PUBLISH the reading's
                   sequence number, of PING the bytes in use, of CONFIGURE the earlier starts, otherwise 0. If a mote
                   in C was compiled with an unfit size, the text ends in the size's name, and the number is that size
    EVENT          time u64 (µs), kind u8 (see EVENTS), peer i32, origin i32, sequence i64, value i64,
                   size u16 (B), length of the message's name u8, that name, IS_TEXT or IS_ATTRIBUTES u8, text or
                   attributes
    SEND           destination i32 (-1: broadcast), frame: to be sent by a radio at the host

    Attributes: their number u8, then their bytes as in every frame (attributes/wire.py). Texts are UTF-8.

Changes
    A new message type, or a new event at the end of a list of events, keeps VERSION: older programs count such
    messages as noise. VERSION rises when a layout changes, when a number changes its meaning, or when hosts depend on a
    new message.

This file runs on a mote too (MicroPython's subset of Python).
"""

import struct

from workbench.attributes.wire import decode_attributes, encode_attributes
from workbench.errors import DecodeError, EncodeError
from workbench.protocols import contract

MAGIC = b"WB"
VERSION = 4
SECRET_B = 8

HELLO = 1
GOODBYE = 2
CONFIGURE = 3
SUBSCRIBE = 4
UNSUBSCRIBE = 5
PUBLISH = 6
LINK_QUALITY = 7
SET_TIME = 8
WAKE = 9
HEARD = 10
PING = 11
RESET = 12
OUTCOME = 13
READY = 33
REFUSED = 34
ANSWER = 35
EVENT = 36
SEND = 37

RUNNING = 0
HELD = 1

OTHER_VERSION = 1
BUSY = 2
NO_SECRET = 3

IS_TEXT = 0
IS_ATTRIBUTES = 1

# The kinds of events: those of the contract; from FIRST_OF_PROTOCOL on, those of the protocol, in the order of its
# node's EVENTS; from FIRST_OWN_EVENT on, the mote's own. The line carries indices of these lists, so append new events
# and never remove one.
EVENTS = (contract.Originated, contract.Held, contract.Forwarded, contract.Delivered, contract.Dropped)
FIRST_OF_PROTOCOL = 32
# A subscription began or ended; a reading was published; the mote's own radio sent or received a frame; another host
# greeted a mote in use or commanded it ("contested"); bytes on the line were not a message ("noise"); the mote reports
# a problem as a text ("told"); its radio received frames of another run ("foreign") or had a fault ("radio_fault"). The
# values of "contested", "noise", "foreign" and "radio_fault" count their occurrences so far. The value of "received" is
# the frame's RSSI in dBm, or 0 if the radio does not measure it.
FIRST_OWN_EVENT = 128
OWN_EVENTS = (
    "subscribed",
    "unsubscribed",
    "published",
    "sent",
    "received",
    "contested",
    "noise",
    "told",
    "foreign",
    "radio_fault",
)

# The struct that follows a message's type; further bytes may follow it. A command's struct begins with the secret and
# the token.
_LAYOUT = {
    HELLO: "<2sBI",
    GOODBYE: "<8sH",
    CONFIGURE: "<8sH",
    SUBSCRIBE: "<8sHdB",
    UNSUBSCRIBE: "<8sHI",
    PUBLISH: "<8sH",
    LINK_QUALITY: "<8sHIff",
    SET_TIME: "<8sHQB",
    WAKE: "<8sH",
    HEARD: "<8sHIB",
    PING: "<8sH",
    RESET: "<8sH",
    OUTCOME: "<8sHiB",
    READY: "<2sBIIB",
    REFUSED: "<2sBIB",
    ANSWER: "<HBqqQ",
    EVENT: "<QBiiqqH",
    SEND: "<i",
}


def encode(kind, *fields, rest=b""):
    """Return the body of a message: its type ``kind``, its ``fields``, and the trailing bytes ``rest``."""
    return bytes((kind,)) + struct.pack(_LAYOUT[kind], *fields) + rest


def decode(body):
    """Return (type, tuple of fields, trailing bytes) of a message's body. Raises DecodeError if it is not valid."""
    if not body or body[0] not in _LAYOUT:
        raise DecodeError("message type is %s; the host link has no such type" % (body[0] if body else "missing",))
    layout = _LAYOUT[body[0]]
    size = 1 + struct.calcsize(layout)
    if len(body) < size:
        raise DecodeError("a message of type %d has %d bytes; it needs %d" % (body[0], len(body), size))
    return body[0], struct.unpack_from(layout, body, 1), body[size:]


def encode_attribute_list(attributes):
    """Return the bytes of a list of attributes: their number, then the attributes.

    Raises EncodeError if an attribute is not valid, or for more than 255 attributes.
    """
    if len(attributes) > 255:
        raise EncodeError("the list has %d attributes; a message of the host link holds at most 255" % len(attributes))
    return bytes((len(attributes),)) + encode_attributes(attributes)


def decode_attribute_list(data):
    """Return the attributes that ``data`` encodes. Raises DecodeError if ``data`` is not a list of attributes."""
    if not data:
        raise DecodeError("the list of attributes is empty (0 bytes); it needs a byte for the number of attributes")
    return decode_attributes(data, 1, data[0])


def encode_event(now, event, own=()):
    """Return the body of an EVENT message for an event of a node at ``now`` (µs).

    ``own`` is the tuple of event classes that the node's protocol defines in addition to EVENTS.
    """
    peer, message, origin, sequence, value, detail = event
    cls = type(event)
    kind = EVENTS.index(cls) if cls in EVENTS else FIRST_OF_PROTOCOL + own.index(cls)
    return encode_row(now, kind, peer, message, origin, sequence, 0, value, detail)


def encode_own_event(now, name, peer, message, origin, sequence, size, value, detail):
    """Return the body of an EVENT message for an event of the mote itself, not of its node, such as a sent frame.

    ``name`` is one of OWN_EVENTS; the other parameters are as for `encode_row`.
    """
    kind = FIRST_OWN_EVENT + OWN_EVENTS.index(name)
    return encode_row(now, kind, peer, message, origin, sequence, size, value, detail)


def encode_row(now, kind, peer, message, origin, sequence, size, value, detail):
    """Return the body of an EVENT message with the fields of a trace row; ``detail`` is a text or attributes.

    ``now`` is the time in µs, ``kind`` the number of the event, and ``size`` the size of the frame in bytes. The other
    parameters are the trace's columns of the same names. On a host, `events.decode_row` is the inverse function.
    """
    name = message.encode()
    if isinstance(detail, str):
        trailing_bytes = bytes((IS_TEXT,)) + detail.encode()
    else:
        trailing_bytes = bytes((IS_ATTRIBUTES,)) + encode_attribute_list(detail)
    trailing_bytes = bytes((len(name),)) + name + trailing_bytes
    return encode(EVENT, now, kind, peer, origin, sequence, value, size, rest=trailing_bytes)
