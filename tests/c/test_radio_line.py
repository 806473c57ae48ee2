"""A mote in C whose radio has a line of its own: what each line carries, and that noise on either does no harm."""

import functools
import random

import pytest

import workbench as wb
from tests.c.processes import mote_includes, mote_sources
from tests.c_nodes import WARNINGS, compile_c, declarations, needs_compiler, scratch, sources
from workbench.attributes.text import parse
from workbench.motes import framing, messages
from workbench.motes.mote import configuration
from workbench.motes.session import protocol_on_a_mote

pytestmark = needs_compiler

SECRET = b"eight B."


@functools.cache
def library():
    """Compile the program of a mote without a board, and return its interface and library."""
    import cffi

    path = scratch() / "mote.so"
    where = mote_includes("diffusion")
    program = [*sources("diffusion"), *mote_sources("diffusion")]
    compile_c([*WARNINGS, "-O1", "-fPIC", "-shared", *where, *program, "-o", str(path)])
    ffi = cffi.FFI()
    ffi.cdef(declarations(where, ["mote.h"]))
    return ffi, ffi.dlopen(str(path))


class Board:
    """A board with two lines, and the messages that the mote wrote to each."""

    def __init__(self):
        self.ffi, self.c = library()
        self.now_us = 0
        self.deframers = framing.Deframer(), framing.Deframer()
        self.host_messages, self.radio_messages = [], []
        calls = {
            "now_us": ("int64_t(void *)", lambda _: self.now_us),
            "used_B": ("int64_t(void *)", lambda _: 77),
            "write": ("void(void *, const uint8_t *, size_t)", functools.partial(self.write, 0)),
            "write_radio": ("void(void *, const uint8_t *, size_t)", functools.partial(self.write, 1)),
            "reset": ("void(void *)", lambda _: None),
        }
        self.calls = {name: self.ffi.callback(kind, call) for name, (kind, call) in calls.items()}
        self.name = self.ffi.new("char[]", b"two lines")
        self.board = self.ffi.new("struct board *", {"name": self.name, **self.calls})
        self.mote = self.ffi.new("struct mote *")
        self.c.mote_start(self.mote, self.board)
        self.send(messages.HELLO, messages.MAGIC, messages.VERSION, 1, rest=SECRET)
        rest = configuration(5, protocol_on_a_mote(wb.Diffusion()), 1)
        self.command(messages.CONFIGURE, rest=rest)

    def write(self, line, _, data, size):
        received = [messages.decode(body) for body in self.deframers[line].feed(bytes(self.ffi.buffer(data, size)))]
        (self.radio_messages if line else self.host_messages).extend(received)

    def send(self, kind, *fields, rest=b""):
        frame = framing.encode(messages.encode(kind, *fields, rest=rest))
        self.c.mote_feed(self.mote, frame, len(frame))

    def command(self, kind, *fields, rest=b"", token=0):
        self.send(kind, SECRET, token, *fields, rest=rest)

    def hear(self, data):
        self.c.mote_hear(self.mote, data, len(data))

    def host_frames(self):
        return [rest for kind, _, rest in self.host_messages if kind == messages.SEND]


@pytest.fixture
def board():
    return Board()


def radio_message(frame, secret=SECRET, kind=messages.HEARD, fields=(3, 1)):
    fields = fields if kind in (messages.HEARD, messages.OUTCOME) else ()
    return framing.encode(messages.encode(kind, secret, 0, *fields, rest=frame))


def interest_of(board):
    board.command(messages.SUBSCRIBE, -1.0, 0, rest=messages.encode_attribute_list(parse("TEMP GE 25")))
    frames = board.radio_messages or board.host_messages
    return next(rest for kind, _, rest in frames if kind == messages.SEND)


def test_frames_go_over_the_radio_line_while_the_clock_runs(board):
    interest_of(board)
    assert [kind for kind, _, _ in board.radio_messages] == [messages.SEND] and not board.host_frames()


def test_frames_go_over_the_host_link_while_the_clock_is_held(board):
    board.command(messages.SET_TIME, 5, messages.HELD)
    interest_of(board)
    assert not board.radio_messages and len(board.host_frames()) == 1


def test_frames_from_the_radio_reach_the_node_unless_the_clock_is_held(board):
    interest = interest_of(Board())
    other = bytes([*interest[:5], 3, 0, *interest[7:8], 3, 0, *interest[10:]])  # of node 3
    board.command(messages.SET_TIME, 5, messages.HELD)
    board.hear(radio_message(other))
    board.command(messages.SET_TIME, 6, messages.RUNNING)
    assert not board.radio_messages and board.mote.node.diffusion.entry_count == 0
    board.hear(radio_message(other))
    assert board.mote.node.diffusion.entry_count == 1


def test_data_is_resent_after_the_radio_reports_a_failure_unless_the_clock_is_held(board):
    interest = interest_of(Board())
    board.hear(radio_message(bytes([*interest[:5], 3, 0, *interest[7:8], 3, 0, *interest[10:]])))
    board.command(messages.PUBLISH, rest=messages.encode_attribute_list(parse("TEMP IS 26")))
    [frame] = [rest for _, fields, rest in board.radio_messages if fields == (3,)]
    board.radio_messages.clear()
    for held, acknowledged, again in ((True, 0, []), (False, 1, []), (False, 0, [frame])):
        board.command(messages.SET_TIME, board.now_us, messages.HELD if held else messages.RUNNING)
        board.hear(radio_message(frame, kind=messages.OUTCOME, fields=(3, acknowledged)))
        board.command(messages.SET_TIME, board.now_us, messages.RUNNING)
        board.now_us += 2_000_000
        board.c.mote_step(board.mote)
        assert [rest for _, fields, rest in board.radio_messages if fields == (3,)] == again


def test_radio_line_accepts_neither_commands_nor_frames_without_the_secret(board):
    interest = interest_of(Board())
    before = len(board.host_messages)
    board.hear(radio_message(interest, secret=b"another."))
    for kind in (messages.GOODBYE, messages.PING, messages.RESET):
        board.hear(radio_message(b"", kind=kind))
    assert board.mote.node.diffusion.entry_count == 0 and board.mote.radio.spoilt == 3 and board.mote.has_secret
    events = [fields for kind, fields, _ in board.host_messages[before:] if kind == messages.EVENT]
    noise_events = [fields[6 - 1] for fields in events if fields[1] == 134]
    assert len(noise_events) == 3
    assert [fields for kind, fields, _ in board.host_messages[before:] if kind == messages.REFUSED]


def test_noise_on_either_line_does_no_harm(board):
    dice = random.Random(1)
    interest = interest_of(Board())
    for _ in range(3000):
        noise, body = dice.randbytes(dice.choice([0, 1, 30, 400])), dice.randbytes(dice.randrange(120))
        data = dice.choice([noise, radio_message(body)])
        if dice.random() < 0.3:
            data = radio_message(bytes([*interest[:9], dice.randrange(256), *interest[10:]]))
        (board.hear if dice.random() < 0.7 else lambda some: board.c.mote_feed(board.mote, some, len(some)))(data)
        board.now_us += dice.randrange(400_000)
        board.c.mote_step(board.mote)
    board.hear(b"\0")
    board.c.mote_feed(board.mote, b"\0", 1)
    board.command(messages.PING, token=9)
    kind, fields, _ = board.host_messages[-1]
    assert kind == messages.ANSWER and fields[:3] == (9, 1, 77)


@pytest.mark.parametrize("speed_ppm", [10_000, 1_000_000, 2_500_000, 1_000_000_000])
def test_clock_of_any_speed_shows_its_time_and_is_stepped_in_time(speed_ppm):
    _, c = library()
    for real_us in (0, 1, 999_999, 1_000_000, 86_400_000_001, 10**13):
        assert abs(c.mote_clock_us(real_us, speed_ppm) - real_us * speed_ppm // 1_000_000) <= 1
    for wait_us in (0, 1, 500_000, 10**9, 2**63 - 1):
        assert c.mote_pause_us(wait_us, speed_ppm) == min(1_000_000, wait_us * 1_000_000 // speed_ppm)
