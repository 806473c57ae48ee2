"""Nodes of the C library behind the contract of Python: compiled here, called through cffi.

The declarations are those of the headers themselves. Sizes of lists are constants in C, so a library is built for each
set of sizes, and kept until the tests end.
"""

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.repository import REPOSITORY
from workbench.attributes.model import with_payload
from workbench.attributes.text import parse
from workbench.attributes.wire import decode_attributes, encode_attributes
from workbench.errors import AttributeFormatError, EncodeError, ParameterError
from workbench.motes.events import event_types
from workbench.protocols.contract import Node
from workbench.protocols.diffusion.filters import BUILT_IN, complete_settings

sys.path.append(str(REPOSITORY / "hardware"))
import definition_file

LIBRARY = REPOSITORY / "hardware" / "c"
WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic", "-Werror")
OPTIONS = os.environ.get("C_NODES_OPTIONS", "-O1").split()
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
ERRORS = {
    -1: AttributeFormatError,
    -2: AttributeFormatError,
    -3: AttributeFormatError,
    -4: AttributeFormatError,
    -5: EncodeError,
    -6: ParameterError,
    -7: ParameterError,
    -8: AttributeFormatError,
}
# Headers of protocols that applications include.
DECLARED = ("flooding", "diffusion", "built_in")
FILTER_SETTINGS = ("key", "tolerance", "heartbeat_us", "window", "period_us", "interval_us", "high", "low", "flush")
NEVER = 2**63 - 1
BROADCAST = 2**32 - 1


def why_missing():
    """Return why C cannot be compiled and called on this machine, or None if it can."""
    if shutil.which("gcc") is None:
        return "gcc is missing: apt-get install gcc"
    try:
        import cffi  # noqa: F401
    except ImportError:
        return "cffi is missing: pip install cffi"
    return None


missing = why_missing()
needs_compiler = pytest.mark.skipif(missing is not None, reason=str(missing))


def folder_of(name):
    """Return the folder with the C files of a protocol."""
    return REPOSITORY / "workbench" / "protocols" / name / "c"


def sources(name):
    """Return the paths of the library's C files and of a protocol's."""
    return [str(path) for folder in (LIBRARY, folder_of(name)) for path in sorted(folder.glob("*.c"))]


def includes(name):
    """Return the compiler's options for the folders of the headers."""
    return [f"-I{folder}" for folder in (LIBRARY, folder_of(name))]


@functools.cache
def scratch():
    """Return a folder for compiled files, which is removed when the tests end."""
    folder = tempfile.mkdtemp(prefix="c-nodes-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def compile_c(arguments, compiler="gcc"):
    """Run a compiler; a warning fails the test."""
    ran = subprocess.run([compiler, *arguments], capture_output=True, text=True, timeout=120)
    if ran.returncode:
        pytest.fail(ran.stderr, pytrace=False)
    return ran.stdout


@functools.cache
def library(name, defines=()):
    """Return (ffi, functions) of a protocol's nodes, compiled with the sizes ``defines``: (("MAX_DATA", 2), ...)."""
    import cffi

    number = len(list(scratch().glob("*.so")))
    path = scratch() / f"{name}-{number}.so"
    named = [f"-D{key}={value}" for key, value in defines]
    how = [*WARNINGS, *OPTIONS, "-ffp-contract=off", "-fPIC", "-shared"]
    compile_c([*how, *named, *includes(name), *sources(name), "-o", str(path)])
    ffi = cffi.FFI()
    headers = [path.name for path in sorted(folder_of(name).glob("*.h")) if path.stem in DECLARED]
    ffi.cdef(declarations([*named, *includes(name)], headers))
    return ffi, ffi.dlopen(str(path))


def declarations(options, headers):
    """Return the declarations of headers for cffi, without the standard headers, whose types cffi knows."""
    empty = scratch() / "empty"
    empty.mkdir(exist_ok=True)
    for header in ("stdbool.h", "stddef.h", "stdint.h"):
        (empty / header).touch()
    page = scratch() / "declared.h"
    page.write_text("".join(f'#include "{header}"\n' for header in headers))
    return compile_c(["-E", "-P", "-nostdinc", f"-I{empty}", *options, str(page)])


def defines_of(protocol):
    """Return the sizes of lists with which a protocol's nodes are compiled."""
    if hasattr(protocol, "max_interests"):
        return tuple(sorted(definition_file.sizes(protocol).items()))
    return (("MAX_EVENTS", protocol.max_events), ("MESSAGE_B", 60))


def settings_of(protocol):
    """Return the settings of a protocol as {field of the struct in C: value}."""
    return definition_file.settings(protocol) if hasattr(protocol, "max_interests") else {"ttl": protocol.ttl}


class CSubscription:
    """A subscription at a node in C."""

    def __init__(self, node, number, expires_us):
        self.node, self.number, self.expires_us = node, number, expires_us

    def unsubscribe(self, now):
        self.node.unsubscribe(self, now)


class CNode(Node):
    """A node in C."""

    def __init__(self, protocol, address, random, more=()):
        super().__init__(address, protocol, random)
        self._name = type(protocol).__name__.lower()
        self._ffi, self._c = library(self._name, (*defines_of(protocol), *more))
        self._settings = self._ffi.new(f"struct {self._name}_settings *", settings_of(protocol))
        if hasattr(protocol, "filters"):
            own_filters = [rule for rule in protocol.filters if rule.at is None or address in rule.at]
            self._filters = [self._filter(rule) for rule in sorted(own_filters, key=lambda rule: rule.key)]
            self._table = self._ffi.new("struct filter[]", [row for row, *_ in self._filters])
            self._settings.filters, self._settings.filter_count = self._table, len(self._filters)
        self.memory = self._ffi.new(f"struct {self._name} *")
        self._driver = self._ffi.new("struct driver *")
        self._send = self._ffi.callback("void(void *, uint32_t, const struct frame *)", self._take_frame)
        self._event = self._ffi.callback("void(void *, const struct event *)", self._take_event)
        self._driver.send, self._driver.event = self._send, self._event
        self._kinds = event_types(protocol.kind_of_node().EVENTS)

    def _call(self, function, *arguments):
        self._driver.tells_all = self.tells_all
        answer = getattr(self._c, f"{self._name}_{function}")(self.memory, *arguments)
        wake_us = getattr(self._c, f"{self._name}_next_wake")(self.memory)
        self.next_wake = None if wake_us == NEVER else wake_us
        return answer

    def _checked(self, answer):
        if answer < 0:
            raise ERRORS[answer](self._ffi.string(self._c.sentence(answer)).decode())
        return answer

    def _take_frame(self, _, destination, frame):
        data = b"".join(
            bytes(self._ffi.buffer(part, size)) if size else b""
            for part, size in ((frame.head, frame.head_size), (frame.body, frame.body_size))
        )
        self.outbox.append((None if destination == BROADCAST else destination, data))

    def _take_event(self, _, event):
        detail = self._ffi.string(event.detail).decode()
        if event.attributes.bytes:
            encoded = bytes(self._ffi.buffer(event.attributes.bytes, event.attributes.size))
            detail = decode_attributes(encoded, 0, event.attributes.count)
        message = self._ffi.string(event.message).decode()
        kind = self._kinds[event.kind]
        self.events.append(kind(event.peer, message, event.origin, event.sequence, event.value, detail))

    def _filter(self, rule):
        """Convert a filter to a row of the table of filters in C; return the row, and the objects with its data."""
        built_in = BUILT_IN[rule.name](complete_settings(rule.name, BUILT_IN[rule.name].parameters, rule.settings))
        struct = "running_window" if rule.name.startswith("running_") else rule.name
        state = self._ffi.new(f"struct {struct} *")
        for name in FILTER_SETTINGS:
            if hasattr(built_in, name):
                setattr(state, name, getattr(built_in, name))
        match, memory = self._attributes(parse(rule.match))
        emission, emit = self._ffi.NULL, self._ffi.NULL
        if rule.name == "neighborhood_average":
            state.emission.due_us = NEVER
            emission, emit = self._ffi.addressof(state.emission), self._c.emit_average
        row = (rule.key, rule.messages == "interest", match[0], getattr(self._c, rule.name), state, emission, emit)
        return row, state, match, memory

    def _attributes(self, attributes):
        """Convert attributes to a list in C; return (list, object that holds its memory)."""
        encoded = encode_attributes(attributes)
        memory = self._ffi.new("uint8_t[]", encoded or b"\0")
        return self._ffi.new("struct attributes *", (memory, len(encoded), len(attributes))), memory

    def start(self, now, boot=0):
        super().start(now, boot)
        stream = self._ffi.new("struct random *", (self.random.key, self.random.counter))
        self._call("start", self._settings, self.address, stream[0], self._driver, now, boot)

    def subscribe(self, attributes, now, expires_s=None, match_all=False):
        listed, memory = self._attributes(attributes)
        lasts_us = NEVER if expires_s is None else int(expires_s * 1_000_000)
        number = self._checked(self._call("subscribe", listed, now, lasts_us, match_all))
        del memory
        return CSubscription(self, number, None if expires_s is None else now + lasts_us)

    def unsubscribe(self, subscription, now):
        self._call("unsubscribe", subscription.number, now)

    def publish(self, attributes, now, payload=b""):
        listed, memory = self._attributes(with_payload(attributes, payload))
        number = self._checked(self._call("publish", listed, now))
        del memory
        return number

    def receive(self, frame, previous_hop, now, broadcast=True):
        # A block of exactly these bytes: sanitizers see it if the node reads past them.
        self._call("receive", self._ffi.new("uint8_t[]", bytes(frame)), len(frame), previous_hop, now, broadcast)

    def sent(self, destination, frame, ok, now):
        self._call("sent", destination & BROADCAST, self._ffi.new("uint8_t[]", bytes(frame)), len(frame), ok, now)

    def wake(self, now):
        self._call("wake", now)

    def dropped(self):
        """Return {reason: number of dropped messages}, as `Node.drops`."""
        reasons = getattr(self._c, f"{self._name.upper()}_REASONS")
        counts = {}
        for reason in range(reasons):
            count = getattr(self._c, f"{self._name}_drops")(self.memory, reason)
            if count:
                counts[self._ffi.string(getattr(self._c, f"{self._name}_reason_name")(reason)).decode()] = count
        return counts


class _OwnInterest(NamedTuple):
    """An own interest of a node in C: its index in the node's memory, its attributes, and whether it is flooded."""

    place: int
    attributes: tuple
    is_flooded: bool


class _Subscriptions:
    """The subscriptions of a node in C, by own interest, as `Diffusion.reinforce` needs them."""

    def __init__(self, node):
        self.node = node

    def of(self, own):
        """Return the subscriptions of an own interest, in order."""
        memory = self.node.memory
        records = [memory.subscriptions[k] for k in range(memory.subscription_count)]
        numbers = [memory.first_number + record.number for record in records if record.own == own.place]
        return [CSubscription(self.node, number, None) for number in numbers]


class CDiffusionNode(CNode):
    """A node of diffusion in C: it is informed of link qualities, and sends reinforcements for its application."""

    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        self.subscriptions = _Subscriptions(self)

    def reinforce(self, subscription, now, attributes=None):
        listed, memory = (self._ffi.NULL, None) if attributes is None else self._attributes(attributes)
        sent = self._checked(self._call("reinforce", subscription.number, listed, now))
        del memory
        return sent

    @property
    def own_interests(self):
        """The own interests in order, each with its attributes, as `Diffusion.reinforce` needs them."""
        memory = self.memory
        places = [memory.own_order[k] for k in range(memory.own_count)]
        interests = [(place, memory.own_interests[place]) for place in places]
        return [_OwnInterest(place, self._decoded(own.attributes), own.is_flooded) for place, own in interests]

    def _decoded(self, attribute_list):
        encoded = bytes(self._ffi.buffer(attribute_list.bytes, attribute_list.size))
        return decode_attributes(encoded, 0, attribute_list.count)

    def link_quality(self, neighbor, inbound, outbound, now):
        self._call("link_quality", neighbor, inbound, outbound, now)


def make_node(protocol, address, random, **more):
    """Return a node of a protocol whose implementation is the C library."""
    diffuses = protocol.node.link_quality is not Node.link_quality
    return (CDiffusionNode if diffuses else CNode)(protocol, address, random, **more)
