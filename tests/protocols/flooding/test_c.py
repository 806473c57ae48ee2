"""Flooding in C compared with flooding in Python: the same answers, frames, events and drops for any input."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.c_nodes import needs_compiler
from tests.differential import Pair
from tests.families import examples
from workbench.attributes.text import parse
from workbench.protocols.flooding import Flooding, wire

pytestmark = needs_compiler

WANTED = ["TEMP GE 25", "TEMP EQ_ANY", "X LT 3, TEMP NE 26", 'PAYLOAD EQ "aa"', "TEMP IS 25", "INTERVAL LE 5"]
READINGS = ["TEMP IS 26", "TEMP IS 24, X IS 1", 'PAYLOAD IS "aa"', "TEMP IS 20, TEMP IS 30", "TEMP GE 3", "X IS -3"]


@st.composite
def frames(draw):
    reading = parse(draw(st.sampled_from(READINGS[:4])))
    sequence = draw(st.sampled_from([0, 1, 2, 3, 2**24, 2**32 - 1]))
    flood = wire.Flood(draw(st.sampled_from([5, 6, 2**32 - 1])), sequence, draw(st.integers(0, 4)), reading)
    frame = bytearray(wire.encode(flood))
    damage = draw(st.integers(0, 5))
    if damage == 1:
        frame[draw(st.integers(0, len(frame) - 1))] ^= 1 << draw(st.integers(0, 7))
    elif damage == 2:
        frame = frame[: draw(st.integers(0, len(frame)))] + draw(st.binary(max_size=3))
    elif damage == 3:
        frame = draw(st.binary(max_size=40))
    return bytes(frame)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("receive"), frames(), st.integers(0, 9), st.booleans()),
        st.tuples(st.just("receive"), frames(), st.integers(0, 9), st.booleans()),
        st.tuples(st.just("publish"), st.sampled_from(READINGS).map(parse), st.sampled_from([b"", b"ab"])),
        st.tuples(
            st.just("subscribe"),
            st.sampled_from(WANTED).map(parse),
            st.sampled_from([None, 0.5, 2]),
            st.sampled_from([False, False, True]),
        ),
        st.tuples(st.just("unsubscribe"), st.integers(0, 99)),
        st.tuples(st.just("advance"), st.sampled_from([0, 1, 500_000, 3_000_000])),
    ),
    max_size=40,
)


@settings(max_examples=examples(200))
@given(steps, st.sampled_from([1, 3, 100]), st.sampled_from([1, 2, 65535]), st.sampled_from([0, 1, 255, 256]))
def test_node_in_c_behaves_like_the_node_in_python(steps, max_events, ttl, boot):
    Pair(Flooding(max_events=max_events, ttl=ttl), boot=boot).play(steps)


@given(steps)
def test_node_in_c_with_a_counting_driver_has_the_same_counts(steps):
    pair = Pair(Flooding(max_events=3, ttl=2))
    pair.reference.tells_all = pair.other.tells_all = False
    pair.play(steps)


def test_node_in_c_refuses_subscriptions_beyond_its_memory_until_one_has_expired():
    pair = Pair(Flooding(max_events=1), more=(("MAX_SUBSCRIPTIONS", 2),))
    node = pair.other
    numbers = [node.subscribe(parse("TEMP GE 25"), 0, seconds).number for seconds in (None, 2)]
    refused = 0
    for now in (0, 1_999_999, 2_000_000):
        try:
            numbers.append(node.subscribe(parse("TEMP GE 25"), now).number)
        except ValueError as error:
            assert "MAX_SUBSCRIPTIONS" in str(error)
            refused += 1
    assert (numbers, refused) == ([0, 1, 2], 2)
