"""Dissected frames of TinyDiffusion: a unicast distinguishes a reinforcement from an interest."""

from workbench.attributes.text import parse
from workbench.protocols.diffusion import wire
from workbench.protocols.diffusion.dissector import MESSAGES
from workbench.protocols.field_tables import dissect_frame

INTEREST = wire.Interest(300, 12, 4, 9, 50, 60, parse("TEMP GE 25, TEMP LE 30"))


def fields_of(frame, broadcast=True):
    return [(field.name, field.text) for field in dissect_frame(MESSAGES, frame, broadcast)]


def test_fields_show_the_content_of_an_interest():
    assert fields_of(wire.encode_interest(INTEREST)) == [
        ("type", "1: interest"),
        ("sequence", "300"),
        ("sink", "node 12"),
        ("round", "4"),
        ("previous hop", "node 9"),
        ("ttl", "50 hops to live"),
        ("expiration", "60 s"),
        ("number of attributes", "2"),
        ("attributes", "TEMP GE 25, TEMP LE 30"),
    ]


def test_interest_to_one_neighbor_is_a_reinforcement():
    (_, kind), *rest = fields_of(wire.encode_interest(INTEREST), broadcast=False)
    assert kind.startswith("1: reinforcement") and rest == fields_of(wire.encode_interest(INTEREST))[1:]


def test_expiration_of_zero_cancels():
    frame = wire.encode_interest(INTEREST._replace(expiration_s=0))
    assert ("expiration", "0 s: the interest is canceled") in fields_of(frame)


def test_fields_show_the_content_of_data():
    assert fields_of(wire.encode_data(wire.Data(5, 20, 21, 49, False, (), parse("TEMP IS 26.5"))), broadcast=False) == [
        ("type", "2: data"),
        ("sequence", "5"),
        ("source", "node 20"),
        ("previous hop", "node 21"),
        ("ttl", "49 hops to live"),
        ("number of attributes", "1"),
        ("attributes", "TEMP IS 26.5"),
    ]


def test_data_of_several_readings_is_labeled_as_an_aggregate():
    frame = wire.encode_data(wire.Data(5, 20, 21, 49, True, (), parse("TEMP IS 26.5, TEMP IS 27")))
    assert ("number of attributes", "2, of an aggregate") in fields_of(frame, broadcast=False)
