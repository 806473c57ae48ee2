"""Keys: what the number in an attribute is called, and what its value means: its unit, its steps, its range.

Theory of operation
    On the wire a value is an integer. A registry says for each key how many integer steps make one unit, and which
    range is allowed. The system's keys are those of the definition file; those from 100 to 199 are the user's to
    register. Which keys hold blobs is kept in `attributes.blob_keys`: it is all that a node has to know of a key.

Limits
    Registrations are per process. A mote that knows no names needs only the blobs among them (`blob_keys`).

Reference
    TinyDiffusion design note (2003), Definition File; the numbers it lacks stand in model.py.

This file runs on a mote too (MicroPython's subset of Python), but nothing a node does needs it.
"""

from collections import namedtuple

from workbench.attributes.model import (
    APP,
    EQ_ANY,
    HIGHEST,
    INTERVAL,
    IS,
    LONGEST_BLOB,
    LOWEST,
    OPERATOR_NAMES,
    PAYLOAD,
    TOPIC,
    Attribute,
    blob_keys,
    check,
)
from workbench.errors import AttributeFormatError

OPERATORS = {OPERATOR_NAMES[number]: number for number in range(IS, EQ_ANY + 1)}

INT16 = "int16"
BLOB = "blob"

FIRST_USER_KEY = 100
LAST_USER_KEY = 199
LONGEST_PAYLOAD = 250 * LONGEST_BLOB  # a message counts to 255 attributes

# A key: its number and name, INT16 or BLOB, the unit of its values, how many integer steps make one unit (100: a
# resolution of 0.01), and the smallest and largest value allowed, in units.
Key = namedtuple("Key", ("number", "name", "type", "unit", "steps", "minimum", "maximum"))


def _int16_key(number, name, unit, steps, minimum=None, maximum=None):
    lowest = LOWEST / steps if minimum is None else minimum
    highest = HIGHEST / steps if maximum is None else maximum
    return Key(number, name, INT16, unit, steps, lowest, highest)


_SYSTEM_KEYS = (
    _int16_key(APP, "APP", "application type", 1, 0, 49),
    _int16_key(51, "TEMP", "°C", 100),
    _int16_key(52, "HUMIDITY", "%", 100, 0, 100),
    _int16_key(53, "INSTANCE", "", 1),
    _int16_key(54, "X", "m", 10),
    _int16_key(55, "Y", "m", 10),
    _int16_key(65, "Z", "m", 10),
    _int16_key(56, "INTENSITY", "", 1),
    _int16_key(57, "CONFIDENCE", "%", 100, 0, 100),
    _int16_key(58, "TIME", "s", 1),
    _int16_key(INTERVAL, "INTERVAL", "s", 10, 0),
    _int16_key(60, "VELOCITY", "m/s", 100),
    _int16_key(61, "DIRECTION", "°", 10, 0, 360),
    _int16_key(62, "PRESSURE", "hPa", 10),
    _int16_key(63, "UV", "index", 100, 0),
    _int16_key(64, "RADIATION", "W/m²", 10),
    _int16_key(66, "LATITUDE", "°", 100, -90, 90),
    _int16_key(67, "LONGITUDE", "°", 100, -180, 180),
    _int16_key(68, "TARGET", "", 1),
    Key(PAYLOAD, "PAYLOAD", BLOB, "bytes", 1, 0, LONGEST_BLOB),
    Key(TOPIC, "TOPIC", BLOB, "text", 1, 0, LONGEST_BLOB),
)

_keys_by_number = {key.number: key for key in _SYSTEM_KEYS}
_keys_by_name = {key.name: key for key in _SYSTEM_KEYS}


def register_key(number, name, unit="", steps=1, type=INT16, minimum=None, maximum=None):
    """Give one of the user's keys (100-199) a name and a meaning; returns the Key.

    ``steps`` is how many integer steps make one unit (100 for a resolution of 0.01). Registering the same key twice
    is fine; registering a different one under a number or name already taken raises AttributeFormatError.
    """
    if isinstance(number, str):
        raise AttributeFormatError(
            'the number comes first: register_key(120, "CO2"), not register_key(%r, ...)' % number
        )
    if not (isinstance(number, int) and FIRST_USER_KEY <= number <= LAST_USER_KEY):
        raise AttributeFormatError(
            "key %s has number %r; keys of your own have numbers from %d to %d"
            % (name, number, FIRST_USER_KEY, LAST_USER_KEY)
        )
    if not _is_name(name) or name != name.upper():
        raise AttributeFormatError(
            "key %d cannot be called %r; a name is capital letters, digits and _" % (number, name)
        )
    if name.endswith("_KEY"):
        raise AttributeFormatError(
            "key %d cannot be called %s: every key may be written with _KEY behind it; call it %s"
            % (number, name, name[:-4])
        )
    if type not in (INT16, BLOB):
        raise AttributeFormatError("key %s has type %r; it must be 'int16' or 'blob'" % (name, type))
    if not (isinstance(steps, int) and steps >= 1):
        raise AttributeFormatError("key %s has %r steps per unit; it must be 1 or more" % (name, steps))
    if type == BLOB:
        key = Key(number, name, BLOB, unit, 1, 0, LONGEST_BLOB)
    else:
        key = _int16_key(number, name, unit, steps, minimum, maximum)
        if not LOWEST / steps <= key.minimum <= key.maximum <= HIGHEST / steps:
            raise AttributeFormatError(
                "key %s has a range from %s to %s; with %d steps per unit it must lie within %s to %s"
                % (name, key.minimum, key.maximum, steps, LOWEST / steps, HIGHEST / steps)
            )
    for known in (_keys_by_number.get(number), _keys_by_name.get(name)):
        if known is not None and known != key:
            raise AttributeFormatError(
                "key %d %s conflicts with key %d %s, which is already registered as %s in %s"
                % (number, name, known.number, known.name, known.type, known.unit or "plain numbers")
            )
    _keys_by_number[number] = key
    _keys_by_name[name] = key
    if type == BLOB:
        blob_keys.add(number)
    return key


def key_of(name_or_number):
    """The registered Key of a name ("TEMP", "TEMP_KEY") or number; an unknown number is a plain int16 key."""
    if isinstance(name_or_number, int):
        known = _keys_by_number.get(name_or_number)
        if known is None:
            known = _int16_key(name_or_number, str(name_or_number), "", 1)
        return known
    name = name_or_number.upper()
    if name.endswith("_KEY"):
        name = name[:-4]
    if name in _keys_by_name:
        return _keys_by_name[name]
    from workbench.suggestion import meant  # Not before: a mote has no room for it.

    known = sorted(_keys_by_name)
    raise AttributeFormatError(
        "there is no key %s%s; known keys are %s (numbers 100-199 are yours to register)"
        % (name_or_number, meant(name, known), ", ".join(known))
    )


def known_keys():
    """All registered keys, the user's among them, in ascending order of their numbers."""
    return [_keys_by_number[number] for number in sorted(_keys_by_number)]


def make(key, operator, value=0):
    """An Attribute from a key (name or number), an operator (name or number) and a value in the key's unit."""
    key = key_of(key)
    number = OPERATORS.get(operator, operator)
    if number == EQ_ANY:
        value = b"" if key.type == BLOB else 0
    elif key.type == INT16:
        value = _to_steps(key, value)
    return check(Attribute(key.number, number, value))


def _to_steps(key, value):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        raise AttributeFormatError("%s is %r; it must be a number" % (key.name, value))
    # What rounds to the end of the range is in it: text has a limited number of decimals.
    slack = 0.499999 / key.steps
    if not key.minimum - slack <= value <= key.maximum + slack:
        raise AttributeFormatError(
            "%s is %.60s; it must be from %s to %s %s" % (key.name, value, key.minimum, key.maximum, key.unit)
        )
    if isinstance(value, int):
        return value * key.steps
    # Half a step rounds up. The small extra keeps 30.455 * 100 = 3045.4999... from falling below its half.
    shifted = value * key.steps + 0.500001
    whole = int(shifted)
    return whole - 1 if whole > shifted else whole


def in_units(attribute):
    """The attribute's value in its key's unit: 26.5 for 2650 hundredths; blobs as they are."""
    key = key_of(attribute.key)
    if key.type == BLOB or key.steps == 1:
        return attribute.value
    return attribute.value / key.steps


def _is_name(text):
    return isinstance(text, str) and text[:1].isalpha() and all([c.isalpha() or c.isdigit() or c == "_" for c in text])
