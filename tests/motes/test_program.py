"""The mote's program on a fake board: its answers, reports and frames, without a line, a radio or a clock."""

import ast
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench import draws
from workbench.attributes.model import with_payload
from workbench.attributes.text import parse
from workbench.motes import framing
from workbench.motes import messages as link
from workbench.motes.events import decode_row, event_names
from workbench.motes.program import HARDWARE, boards
from workbench.motes.session import protocol_on_a_mote
from workbench.protocols import contract
from workbench.protocols.contract import NOBODY
from workbench.protocols.diffusion import events as diffusion
from workbench.protocols.flooding import wire as flooding
from workbench.protocols.subscriptions import Subscription

DIFFUSION = protocol_on_a_mote(wb.Diffusion())
FLOODING = protocol_on_a_mote(wb.Flooding())
NAMES = event_names(diffusion.EVENTS)
SECOND = 1_000_000
SECRET, OTHER_SECRET = b"\0secret\0", b"anothers"


@pytest.fixture(scope="module", autouse=True)
def program():
    """Import the program's modules from their folder, yield the main module, and remove them afterwards."""
    folder = str(HARDWARE / "mote")
    before = set(sys.modules)
    sys.path.insert(0, folder)
    import mote

    yield mote
    sys.path.remove(folder)
    for name in set(sys.modules) - before:
        if name in ("mote", "sensors", "radio_serial", "radio_udp", "datagrams"):
            del sys.modules[name]


class Board:
    NAME = "none"
    HAS_RADIO = False

    def __init__(self):
        self.time_us, self.line, self.boot_count, self.resets = 0, b"", 0, 0

    def boots(self):
        return self.boot_count

    def now_us(self):
        return self.time_us

    def memory(self):
        return 1234, 5678

    def write(self, data):
        self.line += data

    def reset(self):
        self.resets += 1

    def read_sensor(self, number):
        return 100 * number


class Bench:
    """A mote on a board, and a host that greets it and reads what it writes."""

    def __init__(self, program, board=None):
        self.board = board or Board()
        self.mote = program.Mote(self.board)
        self.token = 0

    def read_messages(self):
        """Return the messages written since the last call, as (kind, fields, rest)."""
        deframer = framing.Deframer()
        messages = [link.decode(body) for body in deframer.feed(self.board.line)]
        self.board.line = b""
        assert deframer.spoilt == 0
        return messages

    def feed(self, kind, *fields, rest=b""):
        self.mote.feed(framing.encode(link.encode(kind, *fields, rest=rest)))

    def send(self, kind, token, *fields, rest=b"", secret=SECRET):
        self.feed(kind, secret, token, *fields, rest=rest)

    def greet(self, session=7, version=link.VERSION, magic=link.MAGIC, secret=SECRET):
        self.read_messages()
        self.feed(link.HELLO, magic, version, session, rest=secret)
        return self.read_messages()

    def command(self, kind, *fields, rest=b""):
        """Send a command; return (messages before the answer, is_right, number, next wake, time of the mote, text)."""
        self.token += 1
        self.send(kind, self.token, *fields, rest=rest)
        *before, (last, (token, *answer), text) = self.read_messages()
        assert (last, token) == (link.ANSWER, self.token)
        return (before, *answer, text.decode())

    def configure(self, address=4, protocol=FLOODING, **options):
        configuration = {"address": address, **protocol, "key": draws.make_key(1, address), **options}
        return self.command(link.CONFIGURE, rest=json.dumps(configuration).encode())

    def set_time(self, time_us, clock=link.RUNNING):
        return self.command(link.SET_TIME, time_us, clock)

    def publish(self, text):
        return self.command(link.PUBLISH, rest=link.encode_attribute_list(parse(text)))

    def subscribe(self, text, seconds=-1.0, match_all=False):
        return self.command(link.SUBSCRIBE, seconds, match_all, rest=link.encode_attribute_list(parse(text)))

    def step_to(self, time_us):
        """Let time pass until ``time_us``, and step the mote whenever it is due, as a board does."""
        wait_us = self.mote.step()
        while wait_us is not None and self.board.time_us + wait_us <= time_us:
            self.board.time_us += max(1, wait_us)
            wait_us = self.mote.step()
        self.board.time_us = time_us


def rows(messages):
    """Return (event's name, row) of each event among the messages."""
    event_rows = [decode_row(fields, rest) for kind, fields, rest in messages if kind == link.EVENT]
    return [(NAMES[row[1]], row) for row in event_rows]


def names(messages):
    return [name for name, _ in rows(messages)]


def frames(messages):
    return [(fields[0], rest) for kind, fields, rest in messages if kind == link.SEND]


@pytest.fixture
def bench(program):
    bench = Bench(program)
    bench.greet()
    return bench


# Greeting


def test_a_mote_announces_itself_when_it_starts(program):
    board = Board()
    board.boot_count = 3
    assert Bench(program, board).read_messages() == [(link.READY, (b"WB", link.VERSION, 0, 3, 0), b"none")]


def test_a_greeting_is_answered_with_the_hosts_session(program):
    assert Bench(program).greet(99) == [(link.READY, (b"WB", link.VERSION, 99, 0, 0), b"none")]


@pytest.mark.parametrize("wrong", [{"version": link.VERSION + 1}, {"version": 3}, {"version": 0}, {"magic": b"XY"}])
def test_a_host_of_another_version_is_refused_and_gets_no_answers(program, wrong):
    bench = Bench(program)
    assert bench.greet(99, **wrong) == [(link.REFUSED, (b"WB", link.VERSION, 99, link.OTHER_VERSION), b"")]
    bench.send(link.PING, 1)
    assert bench.read_messages() == []


def test_commands_before_a_greeting_are_ignored(program):
    bench = Bench(program)
    bench.read_messages()
    bench.send(link.PING, 1)
    bench.send(link.CONFIGURE, 2, rest=b"{}")
    assert bench.read_messages() == []


def test_a_second_host_is_refused_and_the_first_is_notified(bench):
    for count in (1, 2):
        refused, contested = bench.greet(8, secret=OTHER_SECRET)
        assert refused == (link.REFUSED, (b"WB", link.VERSION, 8, link.BUSY), b"")
        assert_contested(contested, count)
    assert bench.command(link.PING)[1] == 1


def assert_contested(message, count):
    [(name, row)] = rows([message])
    assert (name, row[7], row[8]) == (
        "contested",
        count,
        "another host greeted or commanded this mote, and was refused",
    )


def test_a_greeting_with_the_hosts_session_but_another_secret_is_refused(bench):
    """Every listener on the line can read the session in the mote's messages."""
    assert [kind for kind, *_ in bench.greet(7, secret=OTHER_SECRET)] == [link.REFUSED, link.EVENT]
    assert bench.command(link.PING)[1] == 1


COMMANDS = {
    "goodbye": (link.GOODBYE, (), b""),
    "configure": (link.CONFIGURE, (), json.dumps({"address": 9, **FLOODING, "key": 1}).encode()),
    "subscribe": (link.SUBSCRIBE, (-1.0, 0), link.encode_attribute_list(parse("TEMP GE 25"))),
    "unsubscribe": (link.UNSUBSCRIBE, (0,), b""),
    "publish": (link.PUBLISH, (), link.encode_attribute_list(parse("TEMP IS 26"))),
    "link quality": (link.LINK_QUALITY, (2, 0.0, 0.0), b""),
    "set time": (link.SET_TIME, (10**9, link.HELD), b""),
    "wake": (link.WAKE, (), b""),
    "heard": (link.HEARD, (2, 1), flooding.encode(flooding.Flood(9, 3, 5, parse("TEMP IS 26")))),
    "ping": (link.PING, (), b""),
    "reset": (link.RESET, (), b""),
    "outcome": (link.OUTCOME, (2, 1), b"frame"),
}


def test_the_table_has_every_command():
    assert sorted(kind for kind, _, _ in COMMANDS.values()) == list(range(link.HELLO + 1, link.OUTCOME + 1))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_of_another_host_is_refused_and_changes_nothing(bench, name):
    kind, fields, rest = COMMANDS[name]
    bench.configure()
    number = bench.subscribe("TEMP GE 25")[2]
    for token in (0, 1):
        bench.send(kind, token, *fields, rest=rest, secret=OTHER_SECRET)
        refused, contested = bench.read_messages()
        assert refused == (link.REFUSED, (b"WB", link.VERSION, 0, link.NO_SECRET), b"")
        assert_contested(contested, 1 + token)
    assert bench.board.resets == 0
    assert bench.command(link.PING)[1:5] == (1, 1234, NOBODY, 0)
    assert list(bench.mote.subscriptions) == [number] and bench.mote.node.address == 4
    assert names(bench.publish("TEMP IS 26")[0]) == ["published", "originated", "held", "delivered"]


def test_commands_of_other_hosts_do_not_extend_the_hold_of_a_silent_host(program, bench):
    bench.board.time_us += program.BUSY_US
    bench.send(link.PING, 1, secret=OTHER_SECRET)
    assert bench.greet(8, secret=OTHER_SECRET)[0][0] == link.READY
    bench.send(link.PING, 1)
    assert bench.read_messages()[0][0] == link.REFUSED


def test_many_commands_of_other_hosts_are_reported_in_one_event(bench):
    bench.mote.feed(framing.encode(link.encode(link.PING, OTHER_SECRET, 1)) * 50)
    messages = bench.read_messages()
    assert [kind for kind, *_ in messages] == [link.REFUSED] * 50 + [link.EVENT]
    assert_contested(messages[-1], 50)


@pytest.mark.parametrize("secret", [b"", SECRET[:-1], SECRET + b"x"])
def test_a_greeting_without_a_whole_secret_is_noise(program, secret):
    bench = Bench(program)
    assert names(bench.greet(secret=secret)) == ["noise"]
    bench.send(link.PING, 1)
    assert bench.read_messages() == []


def test_the_same_host_may_greet_again(bench):
    assert [kind for kind, *_ in bench.greet(7)] == [link.READY]


def test_a_host_that_is_silent_for_long_loses_the_mote(program, bench):
    bench.board.time_us += program.BUSY_US - 1
    assert bench.command(link.PING)[1] == 1
    bench.board.time_us += program.BUSY_US - 1
    assert bench.greet(8, secret=OTHER_SECRET)[0][0] == link.REFUSED
    bench.board.time_us += 1
    assert bench.greet(8, secret=OTHER_SECRET)[0][0] == link.READY


def test_a_host_that_sends_goodbye_leaves_the_mote_to_the_next(bench):
    assert bench.command(link.GOODBYE)[1] == 1
    bench.send(link.PING, 5)
    assert bench.read_messages() == []
    assert bench.greet(8, secret=OTHER_SECRET)[0][0] == link.READY


# Commands


def test_a_ping_returns_the_heap_and_the_time(bench):
    bench.board.time_us = 77
    assert bench.command(link.PING) == ([], 1, 1234, NOBODY, 77, "")


def test_a_command_without_a_token_gets_no_answer(bench):
    bench.send(link.PING, 0)
    assert bench.read_messages() == []


def test_a_reset_is_answered_before_it_happens(bench):
    assert bench.command(link.RESET)[1] == 1
    assert bench.board.resets == 1


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (link.PUBLISH, ()),
        (link.WAKE, ()),
        (link.SUBSCRIBE, (-1.0, 0)),
        (link.UNSUBSCRIBE, (0,)),
        (link.HEARD, (2, 1)),
        (link.LINK_QUALITY, (2, 1.0, 1.0)),
        (link.OUTCOME, (2, 1)),
    ],
)
def test_a_mote_without_a_configuration_refuses_commands_in_a_sentence(bench, kind, fields):
    before, is_right, _, _, _, text = bench.command(kind, *fields, rest=b"\x00")
    assert (before, is_right) == ([], 0)
    assert text == "the mote is not configured; it needs a protocol and an address first"


def test_events_and_frames_come_before_the_answer(bench):
    bench.configure()
    messages, is_right, number, wake, time_us, text = bench.publish("TEMP IS 26.5")
    assert (is_right, number, wake, time_us, text) == (1, 0, NOBODY, 0, "")
    assert names(messages) == ["published", "originated", "held"]
    [(destination, frame)] = frames(messages)
    assert destination == NOBODY
    assert flooding.decode(frame)[:2] == (4, 0)


def test_a_frame_that_is_heard_is_delivered_and_forwarded(bench):
    bench.configure()
    messages, _, number, *_ = bench.subscribe("TEMP GE 25", 60.0)
    [(name, row)] = rows(messages)
    assert (name, row[5], row[7], row[8]) == ("subscribed", number, 60 * SECOND, parse("TEMP GE 25"))
    heard = flooding.encode(flooding.Flood(9, 3, 5, parse("TEMP IS 26")))
    messages, is_right, *_ = bench.command(link.HEARD, 2, 1, rest=heard)
    assert is_right == 1
    assert "delivered" in names(messages)
    delivered = rows(messages)[names(messages).index("delivered")][1]
    assert delivered[2:9] == (2, "flood", 9, 3, 0, number, parse("TEMP IS 26"))
    messages, *_ = bench.command(link.HEARD, 3, 1, rest=heard)
    assert names(messages) == ["dropped"]


def test_events_too_long_for_the_link_are_reported_and_the_publication_is_sent(bench):
    bench.configure()
    bench.subscribe("TEMP GE 25")
    long = make_long_reading(1990)
    messages, is_right, number, *_ = bench.command(link.PUBLISH, rest=link.encode_attribute_list(long))
    assert (is_right, number) == (1, 0)
    # Neither the row of the publication nor the row of its delivery fits into a frame of the link; the frame does.
    assert names(messages) == ["told", "originated", "held", "told"]
    assert all("is too long for a frame" in row[8] for name, row in rows(messages) if name == "told")
    [(_, frame)] = frames(messages)
    assert flooding.decode(frame)[3] == long


def test_a_frame_that_does_not_fit_is_reported_and_the_next_frame_is_sent(bench):
    bench.configure()
    bench.mote.node.outbox = [(None, bytes(2044)), (None, b"next")]
    messages, is_right, *_ = bench.command(link.WAKE)
    assert (is_right, names(messages), frames(messages)) == (1, ["told"], [(NOBODY, b"next")])


def make_long_reading(size_B):
    return with_payload(parse("TEMP IS 26"), bytes(size_B))


def test_reported_samples_are_not_stored(bench):
    bench.configure()
    number = bench.subscribe("TEMP GE 25")[2]
    for sequence in range(5):
        heard = flooding.encode(flooding.Flood(9, sequence, 5, parse("TEMP IS 26")))
        assert "delivered" in names(bench.command(link.HEARD, 2, 1, rest=heard)[0])
    assert bench.mote.subscriptions[number].take() == []


def test_a_subscription_ends_once(bench):
    bench.configure()
    number = bench.subscribe("TEMP GE 25")[2]
    messages, is_right, *_ = bench.command(link.UNSUBSCRIBE, number)
    assert is_right == 1 and names(messages)[0] == "unsubscribed"
    # The contract allows a second end.
    messages, is_right, *_ = bench.command(link.UNSUBSCRIBE, number)
    assert (messages, is_right) == ([], 1)
    assert bench.command(link.UNSUBSCRIBE, number + 1)[5] == f"subscription {number + 1} does not exist at node 4"


def test_a_subscription_that_has_expired_is_forgotten_when_the_next_is_made(bench):
    bench.configure()
    number = bench.subscribe("TEMP GE 25", 1.0)[2]
    lasting = bench.subscribe("TEMP GE 26")[2]
    assert set(bench.mote.subscriptions) == {number, lasting}
    bench.board.time_us = SECOND
    last = bench.subscribe("TEMP GE 27", 1.0)[2]
    assert set(bench.mote.subscriptions) == {lasting, last}
    assert bench.command(link.UNSUBSCRIBE, number)[1] == 1


def test_a_neighbor_is_put_on_the_black_list(bench):
    bench.configure(protocol=DIFFUSION)
    messages, is_right, *_ = bench.command(link.LINK_QUALITY, 2, 0.0, 0.0)
    [(name, row)] = rows(messages)
    assert is_right == 1
    assert (name, row[2], row[7]) == ("blacklisted", 2, 1)


class ReportingNode(contract.Node):
    """A node that logs the outcomes of its unicast frames, and then sends another frame."""

    def receive(self, frame, previous_hop, now, broadcast=True):
        """Ignore the frame."""

    def sent(self, destination, frame, ok, now):
        self.events.append(contract.Held(destination, "outcome", NOBODY, len(frame), int(ok), frame.decode()))
        self.outbox.append((None, b"again"))


REPORTING = {"node": f"{__name__}:ReportingNode", "settings": {}}


def outcomes_in(messages):
    return [(row[2], row[8], row[7]) for name, row in rows(messages) if name == "held"]


def test_outcome_of_a_unicast_reaches_the_node_and_its_reaction_is_sent(bench):
    bench.configure(protocol=REPORTING)
    for destination, acknowledged in ((2, 1), (2, 0), (NOBODY, 0)):
        before, is_right, *_ = bench.command(link.OUTCOME, destination, acknowledged, rest=b"frame")
        assert is_right == 1
        assert outcomes_in(before) == [(destination, "frame", acknowledged)]
        assert frames(before) == [(NOBODY, b"again")]


def test_settings_and_boots_arrive_at_the_node(program):
    board = Board()
    board.boot_count = 2
    bench = Bench(program, board)
    bench.greet()
    answer = bench.configure(protocol=protocol_on_a_mote(wb.Flooding(ttl=9)))
    assert answer[1:3] == (1, 2)
    messages, _, number, *_ = bench.publish("TEMP IS 20")
    assert number == 2 * contract.NUMBERS_PER_BOOT
    assert flooding.decode(frames(messages)[0][1])[2] == 9


def test_keys_and_filters_of_the_scenario_are_known_to_the_node(bench):
    running_mean = {"name": "running_mean", "key": 200, "match": "LOUDNESS EQ_ANY", "at": None, "messages": "data"}
    running_mean["settings"] = {"window": 5}
    protocol = {**DIFFUSION, "settings": {**DIFFUSION["settings"], "filters": [running_mean]}}
    answer = bench.configure(protocol=protocol, keys=[[120, "LOUDNESS", "int16", "dB", 10, None, None]])
    assert answer[1] == 1, answer[5]


# Impossible commands are refused in a sentence


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            {"node": "workbench.protocols.nowhere:Nothing"},
            "this mote's program cannot load workbench.protocols.nowhere",
        ),
        ({"node": "workbench.protocols.flooding.node:Nothing"}, "the mote failed: AttributeError"),
        ({"settings": {"max_events": 9}}, "the mote failed: AttributeError"),
        ({"sensor": {"key": 51, "kind": "moon", "every_ms": 10}}, "a sensor's kind is 'moon'; it must be"),
        ({"sensor": {"key": 51, "kind": "constant", "value": 1, "every_ms": 0}}, "a sensor's every_ms is 0"),
        (
            {"sensor": {"key": 51, "kind": "log", "values": [], "every_ms": 9}},
            "a sensor of kind log has no values; it needs",
        ),
        ({"sensor": {"key": 51, "kind": "ramp", "start": 1, "step": 0, "stop": 5, "every_ms": 9}}, "a ramp from 1"),
        ({"sensor": {"key": 51, "kind": "ramp", "start": 1, "step": -1, "stop": 5, "every_ms": 9}}, "a ramp from 1"),
        ({"sensor": {"key": 51, "kind": "constant"}}, "the mote failed: KeyError('every_ms')"),
    ],
)
def test_an_impossible_configuration_is_refused_in_a_sentence_and_changes_nothing(bench, changed, sentence):
    bench.configure(address=4)
    before, is_right, _, _, _, text = bench.configure(address=5, **{"protocol": FLOODING, **split(changed)})
    assert (before, is_right) == ([], 0)
    assert text.startswith(sentence)
    messages, is_right, *_ = bench.publish("TEMP IS 20")
    assert is_right == 1
    assert flooding.decode(frames(messages)[0][1])[0] == 4


def split(changed):
    """Return the arguments of a configuration: the changes go into the protocol, except a sensor."""
    sensor = {name: value for name, value in changed.items() if name == "sensor"}
    protocol = {**FLOODING, **{name: value for name, value in changed.items() if name != "sensor"}}
    return {"protocol": protocol, **sensor}


def test_a_configuration_that_is_not_json_is_refused_in_a_sentence(bench):
    for rest in (b"", b"{", b"[]", b"3", b"\xff"):
        assert bench.command(link.CONFIGURE, rest=rest)[5].startswith("the mote failed: ")


@pytest.mark.parametrize("text", ["TEMP GE 25", "TEMP IS 25, HUMIDITY EQ 3"])
def test_an_invalid_publication_is_refused_in_a_sentence(bench, text):
    bench.configure()
    messages, is_right, _, _, _, problem = bench.publish(text)
    assert (messages, is_right) == ([], 0)
    assert problem


def test_a_subscription_to_everything_needs_match_all(bench):
    bench.configure()
    assert bench.subscribe("APP IS Temperature")[1] == 0
    assert bench.subscribe("APP IS Temperature", match_all=True)[1] == 1


class BrokenNode(contract.Node):
    """A node with a defect, as in a user's own protocol."""

    def start(self, now, boot=0):
        self.next_wake = now + 10

    def receive(self, frame, previous_hop, now, broadcast=True):
        raise ValueError("cannot hear")

    def wake(self, now):
        raise ValueError("cannot wake " + "é" * 2000)

    def subscribe(self, attributes, now, expires_s=None, match_all=False):
        return Subscription(self, attributes, now)


BROKEN = {"node": f"{__name__}:BrokenNode", "settings": {}}


def test_a_failing_node_is_reported_and_the_mote_continues(program, bench):
    bench.configure(protocol=BROKEN)
    assert bench.command(link.HEARD, 2, 1, rest=b"x")[5] == "the mote failed: ValueError('cannot hear')"
    bench.send(link.HEARD, 0, 2, 1, rest=b"x")  # A command without an answer: the error is reported as an event.
    [(name, row)] = rows(bench.read_messages())
    assert (name, row[8]) == ("told", "the mote failed: ValueError('cannot hear')")
    bench.board.time_us = 10
    assert bench.mote.step() == program.FAILED_US
    [(name, row)] = rows(bench.read_messages())
    assert name == "told" and row[8].startswith("the mote failed: ValueError('cannot wake éé")
    assert bench.configure()[1] == 1
    assert bench.publish("TEMP IS 20")[1] == 1


# The clock


def test_the_clock_continues_from_the_time_it_was_set_to(bench):
    bench.board.time_us = 500
    assert bench.set_time(10**12)[4] == 10**12
    bench.board.time_us = 600
    assert bench.command(link.PING)[4] == 10**12 + 100


def test_a_held_clock_stands_still_and_fires_no_timer(bench):
    bench.set_time(1000, link.HELD)
    bench.configure(protocol=DIFFUSION, sensor={"key": 51, "kind": "constant", "value": 1, "every_ms": 1})
    wake_us = bench.subscribe("TEMP GE 25")[3]
    bench.board.time_us += 10**9
    assert bench.mote.step() is None
    assert bench.read_messages() == []
    assert bench.command(link.PING)[4] == 1000
    assert wake_us > 1000
    bench.set_time(wake_us, link.HELD)
    _, is_right, _, next_wake, time_us, _ = bench.command(link.WAKE)
    assert (is_right, time_us) == (1, wake_us)
    assert next_wake > wake_us


def test_a_host_that_holds_the_clock_gets_no_events_of_its_own_commands(bench):
    bench.set_time(0, link.HELD)
    bench.configure()
    assert names(bench.subscribe("TEMP GE 25")[0]) == []
    assert names(bench.publish("TEMP IS 20")[0]) == ["originated", "held"]


def test_a_held_clock_that_is_released_continues(bench):
    bench.configure()
    bench.set_time(50, link.HELD)
    bench.board.time_us = 10_000
    bench.set_time(60)
    bench.board.time_us += 5
    assert bench.command(link.PING)[4] == 65


def test_timers_of_a_running_clock_fire_at_their_time(bench):
    bench.configure(protocol=protocol_on_a_mote(wb.Diffusion(refresh_s=2, max_repeats=0)))
    bench.subscribe("TEMP GE 25")
    bench.step_to(5 * SECOND)
    sent = [fields for kind, fields, _ in bench.read_messages() if kind == link.SEND]
    assert len(sent) == 2  # at 2 and 4 s; the first interest was sent before the answer


# Sensors


@pytest.mark.parametrize(
    ("settings", "values"),
    [
        ({"kind": "constant", "value": 2650}, [2650] * 7),
        ({"kind": "ramp", "start": 10, "step": 5, "stop": 22}, [10, 15, 20, 10, 15, 20, 10]),
        ({"kind": "ramp", "start": 3, "step": -2, "stop": -1}, [3, 1, -1, 3, 1, -1, 3]),
        ({"kind": "log", "values": [7, -1, 9]}, [7, -1, 9, 7, -1, 9, 7]),
        ({"kind": "board"}, [0, 100, 200, 300, 400, 500, 600]),
    ],
)
def test_a_sensor_publishes_at_even_times(bench, settings, values):
    bench.configure(sensor={"key": 51, "every_ms": 100, **settings})
    bench.step_to(750_000)
    published = [row for name, row in rows(bench.read_messages()) if name == "published"]
    assert [row[8][0].value for row in published] == values
    assert [row[0] for row in published] == [100_000 * i for i in range(1, 8)]
    assert [row[5] for row in published] == list(range(7))


def test_missed_readings_are_skipped(bench):
    bench.configure(sensor={"key": 51, "every_ms": 100, "kind": "constant", "value": 1})
    bench.board.time_us = 1_050_000
    assert bench.mote.step() == 100_000
    assert names(bench.read_messages()).count("published") == 1


def test_a_reading_that_cannot_be_encoded_is_reported_and_the_next_is_published(program, bench):
    bench.configure(sensor={"key": 51, "every_ms": 100, "kind": "log", "values": [40_000, 3]})
    bench.board.time_us = 100_000
    assert bench.mote.step() == program.FAILED_US
    [(name, _)] = rows(bench.read_messages())
    assert name == "told"
    bench.board.time_us = 200_000
    bench.mote.step()
    assert names(bench.read_messages())[0] == "published"


# Garbage


def test_noise_is_reported_with_its_count(bench):
    bench.mote.feed(b"\x00garbage\x00more\x00")
    bench.mote.feed(framing.encode(b"\xfe no message"))
    noise_rows = rows(bench.read_messages())
    assert [(name, row[7]) for name, row in noise_rows] == [("noise", 2), ("noise", 3)]
    assert bench.command(link.PING)[1] == 1


def test_messages_that_only_a_mote_sends_are_ignored_from_a_host(bench):
    bench.feed(link.ANSWER, 1, 1, 0, 0, 0)
    bench.feed(link.SEND, NOBODY, rest=b"frame")
    bench.feed(link.READY, b"WB", 1, 7, 0, 0)
    assert bench.read_messages() == []


any_message = st.builds(
    lambda kind, secret, rest: bytes((kind,)) + secret + rest,
    st.integers(1, 40),
    st.sampled_from([SECRET, OTHER_SECRET, b""]),
    st.binary(max_size=40),
)


@given(st.lists(st.one_of(any_message, st.binary(max_size=40)), max_size=8))
def test_a_mote_still_answers_after_any_message(program, bodies):
    bench = Bench(program)
    bench.greet()
    bench.configure(protocol=DIFFUSION)
    for body in bodies:
        if body[:1] in (bytes((link.GOODBYE,)), bytes((link.HELLO,))):
            continue
        bench.mote.feed(framing.encode(body))
        bench.mote.step()
    bench.read_messages()
    assert bench.command(link.PING)[1] == 1


# A radio of its own


class Radio:
    is_serial = False
    next_us = None
    foreign = 0

    def __init__(self):
        self.sent, self.heard, self.is_closed = [], [], False

    def send(self, destination, frame, now):
        self.sent.append((destination, frame))

    def poll(self, now):
        heard, self.heard = self.heard, []
        return heard

    def close(self):
        self.is_closed = True


class BoardWithRadio(Board):
    HAS_RADIO = True

    def make_radio(self, mote, address, settings):
        self.radio, self.settings = Radio(), settings
        return self.radio


def test_a_radio_of_the_board_is_used_and_its_frames_are_reported(program):
    bench = Bench(program, BoardWithRadio())
    assert bench.greet()[0][1][4] == 1
    bench.configure(radio={"port": 3})
    assert bench.board.settings == {"port": 3}
    messages, *_ = bench.publish("TEMP IS 26")
    assert names(messages) == ["published", "originated", "held", "sent"]
    assert frames(messages) == []
    [(destination, frame)] = bench.board.radio.sent
    assert destination is None
    assert rows(messages)[-1][1][3:7] == ("flood", 4, 0, len(frame))
    bench.board.radio.heard = [(flooding.encode(flooding.Flood(9, 1, 5, ())), 2, True), (b"\xff", 3, True)]
    bench.mote.step()
    assert names(bench.read_messages())[:2] == ["received", "held"]


class AcknowledgedRadio(Radio):
    def __init__(self):
        super().__init__()
        self.reports = []

    def outcomes(self):
        reports, self.reports = self.reports, []
        return reports


class BoardWithAcknowledgements(Board):
    HAS_RADIO = True

    def make_radio(self, mote, address, settings):
        self.radio = AcknowledgedRadio()
        return self.radio


def test_outcomes_of_a_radio_of_the_board_reach_the_node_unless_the_clock_is_held(program):
    bench = Bench(program, BoardWithAcknowledgements())
    bench.greet()
    bench.configure(protocol=REPORTING)
    bench.board.radio.reports = [(2, b"one", True), (3, b"two", False)]
    bench.mote.step()
    assert outcomes_in(bench.read_messages()) == [(2, "one", 1), (3, "two", 0)]
    assert bench.board.radio.sent == [(None, b"again")] * 2
    bench.set_time(5, link.HELD)
    bench.board.radio.reports = [(2, b"late", True)]
    bench.mote.step()
    bench.set_time(6)
    bench.mote.step()
    assert outcomes_in(bench.read_messages()) == []


def test_frames_of_another_run_are_reported_with_their_count(program):
    bench = Bench(program, BoardWithRadio())
    bench.greet()
    bench.configure()
    for count in (2, 2, 5):
        bench.board.radio.foreign = count
        bench.mote.step()
    foreign_rows = rows(bench.read_messages())
    assert [(name, row[7]) for name, row in foreign_rows] == [("foreign", 2), ("foreign", 5)]
    bench.configure()  # with a new radio, whose count is 0
    bench.board.radio.foreign = 5
    bench.mote.step()
    assert names(bench.read_messages()) == ["foreign"]


def test_frames_that_a_radio_hears_while_the_clock_is_held_are_discarded(program):
    bench = Bench(program, BoardWithRadio())
    bench.greet()
    bench.configure()
    bench.set_time(0, link.HELD)
    bench.board.radio.heard = [(flooding.encode(flooding.Flood(9, 1, 5, ())), 2, True)]
    assert bench.mote.step() is None
    assert bench.board.radio.heard == []
    bench.set_time(10)
    bench.mote.step()
    assert bench.read_messages() == []


def test_a_radio_is_closed_before_the_next_is_made(program):
    bench = Bench(program, BoardWithRadio())
    bench.greet()
    bench.configure()
    first = bench.board.radio
    bench.configure()
    assert first.is_closed and not bench.board.radio.is_closed
    bench.configure(protocol={**FLOODING, "settings": {}})
    assert not bench.board.radio.is_closed


# Boards

CALLED = {"boots": 0, "now_us": 0, "write": 1, "memory": 0, "reset": 0, "make_radio": 3, "run": 1}


def functions_of(path):
    """Return {function: number of its arguments} of a file, with the functions that it imports from physical.py."""
    tree = ast.parse(path.read_text())
    functions = {node.name: len(node.args.args) for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "physical":
            shared = functions_of(HARDWARE / "mote" / "physical.py")
            functions |= {alias.name: shared[alias.name] for alias in node.names if alias.name in shared}
    return functions


@pytest.mark.parametrize("board", boards())
def test_every_board_has_the_functions_that_the_program_calls(board):
    # Read and not imported, because most import modules that exist only on their board.
    path = HARDWARE / "mote" / "boards" / f"{board}.py"
    functions = functions_of(path)
    assert {name: functions[name] for name in CALLED if name in functions} == CALLED
    assert functions.get("read_sensor", 1) == 1
    named = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Assign)]
    values = {node.targets[0].id: node.value for node in named if isinstance(node.targets[0], ast.Name)}
    assert ast.literal_eval(values["NAME"]) == board
    assert isinstance(values["HAS_RADIO"], ast.BoolOp) or isinstance(ast.literal_eval(values["HAS_RADIO"]), bool)


@pytest.mark.parametrize("name", sorted(path.stem for path in (HARDWARE / "mote").glob("radio_*.py")))
def test_every_radio_has_the_methods_that_the_program_calls(name):
    classes = {}
    for file in ("datagrams", name):
        for node in ast.parse((HARDWARE / "mote" / f"{file}.py").read_text()).body:
            if isinstance(node, ast.ClassDef):
                methods = {
                    each.name: len(each.args.args) - 1 for each in node.body if isinstance(each, ast.FunctionDef)
                }
                text = ast.unparse(node)
                for base in node.bases:
                    methods, text = {**classes[base.id][0], **methods}, classes[base.id][1] + text
                classes[node.name] = methods, text
                radio = methods, text
    methods, text = radio
    assert {call: methods.get(call) for call in ("send", "poll", "close")} == {"send": 3, "poll": 1, "close": 0}
    assert "next_us" in text and "is_serial = " in text
