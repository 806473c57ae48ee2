"""TinyDiffusion in C is TinyDiffusion in Python: every answer, frame, event, wake-up and drop, whatever happens."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.c_nodes import make_node, needs_compiler
from tests.differential import Pair
from tests.families import examples
from workbench.attributes.text import parse
from workbench.draws import Stream
from workbench.protocols.diffusion import Diffusion
from workbench.protocols.diffusion.events import Filtered
from workbench.protocols.diffusion.filters import Filter
from workbench.protocols.diffusion.wire import Data, Interest, encode_data, encode_interest

pytestmark = needs_compiler

ADDRESS = 5
LIVES = 25
NEIGHBORS = st.sampled_from([1, 2, 3, 4, 6])
OTHERS = st.sampled_from([7, 8, 9, 10, 11, 11, ADDRESS, 0, 65535])

# Sizes of lists are known to the compiler, so there are only so many of them.
SIZES = {
    "as in the definition file": {},
    "strict": {"profile": "strict"},
    "small": {
        "max_interests": 2,
        "max_gradients": 2,
        "max_reinforcements": 2,
        "max_attributes": 3,
        "max_data": 3,
        "max_sinks": 2,
        "max_next_hops": 2,
        "max_subscriptions": 3,
        "max_black": 2,
        "max_seen_interests": 3,
    },
    "three of each, strict": {
        "max_interests": 3,
        "max_gradients": 3,
        "max_reinforcements": 3,
        "max_data": 4,
        "max_sinks": 1,
        "max_next_hops": 3,
        "max_subscriptions": 5,
        "max_seen_interests": 5,
        "profile": "strict",
    },
}
SIZES["one of each"] = dict.fromkeys(SIZES["small"], 1) | {"max_attributes": 9}

OTHER_SETTINGS = {
    "ttl": st.sampled_from([1, 2, 50, 255]),
    "refresh_s": st.sampled_from([0, 0.2, 2.0]),
    "max_repeats": st.sampled_from([0, 1, 255]),
    "gradient_lifetime_s": st.sampled_from([1.0, 2.5, 65535.0]),
    "tick_s": st.sampled_from([0.001, 0.3]),
    "sample_lifetime_s": st.sampled_from([0.4, 1.0]),
    "reinforce_after": st.sampled_from([0, 2]),
    "exploratory_gradients": st.sampled_from([2, 3]),
    "blacklist_loss": st.sampled_from([0.0, 0.5, 1.0]),
    "matching": st.sampled_from(["strict", "two-way", "two-way"]),
    "merge_interests": st.just(True),
}
other_settings = st.lists(st.sampled_from(sorted(OTHER_SETTINGS)), max_size=4, unique=True).flatmap(
    lambda names: st.fixed_dictionaries({name: OTHER_SETTINGS[name] for name in names})
)

# Interests that overlap, that lie within each other, and that do neither; some too long for a strict frame.
WANTED = [
    "TEMP GE 25",
    "TEMP GE 25, INTERVAL IS 0.5",
    "TEMP GE 25, INTERVAL IS 1",
    "TEMP GE 20, TEMP LE 40",
    "TEMP LE 40, TEMP GE 20",
    "TEMP GE 25, X GE 3",
    "TEMP EQ 26",
    "X EQ_ANY",
    'PAYLOAD EQ "ab"',
    'PAYLOAD NE "ab", TEMP EQ_ANY',
    "INTERVAL LE 5, TEMP GE 25",
    "TEMP GE 25, X NE 5, X NE 6, X NE 7, X NE 8",
    "TEMP IS 25",
    "X NE 1, X NE 2, X NE 3, X NE 4, X NE 5, X NE 6, X NE 7, X NE 8, X NE 9, X NE 10, X NE 11",
    "",
    "TEMP GE 25, X IS 4",
    "TEMP GE 25, X IS 4, X IS 9, INTERVAL IS 0.5",
    "TEMP EQ_ANY, X IS 5",
]
READINGS = [
    "TEMP IS 26",
    "TEMP IS 26",
    "TEMP IS 30, X IS 4",
    "X IS 1",
    "TEMP IS 26, TEMP IS 10",
    'PAYLOAD IS "ab"',
    'TEMP IS 26, PAYLOAD IS "ab"',
    "TEMP IS 3, INTERVAL IS 2",
    "TEMP IS 26, X IS 1, X IS 2, X IS 3, X IS 4, X IS 5",
    # These are data only if the node matches two ways, and the last two are not even then.
    "TEMP IS 26, X EQ 4",
    "X GE 5, TEMP IS 30",
    "TEMP IS 27, X NE 4, X LE 9",
    "TEMP IS 26, INTERVAL LE 5",
    "X EQ 4",
]
# Interests and readings of a world, for nodes that do not match two ways and for nodes that do.
WORLD = WANTED[:7], READINGS[:6]
TWO_WAY_WORLD = [*WANTED[:4], *WANTED[-3:]], [*READINGS[1:4], *READINGS[-5:-1]]
wanted = st.sampled_from(WANTED).map(parse)
readings = st.sampled_from(READINGS).map(parse)
SEQUENCES = st.sampled_from([0, 1, 1, 2, 3, 2**24, 2**32 - 1])
TTLS = st.sampled_from([0, 1, 2, 40, 50, 255])


def encode_any_data(message):
    """Return the frame of data, which may have constraints."""
    return encode_data(message, matching="two-way")


def interests(hop):
    return st.builds(
        Interest,
        SEQUENCES,
        OTHERS,
        st.sampled_from([0, 0, 1, 2, 127, 128, 255]),
        st.just(hop),
        TTLS,
        st.sampled_from([0, 1, 2, 100, 100, 65535]),
        wanted,
    )


@st.composite
def data(draw, hop):
    several = draw(st.lists(readings, min_size=1, max_size=2))
    attributes = tuple(attribute for reading in several for attribute in reading)
    listed = tuple(draw(st.lists(OTHERS, max_size=4)))
    return Data(draw(SEQUENCES), draw(OTHERS), hop, draw(TTLS), draw(st.booleans()), listed, attributes[:12])


@st.composite
def heard(draw):
    """Draw ("receive", frame, previous hop, whether it was a broadcast); some frames are damaged, some are noise."""
    hop = draw(NEIGHBORS)
    message = draw(interests(hop) | interests(hop) | data(hop))
    encode = encode_any_data if isinstance(message, Data) else encode_interest
    try:
        frame = bytearray(encode(message))
    except ValueError:
        frame = bytearray(b"\1" * 99)
    damage = draw(st.integers(0, 15))
    if damage == 0:
        frame[draw(st.integers(0, len(frame) - 1))] ^= 1 << draw(st.integers(0, 7))
    elif damage == 1:
        frame = frame[: draw(st.integers(0, len(frame)))] + draw(st.binary(max_size=3))
    elif damage == 2:
        frame = draw(st.binary(max_size=80))
    elif damage == 3:
        hop = draw(NEIGHBORS)
    return "receive", bytes(frame), hop, draw(st.booleans())


@st.composite
def sent_frames(draw):
    """Draw ("sent_frame", destination, frame, False); the frame is one that the node might have sent or received."""
    if draw(st.booleans()):
        return "sent_frame", draw(NEIGHBORS), draw(heard())[1], False
    try:
        frame = encode_any_data(draw(data(ADDRESS)))
    except ValueError:
        frame = b""
    return "sent_frame", draw(NEIGHBORS), frame, False


steps = st.lists(
    st.one_of(
        heard(),
        heard(),
        heard(),
        st.tuples(st.just("publish"), readings | wanted, st.sampled_from([b"", b"", b"ab", bytes(45)])),
        st.tuples(st.just("subscribe"), wanted, st.sampled_from([None, None, 0.5, 3]), st.booleans()),
        st.tuples(st.just("unsubscribe"), st.integers(0, 99)),
        st.tuples(st.just("reinforce"), st.integers(0, 99), st.none() | wanted),
        st.tuples(st.just("sent"), st.integers(0, 15), st.booleans()),
        sent_frames(),
        st.tuples(st.just("advance"), st.sampled_from([0, 1, 1000, 500_000, 1_000_000, 3_000_000, 100_000_000])),
        st.tuples(
            st.just("link_quality"),
            NEIGHBORS,
            st.sampled_from([0.0, 0.3, 0.7, 0.9, 1.0]),
            st.sampled_from([0.1, 0.6, 1.0]),
        ),
    ),
    max_size=60,
)


@pytest.mark.parametrize("sizes", SIZES)
@settings(max_examples=examples(120))
@given(steps, other_settings, st.sampled_from([0, 1, 255, 256]), st.sampled_from([0, 0, 2**24 - 2]))
def test_node_in_c_does_what_the_node_in_python_does(sizes, steps, others, boot, messages):
    pair = Pair(Diffusion(**{**SIZES[sizes], **others}), ADDRESS, boot)
    # As after so many messages: from boot 255 on their numbers wrap here.
    pair.reference._messages = pair.other.memory.messages = messages
    pair.play(steps)


class World:
    """The steps of a node in a small network: interests in successive rounds, data, reinforcements, and other calls.

    Hypothesis seldom draws long sequences of steps that depend on each other; here a seed gives hundreds of steps.
    """

    def __init__(self, seed, texts=WORLD):
        self.random = random.Random(seed)
        self.wanted, self.readings = texts
        self.rounds, self.sequences, self.number = {}, {}, 10

    def step(self):
        kinds = (self._interest, self._interest, self._reinforcement, self._data, self._data, self._data, self._other)
        return self.random.choice(kinds)()

    def _received(self, message, encode, broadcast):
        return "receive", encode(message), message.previous_hop, broadcast

    def _interest(self):
        pick = self.random.choice
        sink, text = pick([7, 8, 9]), pick(self.wanted)
        round_ = self.rounds.get((sink, text), 0)
        if self.random.random() < 0.2:
            round_ = self.rounds[sink, text] = (round_ + pick([1, 1, 1, 100])) & 0xFF
        lasts_s = pick([0, 1, 5, 5, 100, 100, 100])
        ttl = pick([1, 50, 50, 50])
        number, late = WANTED.index(text), pick([0, 0, 0, 1])
        if pick(range(8)) == 0:  # of the node itself: a neighbor passes it on
            sink, number, round_, late = ADDRESS, pick(range(4)), 0, 0
        hop = pick([1, 2, 3, 4, 6])
        message = Interest(number, sink, (round_ - late) & 0xFF, hop, ttl, lasts_s, parse(text))
        return self._received(message, encode_interest, True)

    def _reinforcement(self):
        pick = self.random.choice
        self.number += pick([0, 1, 1, 1])
        sink, text, hop = pick([7, 8, 9]), pick(self.wanted), pick([1, 2, 3, 4, 6])
        message = Interest(self.number, sink, self.rounds.get((sink, text), 0), hop, pick([1, 50, 50]), 50, parse(text))
        return self._received(message, encode_interest, False)

    def _data(self):
        pick = self.random.choice
        source = pick([10, 11, 12, 13])
        sequence = self.sequences[source] = self.sequences.get(source, 0) + pick([0, 1, 1])
        hop, ttl = pick([1, 2, 3, 4, 6]), pick([1, 50, 50, 50])
        listed = tuple(self.random.sample([7, 8, 9, 10, ADDRESS, 77], pick([0, 0, 0, 1, 2, 3])))
        message = Data(sequence, source, hop, ttl, pick([False, True]), listed, parse(pick(self.readings)))
        return self._received(message, encode_any_data, False)

    def _other(self):
        pick = self.random.choice
        return pick(
            [
                ("publish", parse(pick(READINGS)), b""),
                ("publish", parse(pick(READINGS)), b""),
                ("subscribe", parse(pick(self.wanted)), pick([None, 2, 50])),
                ("subscribe", parse(pick(self.wanted)), pick([None, 2, 50])),
                ("unsubscribe", pick(range(99))),
                ("reinforce", pick(range(99)), pick([None, parse(pick(WANTED))])),
                ("advance", pick([1, 300_000, 700_000, 2_000_000, 40_000_000])),
                ("link_quality", pick([1, 2, 3, 4, 6]), pick([0.1, 1.0, 1.0]), 1.0),
                ("sent", pick(range(16)), pick([False, False, False, True])),
                ("sent", pick(range(16)), False),
            ]
        )


@pytest.mark.family
@pytest.mark.parametrize("sizes", SIZES)
def test_nodes_do_the_same_for_as_long_as_they_live(sizes):
    drop_reasons = set()
    for seed in range(LIVES):
        more = {"exploratory_gradients": 1 + seed % 3, "reinforce_after": 1 + seed % 2}
        more["matching"] = ("any", "two-way", "any", "strict")[seed % 4]
        more["merge_interests"] = seed % 5 in (1, 3)
        pair = Pair(Diffusion(**SIZES[sizes], **more), ADDRESS)
        world = World(seed, TWO_WAY_WORLD if seed % 4 == 1 else WORLD)
        pair.play(world.step() for _ in range(400))
        drop_reasons |= set(pair.reference.drops)
    # A world in which little happens would prove little.
    assert drop_reasons >= {"duplicate", "stale", "ttl", "no_interest", "no_gradient", "blacklisted", "expired"}


FILTERS = [
    ("suppress_unchanged", {"tolerance": 1.0, "heartbeat_s": 1.0}),
    ("suppress_unchanged", {"of": "X", "tolerance": 0.25}),
    ("running_mean", {"window": 3}),
    ("running_mean", {"of": "INTERVAL", "window": 2}),
    ("running_minimum", {"of": "X", "window": 2}),
    ("running_maximum", {"window": 5}),
    ("neighborhood_average", {"period_s": 1.0}),
    ("neighborhood_average", {"period_s": 0.8, "flush": True}),
    ("rate_limit", {"interval_s": 1.0}),
    ("threshold_alarm", {"high": 26.0, "low": 22.0}),
]


@st.composite
def filters(draw):
    several = draw(st.lists(st.sampled_from(FILTERS), min_size=1, max_size=3))
    matches = st.sampled_from(["", "TEMP EQ_ANY", "TEMP GE 21", 'PAYLOAD EQ "ab"', "INTERVAL EQ_ANY", "X EQ_ANY"])
    messages = st.sampled_from(["data", "data", "interest"])
    return tuple(
        Filter(name, 200 + k, draw(matches), messages=draw(messages), **more) for k, (name, more) in enumerate(several)
    )


@settings(max_examples=examples(100))
@given(filters(), st.integers(0, 10**6), steps, st.sampled_from(["any", "two-way"]))
def test_filters_in_c_answer_as_those_in_python(filters, seed, steps, matching):
    pair = Pair(Diffusion(filters=filters, matching=matching), ADDRESS)
    world = World(seed, TWO_WAY_WORLD if matching == "two-way" else WORLD)
    pair.play(world.step() for _ in range(100))
    pair.play(steps)


def test_filter_forgets_the_source_that_it_noted_first_where_there_is_no_room_for_another():
    limit = Filter("rate_limit", interval_s=100.0)
    node = make_node(Diffusion(filters=(limit,)), ADDRESS, Stream(1), more=(("MAX_FILTER_SOURCES", 2),))
    node.start(0)
    for sequence, source in enumerate([7, 8, 7, 9, 7, 9]):
        node.receive(encode_data(Data(sequence, source, 3, 50, False, (), parse("TEMP IS 26"))), 3, sequence)
    assert [event.detail for event in node.take_events() if isinstance(event, Filtered)] == ["drop", "drop"]


@given(steps)
def test_node_in_c_whose_driver_wants_counts_alone_counts_the_same(steps):
    pair = Pair(Diffusion(**SIZES["small"]))
    pair.reference.tells_all = pair.other.tells_all = False
    pair.play(steps)


def test_rounds_and_numbers_wrap_alike():
    pair = Pair(Diffusion(refresh_s=0.5, max_repeats=1), boot=255)
    pair.reference._messages = pair.other.memory.messages = 2**24 - 1
    for text in ("TEMP GE 25", "X EQ_ANY"):
        pair.subscribe(parse(text))
    for _ in range(3):
        pair.advance(100_000_000)
        pair.play([("publish", parse("TEMP IS 26"), b"")])
    assert {own.round for own in pair.reference.own_interests} == {600 & 0xFF}
    assert [own.sequence for own in pair.reference.own_interests] == [2**32 - 1, 0]


def test_counter_of_a_source_s_messages_counts_no_further_than_it_can():
    pair = Pair(Diffusion(reinforce_after=65535))
    pair.subscribe(parse("TEMP GE 25"))
    frame = encode_data(Data(1, 8, 3, 50, False, (), parse("TEMP IS 26")))
    pair.play([("receive", frame, 3, False)])
    for node_count in (65533, 65534, 70000):
        pair.reference.own_interests[0].data_gradients.list[0].messages = node_count
        pair.other.memory.own_interests[0].data_gradients.list[0].messages = min(node_count, 65535)
        sequence = node_count
        frame = encode_data(Data(sequence, 8, 3, 50, False, (), parse("TEMP IS 26")))
        pair.play([("receive", frame, 3, False)])
    assert pair.reference.own_interests[0].reinforcements == 1


def test_every_wrong_subscription_and_reading_is_refused_with_a_sentence():
    pair = Pair(Diffusion(profile="strict", max_interests=1, max_subscriptions=2, max_attributes=5))
    node = pair.other
    node.subscribe(parse("TEMP GE 25"), 0)
    for call, sentence in [
        (lambda: node.subscribe(parse("X IS 1"), 0), "constrains nothing"),
        (lambda: node.subscribe(parse("X GE 1"), 0), "max_interests=1"),
        (lambda: node.subscribe(parse("X NE 1, X NE 2, X NE 3, X NE 4, X NE 5, X NE 6"), 0), "max_attributes=5"),
        (lambda: node.publish(parse("X GE 1"), 0), "IS attributes"),
        (lambda: node.publish(parse('PAYLOAD IS "' + 17 * "a" + '"'), 0), "do not fit"),
        (lambda: [node.subscribe(parse("TEMP GE 25"), 0) for _ in range(2)], "MAX_SUBSCRIPTIONS"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            call()


def test_bytes_that_are_no_attributes_are_refused():
    node = Pair(Diffusion()).other
    for wrong in (b"", b"\x33\x01\x00", b"\x10\x01\x00\x00", bytes([51, 9, 0, 0]), bytes([51, 1, 0, 0, 0])):
        memory = node._ffi.new("uint8_t[]", wrong or b"\0")
        listed = node._ffi.new("struct attributes *", (memory, len(wrong), 1))
        assert node._call("subscribe", listed, 0, 1, True) == -1 == node._call("publish", listed, 0)
    assert not node.take_events() and not node.take_frames()


def test_gradients_and_data_gradients_are_the_same_in_memory():
    pair = Pair(Diffusion())
    for sink, hop in ((8, 1), (8, 2), (9, 3)):
        frame = encode_interest(Interest(1, sink, 0, hop, 50, 100, parse("TEMP GE 25")))
        pair.play([("receive", frame, hop, True)])
    pair.play([("receive", encode_data(Data(1, 11, 4, 50, False, (), parse("TEMP IS 26"))), 4, False)])
    pair.play([("receive", encode_interest(Interest(2, 8, 0, 2, 50, 100, parse("TEMP GE 25"))), 2, False)])
    entry, other = pair.reference.cache.entries[0], pair.other.memory.entries[0]
    assert [(gradient.sink, gradient.neighbor) for gradient in entry.gradients] == [
        (gradient.sink, gradient.neighbor) for gradient in list(other.gradients)[: other.gradient_count]
    ]
    assert [gradient.reinforced_by for gradient in entry.gradients] == [2, None, None]
    assert entry.data_gradients.list[0].reinforced_for == tuple(list(other.data_gradients.list[0].sinks)[:1])


PACED = [
    "TEMP GE 20, INTERVAL IS 0.5",
    "TEMP GE 20, INTERVAL IS 2",
    "TEMP GE 25, INTERVAL IS 1",
    "X EQ_ANY, INTERVAL IS 3",
]


def _paced_step(random, rounds):
    """Return a step of a source that has more readings than its sinks accept: most interests have an INTERVAL."""
    kind, sink, hop = random.choice("iirppppppaaaas"), random.choice([7, 8, 9]), random.choice([1, 2, 3])
    text = random.choice(PACED)
    number = 10 * sink + PACED.index(text)
    if kind == "i":
        round_ = rounds[number] = (rounds.get(number, 0) + random.choice([0, 1])) & 0xFF
        message = Interest(number, sink, round_, hop, 50, random.choice([0, 3, 100, 100, 100]), parse(text))
        return "receive", encode_interest(message), hop, True
    if kind == "r":
        message = Interest(1000 + random.randrange(99), sink, rounds.get(number, 0), hop, 50, 50, parse(text))
        return "receive", encode_interest(message), hop, False
    if kind == "p":
        return "publish", parse(random.choice(["TEMP IS 22", "TEMP IS 26", "TEMP IS 26, X IS 4", "X IS 1"])), b""
    if kind == "a":
        return "advance", random.choice([1, 200_000, 470_000, 500_000, 900_000])
    return random.choice([("subscribe", parse(text), 2), ("unsubscribe", random.randrange(20))])


@pytest.mark.parametrize("sizes", SIZES)
def test_source_withholds_the_same_readings(sizes):
    drops = set()
    for seed in range(8):
        random_ = random.Random(seed)
        rounds = {}
        pair = Pair(Diffusion(**SIZES[sizes], refresh_s=0.0, sample_lifetime_s=1.0 + seed % 2), ADDRESS)
        pair.play(_paced_step(random_, rounds) for _ in range(300))
        drops |= set(pair.reference.drops)
    assert "interval" in drops
