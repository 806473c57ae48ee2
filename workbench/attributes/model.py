"""Attributes: the key-operator-value triplets that data and requests for data are made of, and how they match.

Theory of operation
    A publication describes data with attributes whose operator is IS ("TEMP IS 26.5"). A subscription names what it
    wants with the other operators ("TEMP GE 25"); its constraints are ANDed. `one_way_match` is the rule that decides
    whether they meet. Values travel as signed 16-bit integers (or as blobs of bytes), and `Attribute.value` is always
    the integer on the wire (2650). What a key is called and what its integers mean (unit, steps, range) is told by
    keys.py, and the text form ("TEMP IS 26.5") by text.py. Both serve people: a node does without them, so a mote
    need not hold them.

Differs from the original in
    A2   LAST (255) ends an array only at the C-like edge (`until_last`); here attributes are plain sequences.
    A3   Y and Z are both 55 in the definition file: Z is 65, an incoming 55 means Y.
    A4   UV is 6 as an application type and 63 as a key: the two are separate name spaces.
    A5   keys 50-99 belong to the system, 100-199 to the user, 200-250 to filters; operators are 1-8 only.
    A6   LATITUDE, LONGITUDE and TARGET are used without a number: 66, 67, 68. PAYLOAD (a blob) is 69, ours;
         so is TOPIC (a blob, 70), a topic of DPS, which other protocols compare byte by byte.
    A7   values are 2 bytes, the examples say 30.455: each key has a scale; a value that does not fit is an error.
    A8   whether a value is an integer or a blob belongs to the key; blobs know IS, EQ, NE and EQ_ANY only.
    A10  the matching rule looks for Sa "in S": read "in P".
    A11  keys may repeat: any IS value may satisfy each constraint; ``strict=True`` asks one value to meet them all.
    A12  "TEMP EQ 32 or TEMP LE 40" are alternatives, hence separate subscriptions; constraints are never ORed.
    A13  a subscription of IS attributes alone matches everything, so `check_subscription` refuses it.

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

OPERATOR_NAMES = (None, "IS", "EQ", "NE", "GT", "GE", "LT", "LE", "EQ_ANY")  # by number
_OPERATORS = (IS, EQ, NE, GT, GE, LT, LE, EQ_ANY)
BLOB_OPERATORS = (IS, EQ, NE, EQ_ANY)

LOWEST = -32768
HIGHEST = 32767
LONGEST_BLOB = 255

APP = 50
INTERVAL = 59
PAYLOAD = 69
TOPIC = 70
FIRST_FILTER_KEY = 200
LAST_FILTER_KEY = 250
LAST = 255

# The keys whose values are blobs: PAYLOAD and TOPIC, and those that `register_key` adds.
blob_keys = {PAYLOAD, TOPIC}


def is_blob(key_number):
    """Whether values of this key are blobs; a key nobody registered is an integer."""
    return key_number in blob_keys


def _name_of(key_number):
    from workbench.attributes.keys import key_of

    return key_of(key_number).name


def text_of(attributes):
    """`text.to_text`, for a sentence: loaded no sooner than something is wrong."""
    from workbench.attributes.text import to_text

    return to_text(attributes)


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
    if operator not in _OPERATORS:
        raise AttributeFormatError("key %s has operator %r; operators are 1-8" % (_name_of(number), operator))
    if is_blob(number):
        if operator not in BLOB_OPERATORS:
            raise AttributeFormatError(
                "%s is a blob, so %s does not apply; IS, EQ, NE and EQ_ANY do"
                % (_name_of(number), OPERATOR_NAMES[operator])
            )
        if not isinstance(value, bytes) or len(value) > LONGEST_BLOB:
            raise AttributeFormatError("%s takes up to %d bytes, not %r" % (_name_of(number), LONGEST_BLOB, value))
    elif not isinstance(value, int) or not LOWEST <= value <= HIGHEST:
        raise AttributeFormatError(
            "%s has the value %r on the wire; it must be a whole number from %d to %d"
            % (_name_of(number), value, LOWEST, HIGHEST)
        )
    return attribute


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
    """The samples of an aggregate of several readings: a new one begins wherever the first key comes again (A26)."""
    samples = []
    for attribute in attributes:
        if not samples or attribute.key == attributes[0].key:
            samples.append(())
        samples[-1] += (attribute,)
    return samples


def matching_samples(subscription, publication):
    """What a subscription is handed of a publication: all of it, or nothing. One reading is one sample.

    >>> [to_text(sample) for sample in matching_samples(parse("TEMP GE 25"), parse("TEMP IS 20, TEMP IS 30"))]
    ['TEMP IS 20, TEMP IS 30']
    """
    if isinstance(publication, str):
        _refuse_text(publication)
    return [publication] if one_way_match(subscription, publication) else []


def two_way_match(attributes, others):
    """Whether each side's constraints are met by the other's IS attributes."""
    return one_way_match(attributes, others) and one_way_match(others, attributes)


def check_subscription(attributes, match_all=False):
    """Raise AttributeFormatError for a subscription that constrains nothing, unless that is asked for."""
    for attribute in attributes:
        check(attribute)
    if not match_all and all([attribute.operator == IS for attribute in attributes]):
        raise AttributeFormatError(
            "the subscription %r constrains nothing, so it would match everything; "
            "use EQ instead of IS, or say match_all=True" % text_of(attributes)
        )
    return attributes


def with_payload(attributes, payload):
    """A publication's attributes as a tuple, with a payload of bytes as PAYLOAD blobs behind them."""
    blobs = [Attribute(PAYLOAD, IS, payload[i : i + LONGEST_BLOB]) for i in range(0, len(payload), LONGEST_BLOB)]
    return tuple(attributes) + tuple(blobs)


def check_publication(attributes):
    """Raise AttributeFormatError for a publication with anything but IS attributes."""
    for attribute in attributes:
        check(attribute)
        if attribute.operator != IS:
            raise AttributeFormatError(
                "the publication %r has an attribute that is not IS; only IS attributes describe data: "
                "use IS instead of %s" % (text_of(attributes), OPERATOR_NAMES[attribute.operator])
            )
    if not attributes:
        raise AttributeFormatError("a publication needs at least one attribute")
    return attributes


def until_last(attributes):
    """The attributes of a C-like array up to the one with key LAST, which is not part of them."""
    before_last = []
    for attribute in attributes:
        if attribute.key == LAST:
            break
        before_last.append(attribute)
    return tuple(before_last)
