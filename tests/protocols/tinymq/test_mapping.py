"""TinyMQ's key space: keys, universes, zones and regions, and the mapping of queries and events."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from workbench.attributes.model import IS, Attribute, one_way_match
from workbench.attributes.text import parse
from workbench.protocols.tinymq import TinyMQ, zones
from workbench.protocols.tinymq.mapping import Mapping, split_bits

BITS = 6
keys = st.text("01", max_size=8)
regions = st.lists(st.integers(0, 2**BITS - 1), max_size=12).map(
    lambda ends: tuple(zip(sorted(set(ends))[0::2], sorted(set(ends))[1::2], strict=False))
)


def numbers(region):
    return {number for low, high in region for number in range(low, high + 1)}


def strings(region):
    return {format(number, f"0{BITS}b") for number in numbers(region)}


# --- keys and zones ---


@given(keys.map(lambda key: key and key + "1"), st.integers(0, 5))
def test_key_contains_the_parents_key_and_the_slot(key, slot):
    child = zones.child_key(key, slot)
    assert (zones.parent_key(child), zones.slot_of(child)) == (key, slot)


def test_shortest_free_key_is_granted():
    assert [zones.free_slot(slots) for slots in (set(), {0}, {1}, {0, 1, 3})] == [0, 1, 0, 2]


@given(keys)
def test_universe_contains_all_strings_with_the_keys_prefix(key):
    expected = {text for text in strings(zones.whole_key_space(BITS)) if text.startswith(key)}
    assert strings(zones.universe(key, BITS)) == expected


@given(keys, st.sets(st.integers(0, 7)))
def test_zone_is_the_universe_without_those_of_children(key, slots):
    children = [zones.child_key(key, slot) for slot in sorted(slots)]
    expected = {
        text
        for text in strings(zones.whole_key_space(BITS))
        if text.startswith(key) and not any(text.startswith(child) for child in children)
    }
    assert strings(zones.zone(key, children, BITS)) == expected


def test_zone_of_the_papers_node_10():
    # Key 010 with the child 01011 of figure 1. By C5, the node's own key, cut to k bits, belongs to it.
    assert strings(zones.zone("010", ["0101"], 4 + 2)) == {"010000", "010001", "010010", "010011"}


@given(regions, regions)
def test_operations_on_regions_equal_those_on_sets(first, second):
    for operation, expected in (
        (zones.intersect, numbers(first) & numbers(second)),
        (zones.subtract, numbers(first) - numbers(second)),
        (zones.union, numbers(first) | numbers(second)),
    ):
        region = operation(first, second)
        assert numbers(region) == expected
        assert list(region) == sorted(region)
        assert sum(high - low + 1 for low, high in region) == len(expected)


# --- the mapping ---


def test_bits_are_distributed_among_the_dimensions():
    assert [split_bits(8, 1), split_bits(8, 3), split_bits(2, 3)] == [[8], [3, 3, 2], [1, 1, 0]]


def test_cold_chain_query_of_the_paper_with_the_corrected_formula():
    # C7: temperature and humidity from 0 to 1, here in hundredths, two bits each.
    mapping = Mapping([(51, 0, 100), (52, 0, 100)], 4)
    query = (Attribute(51, 4, 0), Attribute(51, 6, 50), Attribute(52, 4, 85), Attribute(52, 6, 90))
    event = (Attribute(51, IS, 25), Attribute(52, IS, 88))
    assert [format(cell, "04b") for cell in mapping.cells(mapping.query_box(query))] == ["0011", "0111", "1011"]
    assert [format(cell, "04b") for cell in mapping.cells(mapping.event_box(event))] == ["0111"]


@pytest.mark.parametrize(
    ("dimension", "text", "expected"),
    [
        ("TEMP 0 64", "TEMP GE 20, TEMP LE 30", range(20, 31)),
        ("TEMP 0 64", "TEMP GT 20, TEMP LT 30", range(20, 31)),
        ("TEMP 0 64", "TEMP EQ 20.5", [20]),
        ("TEMP 0 64", "TEMP EQ_ANY", range(64)),
        ("TEMP 0 64", "TEMP NE 20", range(64)),
        ("TEMP 0 64", "HUMIDITY GE 5", range(64)),
        ("TEMP 0 64", "TEMP GE 60, TEMP LE 300", range(60, 64)),
        ("TEMP 0 64", "TEMP LE -3", [0]),
        ("TEMP 0 64", "TEMP GE 30, TEMP LE 20", range(20, 31)),
        ("TEMP 0 64", "TEMP IS 5, TEMP GE 63", [63]),
        ("HUMIDITY", "HUMIDITY GE 50, HUMIDITY LE 75", range(32, 49)),
    ],
)
def test_query_covers_all_cells_that_it_intersects(dimension, text, expected):
    mapping = TinyMQ(dimensions=(dimension,), key_bits=6).mapping
    assert mapping.cells(mapping.query_box(parse(text))) == list(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TEMP IS 20.99", [20]),
        ("TEMP IS -5", [0]),
        ("TEMP IS 64", [63]),
        ("HUMIDITY IS 5", [0]),
        ("TEMP IS 9, TEMP IS 12, TEMP IS 10", [9, 10, 11, 12]),
    ],
)
def test_event_has_one_cell_or_those_between_its_values(text, expected):
    mapping = TinyMQ(dimensions=("TEMP 0 64",), key_bits=6).mapping
    assert mapping.cells(mapping.event_box(parse(text))) == expected


mappings = st.builds(
    lambda ranges, bits: Mapping([(51 + i, low, low + size) for i, (low, size) in enumerate(ranges)], bits),
    st.lists(st.tuples(st.integers(-40, 40), st.integers(1, 60)), min_size=1, max_size=3),
    st.integers(1, 9),
)
constraints = st.builds(Attribute, st.integers(51, 54), st.integers(2, 8), st.integers(-50, 50))
readings = st.builds(Attribute, st.integers(51, 54), st.just(IS), st.integers(-50, 50))


@given(mappings, st.lists(constraints, max_size=5), st.lists(readings, min_size=1, max_size=5))
def test_query_and_event_that_match_have_a_string_in_common(mapping, query, event):
    assume(one_way_match(query, event))
    assert set(mapping.cells(mapping.query_box(query))) & set(mapping.cells(mapping.event_box(event)))


@given(mappings, st.lists(constraints, max_size=5), st.data())
def test_strings_of_a_box_are_computed_without_enumeration(mapping, query, data):
    box = mapping.query_box(query)
    expected = [
        number
        for number in range(2**mapping.key_bits)
        if all(low <= part <= high for part, (low, high) in zip(mapping._split_string(number), box, strict=True))
    ]
    assert mapping.cells(box) == expected
    assert mapping.hull(box) == ((expected[0], expected[-1]),)
    low = data.draw(st.integers(0, 2**mapping.key_bits - 1))
    high = data.draw(st.integers(low, 2**mapping.key_bits - 1))
    inside = [number for number in expected if low <= number <= high]
    assert mapping.clip(box, ((low, high),)) == (((inside[0], high),) if inside else ())
