"""Attributes: the numbers of the definition file, the key registry, and matching rules compared with naive ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench import attributes
from workbench.attributes.interests import constraints, covers, is_within
from workbench.attributes.keys import in_units, key_of, make, register_key
from workbench.attributes.model import (
    EQ,
    EQ_ANY,
    GE,
    GT,
    HIGHEST,
    INTERVAL,
    IS,
    LE,
    LOWEST,
    LT,
    NE,
    PAYLOAD,
    Attribute,
    check,
    check_publication,
    check_subscription,
    is_blob,
    is_match,
    matching_samples,
    one_way_match,
    split_samples,
    two_way_match,
    until_last,
)
from workbench.attributes.text import parse
from workbench.errors import AttributeFormatError

TEMP, HUMIDITY = 51, 52

# The definition file as published, except for Z (A3) and the missing keys (A6).
KEYS = """APP 50, TEMP 51, HUMIDITY 52, INSTANCE 53, X 54, Y 55, INTENSITY 56, CONFIDENCE 57, TIME 58, INTERVAL 59,
VELOCITY 60, DIRECTION 61, PRESSURE 62, UV 63, RADIATION 64, Z 65, LATITUDE 66, LONGITUDE 67, TARGET 68, PAYLOAD 69"""
OPERATORS = "IS 1, EQ 2, NE 3, GT 4, GE 5, LT 6, LE 7, EQ_ANY 8"
TYPES = """NULL_SENSOR 0, Temperature 1, Humidity 2, Pressure 3, Leaf_Wetness 4, PAR 5, UV 6, Solar_Radiation 7,
Rain_Level 8, Eye_LeveL_Light 9, Wind_Speed 10, Wind_Direction 11, Soil_Moisture 12, Temperature_Probe 13,
BatteryVoltage 14"""


def numbers(text):
    return {name: int(number) for name, number in (line.split() for line in text.split(","))}


# Keys, operators, types


@pytest.mark.parametrize(("name", "number"), numbers(KEYS).items())
def test_key_has_the_number_of_the_definition_file(name, number):
    assert key_of(name).number == key_of(name.lower() + "_key").number == number
    assert key_of(number).name == name


def test_operators_and_application_types_have_the_numbers_of_the_definition_file():
    assert numbers(OPERATORS) == attributes.OPERATORS
    assert numbers(TYPES) == attributes.APPLICATION_TYPES


def test_uv_is_a_key_and_an_application_type():
    assert parse("APP EQ UV, UV GE 3") == (Attribute(50, EQ, 6), Attribute(63, GE, 300))


def test_unknown_key_name_raises_an_error_with_the_known_names():
    with pytest.raises(
        AttributeFormatError,
        match=r"key is TEMPERATURE .*TEMP.*; known keys are APP, .*use register_key for new keys, with numbers 100-199",
    ):
        key_of("TEMPERATURE")


def test_unregistered_key_is_a_plain_integer():
    assert make(177, "GE", 5) == Attribute(177, GE, 5)
    assert not is_blob(177)


@pytest.mark.parametrize("key", [0, 14, 49, 251, 254, 255, 256, -1, "TEMP", None])
def test_key_number_outside_50_to_250_is_refused(key):
    with pytest.raises(AttributeFormatError, match="from 50 to 250"):
        check(Attribute(key, IS, 1))


@pytest.mark.parametrize("operator", [0, 9, 255, -1, None])
def test_operator_outside_1_to_8_is_refused(operator):
    with pytest.raises(AttributeFormatError, match="must be from 1 to 8"):
        check(Attribute(TEMP, operator, 1))


@pytest.mark.parametrize("value", [LOWEST - 1, HIGHEST + 1, 1.0, b"\x01", None])
def test_value_outside_int16_is_refused(value):
    with pytest.raises(AttributeFormatError, match="-32768 to 32767"):
        check(Attribute(TEMP, IS, value))


@pytest.mark.parametrize("operator", [IS, EQ, NE, EQ_ANY])
def test_blob_knows_the_operators_that_compare_bytes(operator):
    assert check(Attribute(PAYLOAD, operator, b"\x00" * 255))


@pytest.mark.parametrize("operator", [GT, GE, LT, LE])
def test_blob_has_no_order(operator):
    with pytest.raises(AttributeFormatError, match=r"PAYLOAD has operator .*; it is a blob and allows only"):
        check(Attribute(PAYLOAD, operator, b"a"))


@pytest.mark.parametrize("value", [b"\x00" * 256, "text", 5])
def test_blob_takes_up_to_255_bytes_and_nothing_else(value):
    with pytest.raises(AttributeFormatError, match="up to 255 bytes"):
        check(Attribute(PAYLOAD, IS, value))


def test_key_last_ends_an_array_and_is_not_part_of_it():
    array = parse("TEMP IS 1") + (Attribute(attributes.LAST, 0, 0),) + parse("TEMP IS 2")
    assert until_last(array) == parse("TEMP IS 1")
    assert until_last(parse("TEMP IS 1")) == parse("TEMP IS 1")


# Units


@pytest.mark.parametrize(
    ("key", "value", "wire"),
    [
        ("LONGITUDE", 104.1, 10410),
        ("LATITUDE", 30.455, 3046),  # half a step rounds up
        ("LATITUDE", -30.455, -3045),
        ("TEMP", 327.67, 32767),
        ("TEMP", -327.68, -32768),
        ("INTERVAL", 0.5, 5),
        ("TEMP", 0, 0),
        ("INSTANCE", 32767, 32767),
        ("DIRECTION", 360, 3600),
    ],
)
def test_value_in_units_becomes_steps_on_the_wire(key, value, wire):
    assert make(key, "IS", value).value == wire


@pytest.mark.parametrize("key", sorted(set(numbers(KEYS)) - {"PAYLOAD"}))
def test_value_outside_its_keys_range_is_an_error_and_never_wraps(key):
    known = key_of(key)
    step = 1 / known.steps
    assert in_units(make(key, "IS", known.minimum)) == known.minimum
    assert in_units(make(key, "IS", known.maximum)) == known.maximum
    for value in (known.minimum - step, known.maximum + step, 1e9, -1e9, 10**9, -(10**9), 65536 + 5, float("inf")):
        with pytest.raises(AttributeFormatError, match="must be from"):
            make(key, "IS", value)


@pytest.mark.parametrize("value", [float("nan"), "26", None, True, b"x"])
def test_value_that_is_not_a_number_is_refused(value):
    with pytest.raises(AttributeFormatError, match=r"TEMP is .* must be a number"):
        make("TEMP", "IS", value)


@given(st.sampled_from([1, 10, 100]), st.floats(-40000, 40000))
def test_value_is_within_half_a_step_of_the_given_one_or_refused(steps, value):
    key = {1: "INSTANCE", 10: "X", 100: "TEMP"}[steps]
    try:
        wire = make(key, "IS", value).value
    except AttributeFormatError:
        assert not LOWEST <= value * steps <= HIGHEST
    else:
        assert abs(wire - value * steps) <= 0.50001


# Custom keys


def test_custom_key_has_a_unit_a_scale_and_a_range():
    key = register_key(120, "CO2", unit="ppm", steps=2, minimum=0, maximum=5000)
    assert register_key(120, "CO2", unit="ppm", steps=2, minimum=0, maximum=5000) == key
    assert make("CO2_KEY", "GE", 412.5) == Attribute(120, GE, 825)
    with pytest.raises(AttributeFormatError, match="CO2 is 5001; it must be from 0 to 5000 ppm"):
        make("CO2", "GE", 5001)


def test_custom_blob_key_takes_bytes():
    register_key(121, "IMAGE", type="blob")
    assert parse('IMAGE IS "abc"') == (Attribute(121, IS, b"abc"),)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"number": 122, "name": "TEMP"}, "with key 51 TEMP, already registered with type int16 and unit"),
        ({"number": 130, "name": "OTHER"}, "conflicts with key 130 FIRST"),
        ({"number": 130, "name": "FIRST", "unit": "m"}, "conflicts"),
        ({"number": 130, "name": "FIRST", "steps": 10}, "conflicts"),
        ({"number": 130, "name": "FIRST", "type": "blob"}, "conflicts"),
        ({"number": 130, "name": "FIRST", "maximum": 5}, "conflicts"),
        ({"number": 99, "name": "MINE"}, "numbers from 100 to 199"),
        ({"number": 200, "name": "MINE"}, "numbers from 100 to 199"),
        ({"number": 101.0, "name": "MINE"}, "numbers from 100 to 199"),
        ({"number": 131, "name": "mine"}, "capital letters"),
        ({"number": 131, "name": "MY OWN"}, "capital letters"),
        ({"number": 131, "name": ""}, "capital letters"),
        ({"number": 131, "name": "1ST"}, "capital letters"),
        ({"number": 131, "name": "MY_KEY"}, "_KEY"),
        ({"number": 131, "name": "MINE", "type": "float"}, "'int16' or 'blob'"),
        ({"number": 131, "name": "MINE", "steps": 0}, "whole number, at least 1"),
        ({"number": 131, "name": "MINE", "steps": 0.5}, "whole number, at least 1"),
        ({"number": 131, "name": "MINE", "maximum": 40000}, "-32768.* to 32767"),
        ({"number": 131, "name": "MINE", "steps": 100, "minimum": -400}, "-327.68 to 327.67"),
        ({"number": 131, "name": "MINE", "minimum": 6, "maximum": 5}, "from 6 to 5"),
    ],
)
def test_key_that_conflicts_or_cannot_work_is_refused(arguments, complaint):
    register_key(130, "FIRST")
    with pytest.raises(AttributeFormatError, match=complaint):
        register_key(**arguments)
    assert key_of(131).name == "131"
    assert key_of(130).name == "FIRST"


# Matching, held against naive rules

COMPARE = {
    EQ: lambda value, bound: value == bound,
    NE: lambda value, bound: value != bound,
    GT: lambda value, bound: value > bound,
    GE: lambda value, bound: value >= bound,
    LT: lambda value, bound: value < bound,
    LE: lambda value, bound: value <= bound,
    EQ_ANY: lambda value, bound: True,
}
EDGES = [LOWEST, LOWEST + 1, -1, 0, 1, 2, HIGHEST - 1, HIGHEST]
# An integer that is not listed here matches bounds from EDGES as its neighbor in the list does.
EVERY_KIND_OF_INTEGER = sorted({v + d for v in EDGES for d in (-2, -1, 0, 1, 2) if LOWEST <= v + d <= HIGHEST})
BLOBS = [b"", b"a", b"b"]
EVERY_KIND_OF_BLOB = BLOBS + [b"another"]

integer_keys = st.sampled_from([TEMP, HUMIDITY, INTERVAL])
integer_constraint = st.builds(Attribute, integer_keys, st.sampled_from(sorted(COMPARE)), st.sampled_from(EDGES))
blob_constraint = st.builds(Attribute, st.just(PAYLOAD), st.sampled_from([EQ, NE, EQ_ANY]), st.sampled_from(BLOBS))
reading = st.builds(Attribute, integer_keys, st.just(IS), st.sampled_from(EDGES)) | st.builds(
    Attribute, st.just(PAYLOAD), st.just(IS), st.sampled_from(BLOBS)
)
constraint = integer_constraint | blob_constraint
attribute_lists = st.lists(constraint | reading, max_size=5).map(tuple)
publications = st.lists(reading, max_size=4).map(tuple)


def meets(value, wanted):
    return COMPARE[wanted.operator](value, wanted.value)


def values_of(publication, key):
    return [a.value for a in publication if a.key == key and a.operator == IS]


def constrained(subscription):
    return [a for a in subscription if a.operator != IS]


@pytest.mark.parametrize("operator", sorted(COMPARE))
def test_value_meets_a_constraint_as_its_operator_says(operator):
    for bound in EDGES:
        for value in EDGES:
            wanted = Attribute(TEMP, operator, bound)
            assert one_way_match((wanted,), (Attribute(TEMP, IS, value),)) == meets(value, wanted), (value, wanted)


@given(attribute_lists, attribute_lists)
def test_one_way_match_is_the_rule_of_the_design_note(subscription, publication):
    expected = all(any(meets(v, c) for v in values_of(publication, c.key)) for c in constrained(subscription))
    assert one_way_match(subscription, publication) == expected


@given(attribute_lists, attribute_lists)
def test_strict_match_requires_one_value_that_meets_all_constraints_of_its_key(subscription, publication):
    wanted = constrained(subscription)
    expected = all(
        any(all(meets(v, c) for c in wanted if c.key == key) for v in values_of(publication, key))
        for key in {c.key for c in wanted}
    )
    assert one_way_match(subscription, publication, strict=True) == expected
    assert one_way_match(subscription, publication) or not expected


@given(attribute_lists, attribute_lists)
def test_two_way_match_is_both_one_way_matches(first, second):
    assert two_way_match(first, second) == (one_way_match(first, second) and one_way_match(second, first))


@given(attribute_lists, attribute_lists)
def test_rule_of_matching_is_chosen_by_its_name(subscription, publication):
    assert is_match(subscription, publication, "any") == one_way_match(subscription, publication)
    assert is_match(subscription, publication, "strict") == one_way_match(subscription, publication, strict=True)
    assert is_match(subscription, publication, "two-way") == two_way_match(subscription, publication)
    for rule in ("any", "strict", "two-way"):
        expected = [publication] * is_match(subscription, publication, rule)
        assert matching_samples(subscription, publication, rule) == expected


@given(st.lists(constraint, max_size=5).map(tuple), st.lists(constraint, max_size=4).map(tuple))
def test_reinforcement_is_within_an_interest_if_the_values_of_each_key_are(reinforcement, interest):
    def within(key):
        inner = [c for c in reinforcement if c.key == key]
        outer = [c for c in interest if c.key == key]
        universe = EVERY_KIND_OF_BLOB if key == PAYLOAD else EVERY_KIND_OF_INTEGER
        admitted = [v for v in universe if all(meets(v, c) for c in inner)]
        return bool(inner) and all(meets(v, c) for v in admitted for c in outer)

    assert is_within(reinforcement, interest) == all(within(key) for key in {c.key for c in interest})


@given(attribute_lists, attribute_lists, publications)
def test_an_interest_matches_all_data_that_its_reinforcement_strictly_matches(reinforcement, interest, publication):
    if is_within(reinforcement, interest) and one_way_match(reinforcement, publication, strict=True):
        assert one_way_match(interest, publication, strict=True)


@given(attribute_lists)
def test_interest_is_within_itself_and_within_its_parts(interest):
    assert is_within(interest, interest)
    assert is_within(interest, ())
    keys = {a.key for a in interest[1:]}
    assert is_within(interest, tuple(a for a in interest if a.key in keys))


@pytest.mark.parametrize(
    ("reinforcement", "is_so"),
    [
        ("TEMP GE 25, INTERVAL IS 10", True),
        ("TEMP GE 25, INTERVAL IS 1", True),
        ("TEMP GE 25", True),
        ("TEMP GT 25", True),
        ("TEMP EQ 25, INSTANCE EQ 4", True),
        ("TEMP GE 30, TEMP LE 20", True),
        ("TEMP GE 24.99", False),
        ("TEMP EQ_ANY", False),
        ("TEMP IS 30", False),
        ("INSTANCE EQ 4", False),
        ("", False),
    ],
)
def test_reinforcement_may_request_less_but_never_more(reinforcement, is_so):
    assert is_within(parse(reinforcement), parse("TEMP GE 25, INTERVAL IS 10")) is is_so


@given(attribute_lists, attribute_lists, publications, st.booleans())
def test_interest_matches_all_data_that_a_covered_one_matches(interest, other, publication, strict):
    if covers(interest, other, strict):
        assert is_within(other, interest)
        assert one_way_match(interest, publication, strict) or not one_way_match(other, publication, strict)


@given(attribute_lists, st.booleans())
def test_interest_without_interval_covers_itself_and_interests_with_more_constraints(interest, strict):
    if all(a.key != INTERVAL for a in interest):
        assert covers(interest, interest, strict)
        constrained = interest + (Attribute(HUMIDITY, EQ, 1),)
        assert covers(interest, constrained, strict)
        assert covers((), tuple(a for a in constrained if a.operator != IS), strict)


@pytest.mark.parametrize(
    ("other", "covered"),
    [
        ("TEMP GE 25", "any strict"),
        ("TEMP GT 30, INSTANCE EQ 4", "any strict"),
        ("TEMP GE 25, INTERVAL IS 1", "any strict"),
        ("TEMP EQ 25, TEMP NE 30", "any strict"),
        ("TEMP GE 24", ""),
        ("TEMP EQ_ANY", ""),
        ("INSTANCE EQ 4", ""),
        ("", ""),
        # A filter may drop one of two interests with different IS attributes.
        ("TEMP GE 25, INSTANCE IS 4", ""),
        # No value meets both constraints, but two values of a reading can, by the rule "any".
        ("TEMP LE 10, TEMP GE 40", "any strict"),
        ("TEMP LE 10, TEMP GE 20", "strict"),
    ],
)
def test_interest_covers_another_if_it_brings_all_of_its_data(other, covered):
    for matching in ("any", "strict"):
        assert covers(parse("TEMP GE 25"), parse(other), matching == "strict") is (matching in covered)


@pytest.mark.parametrize(
    ("interest", "other", "covered"),
    [
        # "TEMP IS 20, TEMP IS 35" matches the second interest by the rule "any", but not the first one.
        ("TEMP EQ 30", "TEMP GE 30, TEMP LE 30", "strict"),
        ("TEMP NE 30", "TEMP GE 30, TEMP NE 30", "any strict"),
        ("TEMP GE 20, TEMP LE 40", "TEMP GE 25, TEMP LE 30", "any strict"),
        ("TEMP GE 20, TEMP LE 40", "TEMP EQ 30", "any strict"),
        ("TEMP EQ_ANY", "TEMP NE 30", "any strict"),
        ('PAYLOAD NE "a"', 'PAYLOAD EQ "b"', "any strict"),
        ('PAYLOAD NE "a"', 'PAYLOAD NE "b"', ""),
        ("TEMP GE 25, INTERVAL IS 1", "TEMP GE 30, INTERVAL IS 2", ""),
        ("TEMP GE 25, INTERVAL LE 5", "TEMP GE 30, INTERVAL LE 2", "any strict"),
        ("TEMP GE 25, INSTANCE IS 4", "INSTANCE IS 4, TEMP GE 30", "any strict"),
    ],
)
def test_interest_covers_another_only_if_the_rule_of_matching_implies_it(interest, other, covered):
    for matching in ("any", "strict"):
        assert covers(parse(interest), parse(other), matching == "strict") is (matching in covered)


@given(st.lists(st.lists(st.sampled_from(EDGES), min_size=2, max_size=2), max_size=4), attribute_lists)
def test_aggregate_is_split_where_its_first_key_recurs(values, subscription):
    samples = [(Attribute(TEMP, IS, t), Attribute(HUMIDITY, IS, h)) for t, h in values]
    assert split_samples(sum(samples, ())) == samples


@given(attribute_lists, attribute_lists)
def test_reading_is_delivered_completely_or_not_at_all(subscription, reading):
    assert matching_samples(subscription, reading) == [reading] * one_way_match(subscription, reading)


def test_different_values_of_one_reading_may_meet_different_constraints():
    between, reading = parse("TEMP GE 25, TEMP LE 30"), parse("TEMP IS 20, TEMP IS 40")
    assert one_way_match(between, reading)
    assert not one_way_match(between, reading, strict=True)
    assert matching_samples(between, reading) == [reading]


# The design note's own examples


def test_region_of_the_design_note_matches_as_published():
    region = parse(
        """TARGET_KEY EQ_ANY
           LATITUDE_KEY GE 30
           LATITUDE_KEY LE 31
           LONGITUDE_KEY GE 104
           LONGITUDE_KEY LE 104.5"""
    )
    sensor = "LATITUDE_KEY IS 30.455\nLONGITUDE_KEY IS 104.1\nTEMP_KEY IS 32"
    assert one_way_match(region, parse(sensor + "\nTARGET_KEY IS 1"))
    assert not one_way_match(region, parse(sensor))
    assert not one_way_match(region, parse("TARGET IS 1, LATITUDE IS 31.01, LONGITUDE IS 104.1"))
    assert not one_way_match(region, parse("TARGET IS 1, LATITUDE IS 30.455, LONGITUDE IS 104.51"))
    assert not one_way_match(region, parse("TARGET IS 1, LATITUDE IS 30.455, LONGITUDE IS 30.455"))


@pytest.mark.parametrize("alternative", ["TEMP_KEY EQ 32", "TEMP_KEY LE 40", "TEMP_KEY GE 25"])
def test_each_alternative_of_the_design_note_matches_its_sensor(alternative):
    assert one_way_match(parse(alternative), parse("LATITUDE IS 30.455, LONGITUDE IS 104.1, TEMP IS 32"))


def test_is_attributes_of_a_subscription_describe_and_do_not_constrain():
    assert one_way_match(parse("TEMP GE 25, INSTANCE IS 3"), parse("TEMP IS 26"))
    assert not two_way_match(parse("TEMP GE 25, INSTANCE IS 3"), parse("TEMP IS 26, INSTANCE EQ 4"))


def test_publication_constraint_does_not_count_as_a_value():
    assert not one_way_match(parse("TEMP GE 25"), parse("TEMP EQ 26"))


# Valid subscriptions and publications


@pytest.mark.parametrize("text", ["", "TEMP IS 26", "INTERVAL IS 5, INSTANCE IS 2"])
def test_subscription_without_constraints_is_refused_unless_it_is_explicit(text):
    with pytest.raises(AttributeFormatError, match="match_all=True"):
        check_subscription(parse(text))
    assert check_subscription(parse(text), match_all=True) == parse(text)
    assert one_way_match(parse(text), parse("HUMIDITY IS 1"))


@pytest.mark.parametrize("text", ["TEMP GE 26", "TEMP IS 26, INSTANCE EQ 1"])
def test_publication_with_an_operator_other_than_is_is_refused(text):
    with pytest.raises(AttributeFormatError, match="only IS attributes describe data"):
        check_publication(parse(text))


@pytest.mark.parametrize(
    "text", ["TEMP IS 26", "TEMP IS 26, INSTANCE EQ 1", "INSTANCE NE 1, TEMP IS 26, TEMP LE 30", "INTERVAL IS 5"]
)
def test_publication_may_have_constraints_if_the_protocol_allows_them(text):
    assert check_publication(parse(text), constraints=True) == parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("INSTANCE EQ 1, X NE 3", "only IS attributes describe data: use IS instead of EQ"),
        ("TEMP IS 26, INTERVAL LE 5", "constrains INTERVAL"),
    ],
)
def test_publication_needs_a_value_and_never_constrains_the_interval(text, message):
    with pytest.raises(AttributeFormatError, match=message):
        check_publication(parse(text), constraints=True)


@pytest.mark.parametrize("constraints", [False, True])
def test_empty_publication_is_refused(constraints):
    with pytest.raises(AttributeFormatError, match="at least one attribute"):
        check_publication((), constraints)


def test_bad_attribute_is_found_in_subscriptions_and_publications():
    for examine in (check_subscription, check_publication):
        with pytest.raises(AttributeFormatError, match="from 50 to 250"):
            examine((Attribute(7, IS, 1),))


# Overlap: interests with the same constraints


@given(st.permutations(parse("TEMP GE 25, TEMP LE 30, HUMIDITY GE 4, INSTANCE IS 3, INTERVAL IS 10")))
def test_interests_overlap_whatever_their_order_and_interval(shuffled):
    assert constraints(shuffled) == constraints(parse("TEMP LE 30, TEMP GE 25, INSTANCE IS 3, HUMIDITY GE 4"))


@given(attribute_lists, attribute_lists, publications)
def test_interests_that_overlap_match_the_same_publications(first, second, publication):
    if constraints(first) == constraints(second):
        assert one_way_match(first, publication) == one_way_match(second, publication)


@pytest.mark.parametrize(
    "constraint_text", ["TEMP GE 26", "TEMP GT 25", "TEMP GE 25, HUMIDITY EQ_ANY", "TEMP GE 25, INTERVAL LE 5"]
)
def test_interests_with_different_constraints_do_not_overlap(constraint_text):
    assert constraints(parse("TEMP GE 25")) != constraints(parse(constraint_text))


def test_value_of_eq_any_is_ignored():
    assert constraints((Attribute(TEMP, EQ_ANY, 7),)) == constraints(parse("TEMP EQ_ANY"))


# --- text instead of attributes, and attributes instead of text ---


@pytest.mark.parametrize("text", [None, 5, b"TEMP GE 25", parse("TEMP GE 25")], ids=repr)
def test_parse_refuses_values_other_than_text(text):
    with pytest.raises(AttributeFormatError, match="it must be a text such as"):
        parse(text)


@pytest.mark.parametrize("strict", [False, True])
def test_match_of_text_raises_an_error_that_recommends_parse(strict):
    wish, offer = parse("TEMP GE 30"), parse("TEMP IS 31")
    for sides in (("TEMP GE 30", offer), (wish, "TEMP IS 31"), ("TEMP GE 30", "TEMP IS 31")):
        with pytest.raises(AttributeFormatError, match="called with the text 'TEMP"):
            one_way_match(*sides, strict=strict)
    with pytest.raises(AttributeFormatError, match="called with the text 'TEMP IS 31'"):
        matching_samples(wish, "TEMP IS 31")
    with pytest.raises(AttributeFormatError, match="called with the text 'TEMP GE 30'"):
        matching_samples("TEMP GE 30", offer)


@pytest.mark.parametrize("checked", [check_subscription, check_publication])
def test_check_of_text_raises_an_error_that_recommends_parse(checked):
    with pytest.raises(AttributeFormatError, match=r"attribute is 'T'; .*use parse\(\) for text"):
        checked("TEMP GE 30")


def test_key_registered_with_swapped_arguments_is_refused():
    with pytest.raises(AttributeFormatError, match="'CO2'; the number comes first"):
        register_key("CO2", 120)
