"""Attributes: the key-operator-value triplets that data and requests for data are made of, and how they match.

Theory of operation
    A publication describes data with attributes whose operator is IS ("TEMP IS 26.5"). A subscription names what it
    wants with the other operators ("TEMP GE 25"); its constraints are ANDed. `one_way_match` is the rule that decides
    whether they meet. Values travel as signed 16-bit integers (or as blobs of bytes); a registry says for each key
    what the integer means: its unit, how many steps make one unit, and its range. `Attribute.value` is always the
    integer on the wire (2650); `parse` and `to_text` speak in units ("TEMP IS 26.5").

Differs from the original in
    A2   LAST (255) ends an array only at the C-like edge (`until_last`); here attributes are plain sequences.
    A3   Y and Z are both 55 in the definition file: Z is 65, an incoming 55 means Y.
    A4   UV is 6 as an application type and 63 as a key: the two are separate name spaces.
    A5   keys 50-99 belong to the system, 100-199 to the user, 200-250 to filters; operators are 1-8 only.
    A6   LATITUDE, LONGITUDE and TARGET are used without a number: 66, 67, 68. PAYLOAD (a blob) is 69, ours.
    A7   values are 2 bytes, the examples say 30.455: each key has a scale; a value that does not fit is an error.
    A8   whether a value is an integer or a blob belongs to the key; blobs know IS, EQ, NE and EQ_ANY only.
    A10  the matching rule looks for Sa "in S": read "in P".
    A11  keys may repeat: any IS value may satisfy each constraint; ``strict=True`` asks one value to meet them all.
    A12  "TEMP EQ 32 or TEMP LE 40" are alternatives, hence separate subscriptions; constraints are never ORed.
    A13  a subscription of IS attributes alone matches everything, so `check_subscription` refuses it.
    A16  interests overlap whatever their INTERVAL, unless it is a constraint on data ("INTERVAL LE 5") and no IS.
    A20  `is_within` is the relaxed match of a reinforcement: never less constrained than the interest.

Reference
    TinyDiffusion design note (2003), sections Attribute, Matching Rules and Definition File; F. Silva et al.:
    Network Routing API 9.1 (2003) for the matching rule.

This file runs on a mote too (MicroPython's subset of Python).
"""

from collections import namedtuple

from workbench.errors import AttributeFormatError

Attribute = namedtuple("Attribute", ("key", "operator", "value"))

# Operators, numbered as in the definition file.
IS = 1
EQ = 2
NE = 3
GT = 4
GE = 5
LT = 6
LE = 7
EQ_ANY = 8

OPERATORS = {"IS": IS, "EQ": EQ, "NE": NE, "GT": GT, "GE": GE, "LT": LT, "LE": LE, "EQ_ANY": EQ_ANY}
_OPERATOR_SIGNS = {"==": EQ, "!=": NE, ">": GT, ">=": GE, "<": LT, "<=": LE}
_OPERATOR_NAMES = {number: name for name, number in OPERATORS.items()}
_BLOB_OPERATORS = (IS, EQ, NE, EQ_ANY)

# Application types: values of the key APP, numbered and spelled as in the definition file.
APPLICATION_TYPES = {
    "NULL_SENSOR": 0,
    "Temperature": 1,
    "Humidity": 2,
    "Pressure": 3,
    "Leaf_Wetness": 4,
    "PAR": 5,
    "UV": 6,
    "Solar_Radiation": 7,
    "Rain_Level": 8,
    "Eye_LeveL_Light": 9,
    "Wind_Speed": 10,
    "Wind_Direction": 11,
    "Soil_Moisture": 12,
    "Temperature_Probe": 13,
    "BatteryVoltage": 14,
}
_APPLICATION_NAMES = {number: name for name, number in APPLICATION_TYPES.items()}
_APPLICATION_NUMBERS = {name.lower(): number for name, number in APPLICATION_TYPES.items()}
_DIGITS = "0123456789"

INT16 = "int16"
BLOB = "blob"
LOWEST = -32768
HIGHEST = 32767
LONGEST_BLOB = 255

APP = 50
INTERVAL = 59
PAYLOAD = 69
FIRST_USER_KEY = 100
LAST_USER_KEY = 199
FIRST_FILTER_KEY = 200
LAST_FILTER_KEY = 250
LAST = 255

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
    raise AttributeFormatError(
        "there is no key %s; known keys are %s (numbers 100-199 are yours to register)"
        % (name_or_number, ", ".join(sorted(_keys_by_name)))
    )


def is_blob(key_number):
    """Whether values of this key are blobs; a key nobody registered is an integer."""
    key = _keys_by_number.get(key_number)
    return key is not None and key.type == BLOB


def check(attribute):
    """Raise AttributeFormatError unless key, operator and value (an int16 or bytes, as on the wire) fit together."""
    try:
        number, operator, value = attribute
    except (TypeError, ValueError):
        raise AttributeFormatError(
            "%r is no attribute, which is a key, an operator and a value; if it is out of a text, parse() that first"
            % (attribute,)
        ) from None
    if not (isinstance(number, int) and APP <= number <= LAST_FILTER_KEY):
        raise AttributeFormatError("key %r is not one of 50-250" % (number,))
    if operator not in _OPERATOR_NAMES:
        raise AttributeFormatError("key %s has operator %r; operators are 1-8" % (key_of(number).name, operator))
    if is_blob(number):
        if operator not in _BLOB_OPERATORS:
            raise AttributeFormatError(
                "%s is a blob, so %s does not apply; IS, EQ, NE and EQ_ANY do"
                % (key_of(number).name, _OPERATOR_NAMES[operator])
            )
        if not isinstance(value, bytes) or len(value) > LONGEST_BLOB:
            raise AttributeFormatError("%s takes up to %d bytes, not %r" % (key_of(number).name, LONGEST_BLOB, value))
    elif not isinstance(value, int) or not LOWEST <= value <= HIGHEST:
        raise AttributeFormatError(
            "%s has the value %r on the wire; it must be a whole number from %d to %d"
            % (key_of(number).name, value, LOWEST, HIGHEST)
        )
    return attribute


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
            "%s is %s; it must be from %s to %s %s" % (key.name, value, key.minimum, key.maximum, key.unit)
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


# Text form


def parse(text):
    """Read attributes from text: "APP EQ Temperature, TEMP GE 25". Commas, semicolons and new lines separate them.

    Each is KEY OPERATOR VALUE. KEY is a registered name (TEMP or TEMP_KEY) or a number, OPERATOR one of IS EQ NE GT GE
    LT LE EQ_ANY (no value) or == != > >= < <=, VALUE a number in the key's unit, an application type for APP, or for
    blobs a "quoted text" or 0x hex digits. Raises AttributeFormatError with what would be right.

    >>> parse("TEMP GE 25")
    (Attribute(key=51, operator=5, value=2500),)
    """
    if not isinstance(text, str):
        raise AttributeFormatError('parse takes a text such as "TEMP GE 25", not %r' % (text,))
    return tuple([_parse_one(part) for part in _split(text)])


def _split(text):
    """Cut at separators that are not inside quotes; empty parts are left out."""
    parts = [""]
    quoted = False
    for character in text:
        if character == '"':
            quoted = not quoted
        if not quoted and character in ",;\n":
            parts.append("")
        else:
            parts[-1] += character
    if quoted:
        raise AttributeFormatError("%r has a quote that is not closed" % text)
    return [part.strip() for part in parts if part.strip()]


def _parse_one(text):
    words = text.split(None, 2)
    if len(words) < 2:
        raise AttributeFormatError('%r is no attribute; write KEY OPERATOR VALUE, as in "TEMP GE 25"' % text)
    # Five digits: a longer number is no key, and int() takes neither "²" nor thousands of digits.
    key = key_of(int(words[0]) if len(words[0]) <= 5 and _has_only(words[0], _DIGITS) else words[0])
    operator = _OPERATOR_SIGNS.get(words[1], OPERATORS.get(words[1].upper()))
    if operator is None:
        raise AttributeFormatError("%r has operator %s; operators are IS EQ NE GT GE LT LE EQ_ANY" % (text, words[1]))
    if operator == EQ_ANY:
        if len(words) > 2:
            raise AttributeFormatError("%r: EQ_ANY takes no value" % text)
        return make(key.number, EQ_ANY)
    if len(words) < 3:
        raise AttributeFormatError("%r has no value" % text)
    return make(key.number, operator, _parse_value(key, words[2].strip()))


def _parse_value(key, word):
    if key.type == BLOB:
        return _parse_blob(key, word)
    if key.number == APP and word.lower() in _APPLICATION_NUMBERS:
        return _APPLICATION_NUMBERS[word.lower()]
    # int() and float() take more than a number as people write it: "1_0", "nan", digits of other scripts.
    if _has_only(word, _DIGITS + "+-.eE"):
        for read in (int, float):
            try:
                return read(word)
            except ValueError:
                pass
    hint = "; alternatives are separate subscriptions" if " or" in word.lower() else ""
    raise AttributeFormatError(
        "%s is %r; it must be a number%s%s"
        % (key.name, word, " or an application type" if key.number == APP else "", hint)
    )


def _has_only(word, characters):
    return all([character in characters for character in word])


def _parse_blob(key, word):
    if len(word) >= 2 and word[0] == '"' and word[-1] == '"' and '"' not in word[1:-1]:
        try:
            return word[1:-1].encode()
        except ValueError:
            pass  # Half of a surrogate pair, as JSON may carry one, has no bytes.
    if word[:2] == "0x" and len(word) % 2 == 0 and _has_only(word[2:], _DIGITS + "abcdefABCDEF"):
        return bytes([int(word[i : i + 2], 16) for i in range(2, len(word), 2)])
    raise AttributeFormatError('%s is %s; write a blob as "text" or as 0x and hex digits' % (key.name, word))


def to_text(attributes):
    """The text form of attributes, which `parse` reads back: "APP EQ Temperature, TEMP GE 25"."""
    return ", ".join([_one_to_text(attribute) for attribute in attributes])


def _one_to_text(attribute):
    key = key_of(attribute.key)
    operator = _OPERATOR_NAMES.get(attribute.operator, str(attribute.operator))
    if attribute.operator == EQ_ANY:
        return "%s EQ_ANY" % key.name
    return "%s %s %s" % (key.name, operator, _value_to_text(key, attribute.value))


def _value_to_text(key, value):
    if key.type == BLOB:
        if all([32 <= byte < 127 and byte != 34 for byte in value]):
            return '"%s"' % value.decode()
        return "0x" + "".join(["%02x" % byte for byte in value])
    if key.number == APP and value in _APPLICATION_NAMES:
        return _APPLICATION_NAMES[value]
    if key.steps == 1:
        return str(value)
    # One more than the steps need: 1/3 as 0.33 is read back as the same third.
    decimals = len(str(key.steps - 1)) + 1
    text = "%.*f" % (decimals, value / key.steps)
    return text.rstrip("0").rstrip(".")


def _is_name(text):
    return isinstance(text, str) and text[:1].isalpha() and all([c.isalpha() or c.isdigit() or c == "_" for c in text])


# Matching


def satisfies(value, operator, bound):
    """Whether ``value`` (of an IS attribute) meets the constraint ``operator bound``."""
    if operator == EQ_ANY:
        return True
    if operator == EQ:
        return value == bound
    if operator == NE:
        return value != bound
    if operator == GE:
        return value >= bound
    if operator == LE:
        return value <= bound
    if operator == GT:
        return value > bound
    if operator == LT:
        return value < bound
    return False


def one_way_match(subscription, publication, strict=False):
    """Whether each constraint of ``subscription`` is met by some IS attribute of ``publication`` with the same key.

    With repeated keys in the publication (aggregated readings) different values may meet different constraints;
    ``strict=True`` asks that for each key one value meets all of that key's constraints. IS attributes of the
    subscription describe and do not constrain. Cost: len(subscription) * len(publication) comparisons.

    >>> one_way_match(parse("TEMP GE 25, TEMP LE 30"), parse("TEMP IS 26.5"))
    True
    """
    try:
        if strict:
            return _strict_match(subscription, publication)
        for key, operator, bound in subscription:
            if operator == IS:
                continue
            for published_key, published_operator, value in publication:
                if published_key == key and published_operator == IS and satisfies(value, operator, bound):
                    break
            else:
                return False
        return True
    except (AttributeError, TypeError, ValueError):
        _refuse_text(subscription, publication)  # Here, where it costs a match nothing.
        raise


def _refuse_text(*sides):
    for side in sides:
        if isinstance(side, str):
            raise AttributeFormatError(
                'matching takes attributes, not the text %r; write parse("...") around it' % side
            )


def _strict_match(subscription, publication):
    for key in {a.key for a in subscription if a.operator != IS}:
        constraints = [a for a in subscription if a.key == key and a.operator != IS]
        values = [a.value for a in publication if a.key == key and a.operator == IS]
        if not any([all([satisfies(value, c.operator, c.value) for c in constraints]) for value in values]):
            return False
    return True


def split_samples(attributes):
    """The samples of an aggregated message: a new one begins wherever the first key comes again (A26)."""
    samples = []
    for attribute in attributes:
        if not samples or attribute.key == attributes[0].key:
            samples.append(())
        samples[-1] += (attribute,)
    return samples


def matching_samples(subscription, publication):
    """The samples in a publication or aggregated message that match by themselves: what a sink is handed (A26).

    >>> [to_text(sample) for sample in matching_samples(parse("TEMP GE 25"), parse("TEMP IS 20, TEMP IS 30"))]
    ['TEMP IS 30']
    """
    if isinstance(publication, str):
        _refuse_text(publication)
    return [sample for sample in split_samples(publication) if one_way_match(subscription, sample)]


def two_way_match(one, other):
    """Whether each side's constraints are met by the other's IS attributes."""
    return one_way_match(one, other) and one_way_match(other, one)


def check_subscription(attributes, match_all=False):
    """Raise AttributeFormatError for a subscription that constrains nothing, unless that is asked for."""
    for attribute in attributes:
        check(attribute)
    if not match_all and all([attribute.operator == IS for attribute in attributes]):
        raise AttributeFormatError(
            "the subscription %r constrains nothing, so it would match everything; "
            "use EQ instead of IS, or say match_all=True" % to_text(attributes)
        )
    return attributes


def check_publication(attributes):
    """Raise AttributeFormatError for a publication with anything but IS attributes."""
    for attribute in attributes:
        check(attribute)
        if attribute.operator != IS:
            raise AttributeFormatError(
                "the publication %r has an attribute that is not IS; only IS attributes describe data"
                % to_text(attributes)
            )
    if not attributes:
        raise AttributeFormatError("a publication needs at least one attribute")
    return attributes


def constraints(attributes):
    """The attributes in a canonical order without INTERVAL: equal for interests that overlap (A16).

    An INTERVAL that constrains data stays, or the sink that asks without it would be given what the other one wants.
    The value beside EQ_ANY means nothing.
    """
    canonical = []
    for key, operator, value in attributes:
        if operator == EQ_ANY:
            value = b"" if is_blob(key) else 0
        if key != INTERVAL or operator != IS:
            canonical.append((key, operator, value))
    return tuple(sorted(canonical))


def is_within(reinforcement, interest):
    """The relaxed match of a reinforcement against a cached interest: further constrained, never less.

    For each key that the interest constrains, the values that the reinforcement admits must all be admitted by the
    interest. Keys of its own may be added; IS attributes (INTERVAL among them) and expirations play no part.

    >>> is_within(parse("TEMP GE 30, INSTANCE EQ 4, INTERVAL IS 1"), parse("TEMP GE 25, INTERVAL IS 10"))
    True
    """
    for key in {a.key for a in interest if a.operator != IS}:
        inner = [a for a in reinforcement if a.key == key and a.operator != IS]
        outer = [a for a in interest if a.key == key and a.operator != IS]
        if not inner:
            return False
        within = _blobs_within if is_blob(key) else _integers_within
        if not within(inner, outer):
            return False
    return True


def _integers_within(inner, outer):
    low, high, holes = _value_set(inner)
    outer_low, outer_high, outer_holes = _value_set(outer)
    if low > high:
        return True
    if low < outer_low or high > outer_high:
        return False
    return all([hole in holes or not low <= hole <= high for hole in outer_holes])


def _value_set(constraints_of_key):
    """(lowest, highest, holes between them) of the integers that meet all constraints; lowest > highest if none."""
    low, high, holes = LOWEST, HIGHEST, set()
    for _, operator, bound in constraints_of_key:
        if operator in (EQ, GE):
            low = max(low, bound)
        if operator in (EQ, LE):
            high = min(high, bound)
        if operator == GT:
            low = max(low, bound + 1)
        if operator == LT:
            high = min(high, bound - 1)
        if operator == NE:
            holes.add(bound)
    while low in holes:
        low += 1
    while high in holes:
        high -= 1
    return low, high, holes


def _blobs_within(inner, outer):
    allowed = {a.value for a in inner if a.operator == EQ}
    if allowed:
        candidates = [v for v in allowed if all([satisfies(v, a.operator, a.value) for a in inner])]
        return all([satisfies(v, a.operator, a.value) for v in candidates for a in outer])
    excluded = {a.value for a in inner if a.operator == NE}
    return all([a.operator == EQ_ANY or (a.operator == NE and a.value in excluded) for a in outer])


def until_last(array):
    """The attributes of a C-like array up to the one with key LAST, which is not part of them."""
    attributes = []
    for attribute in array:
        if attribute.key == LAST:
            break
        attributes.append(attribute)
    return tuple(attributes)
