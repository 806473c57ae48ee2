"""The host link's messages between a host and a mote, one message in a frame (framing.py).

Theory of operation
    The host greets the mote with the version it speaks, a number of its own (its session) and a secret; the mote
    answers with what it is, or why not. Then the host sends commands. Each has the secret and a token; the mote acts,
    tells what came of it (events, frames to send), and then answers with that token. Token 0 wants no answer. What
    happens later is told when it happens.

    All hosts on a line hear what the mote says, so the mote repeats the session and never the secret: only the host
    that chose the secret can command the mote, or greet it again, while the mote is in use. A mote refuses a command
    with another secret (session 0: such a command names none) and tells its host. A host whose mote was greeted by
    another one learns that from the READY that names the other's session, and stops; its tokens began at a random
    number, so the other's are hardly taken for them.

Layout (little-endian; one byte says what it is)
    host -> mote
    HELLO          magic "WB", version u8, session u32, secret of SECRET_B bytes. The fields up to the session stay
                   as they are in every version, so that each can refuse any other

    All other messages of the host begin with the secret, SECRET_B bytes, and then have
    GOODBYE        token u16
    CONFIGURE      token u16, JSON: address; node ("module:class") and its settings; key of its draws; and, where
                   they are wanted, boot (how often the node began before and lost its memory; the mote's own count if
                   left out), keys (the user's own: number, name, type, unit, steps, minimum, maximum), sensor (see
                   hardware/mote/sensors.py), radio (for the board's make_radio: jitter_ms, neighbors, the user's own)
    SUBSCRIBE      token u16, number of seconds f64 (negative: for ever), match all u8, attributes
    UNSUBSCRIBE    token u16, the subscription's number u32
    PUBLISH        token u16, attributes
    LINK_QUALITY   token u16, neighbor u32, delivery ratios from and to it f32, f32 (0, 0 puts it on the black list)
    SET_TIME       token u16, time u64 (µs), clock u8: RUNNING, or HELD, then it stands until it is set again
    WAKE           token u16: the timers that are due (while the clock is held; else they go by themselves)
    HEARD          token u16, previous hop u32, broadcast u8, frame: a radio that is attached to the host heard it
    PING           token u16
    RESET          token u16: begin again as after power-on
    OUTCOME        token u16, destination i32 (-1: no node of this network), acknowledged u8 (0: given up), frame: the
                   outcome of a unicast frame that the mote sent, as a radio that is attached to the host reports it.
                   Only nodes of protocols that override `Node.sent` get this

    mote -> host
    READY          magic "WB", version u8, session u32, boot u32, radio u8 (1: of its own), name of the board (text)
    REFUSED        magic "WB", version u8, session u32, reason u8
    ANSWER         token u16, is_right u8, number i64, next wake i64 (µs, -1 none), time u64 (µs), text. If a mote in C
                   was compiled for another size, the text ends in the size's name, and the number is the right size
    EVENT          time u64 (µs), kind u8, peer i32, origin i32, sequence i64, value i64, size u16 (B),
                   length of the message's name u8, that name, IS_TEXT or IS_ATTRIBUTES u8, text or attributes
    SEND           destination i32 (-1: broadcast), frame: for a radio that is attached to the host

    Attributes: number of them u8, then as in every frame (attributes/wire.py). Texts are UTF-8.

Changes
    A message of a new type, or an event at the end of a list of events, needs no other VERSION: who does not know
    it counts it as noise. VERSION rises when a layout changes, when a number comes to mean something else, or when a
    host cannot do without the new message.

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

# What a mote tells: the events of the contract; from FIRST_OF_PROTOCOL on those of its protocol, in the order of its
# node's EVENTS; and then its own. Indices in these lists are what goes over the line, so new ones go to the end, and
# none is taken out.
EVENTS = (contract.Originated, contract.Held, contract.Forwarded, contract.Delivered, contract.Dropped)
FIRST_OF_PROTOCOL = 32
# A subscription was made, ended; a reading was published; a radio of the mote's own sent or heard a frame; another host
# greeted a mote that is in use, or sent it commands; bytes on the line were no message; a text; a radio of the mote's
# own heard frames of another run. The value of "contested", "noise" and "foreign" is how many there were so far.
FIRST_OWN_EVENT = 128
OWN_EVENTS = ("subscribed", "unsubscribed", "published", "sent", "received", "contested", "noise", "told", "foreign")

# What follows the type: a struct, then perhaps bytes. Fields of a message are those of its struct and the rest. A
# command's begin with the secret and the token.
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
    """Return the body of a message: its type, its fields, and the trailing bytes."""
    return bytes((kind,)) + struct.pack(_LAYOUT[kind], *fields) + rest


def decode(body):
    """Return (type, fields, trailing bytes) of a message. Raises DecodeError if it is not valid."""
    if not body or body[0] not in _LAYOUT:
        raise DecodeError("message type is %s; this link does not define it" % (body[0] if body else "missing",))
    layout = _LAYOUT[body[0]]
    size = 1 + struct.calcsize(layout)
    if len(body) < size:
        raise DecodeError("a message of type %d has %d bytes; it needs %d" % (body[0], len(body), size))
    return body[0], struct.unpack_from(layout, body, 1), body[size:]


def encode_attribute_list(attributes):
    """Return the number of attributes, followed by their bytes. Raises EncodeError if one is not valid or too many."""
    if len(attributes) > 255:
        raise EncodeError("a message holds 255 attributes; these are %d" % len(attributes))
    return bytes((len(attributes),)) + encode_attributes(attributes)


def decode_attribute_list(data):
    """Return the attributes in these bytes. Raises DecodeError if the bytes are not a list of attributes."""
    if not data:
        raise DecodeError("a list of attributes has no bytes")
    return decode_attributes(data, 1, data[0])


def encode_event(now, event, own=()):
    """Return the body of an EVENT for a protocol's event at a time; ``own`` is the EVENTS of its node."""
    peer, message, origin, sequence, value, detail = event
    cls = type(event)
    kind = EVENTS.index(cls) if cls in EVENTS else FIRST_OF_PROTOCOL + own.index(cls)
    return encode_row(now, kind, peer, message, origin, sequence, 0, value, detail)


def encode_own_event(now, name, peer, message, origin, sequence, size, value, detail):
    """Return the body of an EVENT for one of the mote's own events, by its name in OWN_EVENTS."""
    kind = FIRST_OWN_EVENT + OWN_EVENTS.index(name)
    return encode_row(now, kind, peer, message, origin, sequence, size, value, detail)


def encode_row(now, kind, peer, message, origin, sequence, size, value, detail):
    """The body of an EVENT with these fields; ``detail`` is a text or a tuple of attributes.

    `events.decode_row` is the reverse, for a host.
    """
    name = message.encode()
    if isinstance(detail, str):
        rest = bytes((IS_TEXT,)) + detail.encode()
    else:
        rest = bytes((IS_ATTRIBUTES,)) + encode_attribute_list(detail)
    rest = bytes((len(name),)) + name + rest
    return encode(EVENT, now, kind, peer, origin, sequence, value, size, rest=rest)
