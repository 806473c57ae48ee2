"""Attributes (key, operator, value) and everything about them; this package exports the names of its modules.

model.py        operators, values and the matching rules: all that a node needs
keys.py         names of keys, and units and ranges of their values
text.py         the text form, "TEMP GE 25" <-> attributes
wire.py         the bytes of attributes in a frame
interests.py    comparison of two interests: whether their constraints are equal, or the first interest's are stricter
dimensions.py   keys with ranges of values, which are the dimensions of a space of readings: "TEMP -20 50"
event_bytes.py  the bytes of an event that is sent fragmented or coded
mapping.py      attributes from keys and values; it makes this package callable: attributes(TEMP=25)

A mote never loads this file: programs there import the modules that they need.
"""

# ruff: noqa: F401
from workbench.attributes.interests import constraints, is_within
from workbench.attributes.keys import (
    BLOB,
    FIRST_USER_KEY,
    INT16,
    LAST_USER_KEY,
    LONGEST_PAYLOAD,
    OPERATORS,
    Key,
    in_units,
    key_of,
    known_keys,
    make,
    register_key,
)
from workbench.attributes.mapping import describe
from workbench.attributes.mapping import make_callable as _make_callable
from workbench.attributes.model import (
    APP,
    BLOB_OPERATORS,
    EQ,
    EQ_ANY,
    FIRST_FILTER_KEY,
    GE,
    GT,
    HIGHEST,
    INTERVAL,
    IS,
    LAST,
    LAST_FILTER_KEY,
    LE,
    LONGEST_BLOB,
    LOWEST,
    LT,
    NE,
    OPERATOR_NAMES,
    PAYLOAD,
    TOPIC,
    Attribute,
    blob_keys,
    check,
    check_publication,
    check_subscription,
    is_blob,
    matching_samples,
    one_way_match,
    satisfies,
    split_samples,
    text_of,
    two_way_match,
    until_last,
    with_payload,
)
from workbench.attributes.text import APPLICATION_TYPES, parse, to_text
from workbench.keywords import answer_for, imported_names

__all__ = imported_names(__name__)

answer_for(__name__)
_make_callable(__name__)
