"""Keys: their names, and the units, resolutions and ranges of their values.

Theory of operation
    On the wire a value is an integer. A registry defines for each key how many integer steps make one unit, and the
    allowed range. The system's keys are those of the definition file; users may register the keys from 100 to 199.
    `attributes.blob_keys` is the set of keys whose values are blobs; a node needs no other fact about keys.

Limits
    Registrations are per process. A mote does not know names of keys; it needs only `blob_keys`.

Reference
    TinyDiffusion design note (2003), Definition File; model.py lists the numbers that the note lacks.

This file runs on a mote too (MicroPython's subset of Python), but nodes do not need it.
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
LONGEST_PAYLOAD = 250 * LONGEST_BLOB  # a message has at most 255 attributes

# A key: its number and name, INT16 or BLOB, the unit of its values, the number of integer steps in one unit (100 for a
# resolution of 0.01), and the smallest and largest allowed value, in units.
Key = namedtuple("Key", ("number", "name", "type", "unit", "steps", "minimum", "maximum"))


def _make_int16_key(number, name, unit, steps, minimum=None, maximum=None):
    lowest = LOWEST / steps if minimum is None else minimum
    highest = HIGHEST / steps if maximum is None else maximum
    return Key(number, name, INT16, unit, steps, lowest, highest)


_SYSTEM_KEYS = (
    _make_int16_key(APP, "APP", "application type", 1, 0, 49),
    _make_int16_key(51, "TEMP", "°C", 100),
    _make_int16_key(52, "HUMIDITY", "%", 100, 0, 100),
    _make_int16_key(53, "INSTANCE", "", 1),
    _make_int16_key(54, "X", "m", 10),
    _make_int16_key(55, "Y", "m", 10),
    _make_int16_key(65, "Z", "m", 10),
    _make_int16_key(56, "INTENSITY", "", 1),
    _make_int16_key(57, "CONFIDENCE", "%", 100, 0, 100),
    _make_int16_key(58, "TIME", "s", 1),
    _make_int16_key(INTERVAL, "INTERVAL", "s", 10, 0),
    _make_int16_key(60, "VELOCITY", "m/s", 100),
    _make_int16_key(61, "DIRECTION", "°", 10, 0, 360),
    _make_int16_key(62, "PRESSURE", "hPa", 10),
    _make_int16_key(63, "UV", "index", 100, 0),
    _make_int16_key(64, "RADIATION", "W/m²", 10),
    _make_int16_key(66, "LATITUDE", "°", 100, -90, 90),
    _make_int16_key(67, "LONGITUDE", "°", 100, -180, 180),
    _make_int16_key(68, "TARGET", "", 1),
    Key(PAYLOAD, "PAYLOAD", BLOB, "bytes", 1, 0, LONGEST_BLOB),
    Key(TOPIC, "TOPIC", BLOB, "text", 1, 0, LONGEST_BLOB),
)

_keys_by_number = {key.number: key for key in _SYSTEM_KEYS}
_keys_by_name = {key.name: key for key in _SYSTEM_KEYS}


def register_key(number, name, unit="", steps=1, type=INT16, minimum=None, maximum=None):
    """Register one of the user's keys (100-199) with a name and a meaning, and return its Key.

    ``unit``: unit of the values, a text. ``steps``: number of integer steps in one unit (100 for a resolution of 0.01).
    ``type``: INT16 or BLOB. ``minimum``, ``maximum``: the allowed range, in units; None: as far as 16 bits allow. The
    same key may be registered twice. Raises AttributeFormatError if an argument is not valid, or if the number or name
    belongs to a different key.
    """
    if isinstance(number, str):
        raise AttributeFormatError('number is %r; the number comes first, as in register_key(120, "CO2")' % number)
    if not (isinstance(number, int) and FIRST_USER_KEY <= number <= LAST_USER_KEY):
        raise AttributeFormatError(
            "key %s has number %r; your own keys must have numbers from %d to %d"
            % (name, number, FIRST_USER_KEY, LAST_USER_KEY)
        )
    if not _is_name(name) or name != name.upper():
        raise AttributeFormatError(
            "key %d has name %r; a name must consist of capital letters, digits and _" % (number, name)
        )
    if name.endswith("_KEY"):
        raise AttributeFormatError(
            "key %d has name %s; a name must not end in _KEY, as texts may write any key X as X_KEY: use %s"
            % (number, name, name[:-4])
        )
    if type not in (INT16, BLOB):
        raise AttributeFormatError("key %s has type %r; it must be 'int16' or 'blob'" % (name, type))
    if not (isinstance(steps, int) and steps >= 1):
        raise AttributeFormatError(
            "key %s has %r steps per unit; it must be a whole number, at least 1" % (name, steps)
        )
    if type == BLOB:
        key = Key(number, name, BLOB, unit, 1, 0, LONGEST_BLOB)
    else:
        key = _make_int16_key(number, name, unit, steps, minimum, maximum)
        if not LOWEST / steps <= key.minimum <= key.maximum <= HIGHEST / steps:
            raise AttributeFormatError(
                "key %s has a range from %s to %s; with %d steps per unit it must be within %s to %s"
                % (name, key.minimum, key.maximum, steps, LOWEST / steps, HIGHEST / steps)
            )
    for registered_key in (_keys_by_number.get(number), _keys_by_name.get(name)):
        if registered_key is not None and registered_key != key:
            raise AttributeFormatError(
                "key %d %s conflicts with key %d %s, already registered with type %s and unit %r; change number or name"
                % (number, name, registered_key.number, registered_key.name, registered_key.type, registered_key.unit)
            )
    _keys_by_number[number] = key
    _keys_by_name[name] = key
    if type == BLOB:
        blob_keys.add(number)
    return key


def key_of(name_or_number):
    """Return the Key with a name ("TEMP" or "TEMP_KEY") or a number.

    For an unregistered number, returns an int16 key without a unit. Raises AttributeFormatError for an unknown name.
    """
    if isinstance(name_or_number, int):
        key = _keys_by_number.get(name_or_number)
        if key is None:
            key = _make_int16_key(name_or_number, str(name_or_number), "", 1)
        return key
    key_name = name_or_number.upper()
    if key_name.endswith("_KEY"):
        key_name = key_name[:-4]
    if key_name in _keys_by_name:
        return _keys_by_name[key_name]
    from workbench.suggestion import meant  # Not before: a mote has no room for it.

    known_names = sorted(_keys_by_name)
    raise AttributeFormatError(
        "key is %s%s; known keys are %s (use register_key for new keys, with numbers 100-199)"
        % (name_or_number, meant(key_name, known_names), ", ".join(known_names))
    )


def known_keys():
    """Return all registered keys, including the user's, in ascending order of their numbers."""
    return [_keys_by_number[number] for number in sorted(_keys_by_number)]


def make(key, operator, value=0):
    """Return the Attribute with a key, an operator and a value in the key's unit: ``make("TEMP", "GE", 25)``.

    ``key`` and ``operator`` are names or numbers. Raises AttributeFormatError if key, operator and value do not fit
    together.
    """
    key = key_of(key)
    operator_number = OPERATORS.get(operator, operator)
    if operator_number == EQ_ANY:
        value = b"" if key.type == BLOB else 0
    elif key.type == INT16:
        value = _to_steps(key, value)
    return check(Attribute(key.number, operator_number, value))


def _to_steps(key, value):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        raise AttributeFormatError("%s is %r; it must be a number" % (key.name, value))
    # A value that rounds to the end of the range is accepted: text has a limited number of decimals.
    allowed_excess = 0.499999 / key.steps
    if not key.minimum - allowed_excess <= value <= key.maximum + allowed_excess:
        raise AttributeFormatError(
            "%s is %.60s; it must be from %s to %s %s" % (key.name, value, key.minimum, key.maximum, key.unit)
        )
    if isinstance(value, int):
        return value * key.steps
    # Half a step rounds up. The small addition keeps 30.455 * 100 = 3045.4999... from rounding down.
    shifted_steps = value * key.steps + 0.500001
    rounded_steps = int(shifted_steps)
    return rounded_steps - 1 if rounded_steps > shifted_steps else rounded_steps


def in_units(attribute):
    """Return the attribute's value in its key's unit, such as 26.5 for 2650 hundredths; blobs are unchanged."""
    key = key_of(attribute.key)
    if key.type == BLOB or key.steps == 1:
        return attribute.value
    return attribute.value / key.steps


def _is_name(text):
    return isinstance(text, str) and text[:1].isalpha() and all([c.isalpha() or c.isdigit() or c == "_" for c in text])
