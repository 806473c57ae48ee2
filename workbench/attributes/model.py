"""Attributes, the key-operator-value triplets of publications and subscriptions, and how they match.

Theory of operation
    A publication describes data with attributes whose operator is IS ("TEMP IS 26.5"). A subscription has constraints
    with the other operators ("TEMP GE 25"), all of which must hold. `one_way_match` decides whether they match. Values
    travel as signed 16-bit integers (or as blobs of bytes), and `Attribute.value` is always the integer on the wire
    (2650). keys.py defines names of keys and the meaning of their integers (unit, steps, range), and text.py the text
    form ("TEMP IS 26.5"). Nodes need neither, so a mote does not load them.

Differs from the original in (the original is the TinyDiffusion design note of 2003; A2 to A13 are gaps in its
                              description, as numbered in the docstring of `workbench.protocols.diffusion`)
    A2   LAST (255) ends an array only at the interface to C (`until_last`); here attributes are plain sequences.
    A3   the keys Y and Z are both 55 in the definition file: here Z is 65, and an incoming 55 means Y.
    A4   UV is 6 as an application type and 63 as a key: the two are separate name spaces.
    A5   keys 50-99 belong to the system, 100-199 to the user, 200-250 to filters; operators are 1-8 only.
    A6   LATITUDE, LONGITUDE and TARGET are used without a number: 66, 67, 68. PAYLOAD (a blob) is our 69 and TOPIC
         (a blob) our 70: a topic of DPS, which other protocols compare byte by byte.
    A7   values are 2 bytes, but the examples have 30.455: each key has a scale; a value out of range is an error.
    A8   the key determines whether a value is an integer or a blob; blobs have only IS, EQ, NE and EQ_ANY.
    A10  the published matching rule searches "in S", the subscription; we read "in P", the publication.
    A11  keys may repeat: any IS value may satisfy each constraint; ``strict=True`` requires one value for all. A
         publication has constraints only if the protocol checks both sides' constraints (`two_way_match`).
    A12  "TEMP EQ 32 or TEMP LE 40" are alternatives, so they are separate subscriptions; constraints are never ORed.
    A13  a subscription with only IS attributes matches everything, so `check_subscription` refuses it.

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

# The keys whose values are blobs: PAYLOAD, TOPIC, and those added by `register_key`.
blob_keys = {PAYLOAD, TOPIC}


def is_blob(key_number):
    """Return whether values of this key are blobs; values of an unregistered key are integers."""
    return key_number in blob_keys


def _key_name(key_number):
    from workbench.attributes.keys import key_of

    return key_of(key_number).name


def text_of(attributes):
    """Return the text form of attributes for an error message, as `text.to_text` does.

    The module `text` is imported only by a call, so that a mote does not load it.
    """
    from workbench.attributes.text import to_text

    return to_text(attributes)


def check(attribute):
    """Check an attribute, and return it unchanged.

    Raises AttributeFormatError unless key, operator and value (an int16 or bytes, as on the wire) fit together.
    """
    try:
        key_number, operator, value = attribute
    except (TypeError, ValueError):
        raise AttributeFormatError(
            "attribute is %r; it must be a (key, operator, value) triplet: use parse() for text" % (attribute,)
        ) from None
    if not (isinstance(key_number, int) and APP <= key_number <= LAST_FILTER_KEY):
        raise AttributeFormatError("key is %r; it must be from 50 to 250" % (key_number,))
    if operator not in _OPERATORS:
        raise AttributeFormatError("key %s has operator %r; it must be from 1 to 8" % (_key_name(key_number), operator))
    if is_blob(key_number):
        if operator not in BLOB_OPERATORS:
            raise AttributeFormatError(
                "%s has operator %s; it is a blob and allows only IS, EQ, NE and EQ_ANY"
                % (_key_name(key_number), OPERATOR_NAMES[operator])
            )
        if not isinstance(value, bytes) or len(value) > LONGEST_BLOB:
            raise AttributeFormatError(
                "%s is %r; it must be up to %d bytes" % (_key_name(key_number), value, LONGEST_BLOB)
            )
    elif not isinstance(value, int) or not LOWEST <= value <= HIGHEST:
        raise AttributeFormatError(
            "%s is %r on the wire; it must be a whole number from %d to %d"
            % (_key_name(key_number), value, LOWEST, HIGHEST)
        )
    return attribute


# Matching


def satisfies(value, operator, bound):
    """Return whether the ``value`` of an IS attribute meets the constraint ``operator`` ``bound``, such as GE 25."""
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
    """Return whether ``publication`` has, for each constraint of ``subscription``, an IS attribute that meets it.

    If keys repeat in the publication (aggregated readings), different values may meet different constraints;
    ``strict=True`` requires for each key a single value that meets all its constraints. IS attributes of the
    subscription are ignored. Cost: len(subscription) * len(publication) comparisons.

    >>> one_way_match(parse("TEMP GE 25, TEMP LE 30"), parse("TEMP IS 26.5"))
    True
    """
    try:
        if strict:
            for constrained_key in {a.key for a in subscription if a.operator != IS}:
                constraints = [a for a in subscription if a.key == constrained_key and a.operator != IS]
                published_values = [a.value for a in publication if a.key == constrained_key and a.operator == IS]
                if not any(
                    [all([satisfies(value, c.operator, c.value) for c in constraints]) for value in published_values]
                ):
                    return False
            return True
        for constrained_key, operator, bound in subscription:
            if operator == IS:
                continue
            for published_key, published_operator, published_value in publication:
                if (
                    published_key == constrained_key
                    and published_operator == IS
                    and satisfies(published_value, operator, bound)
                ):
                    break
            else:
                return False
        return True
    except (AttributeError, TypeError, ValueError):
        _refuse_text(subscription, publication)  # Checked only after an error, so that a match costs nothing more.
        raise


def _refuse_text(*values):
    """Raise AttributeFormatError if an argument is a text instead of attributes."""
    for argument in values:
        if isinstance(argument, str):
            raise AttributeFormatError(
                'matching was called with the text %r; it needs attributes: write parse("...") around it' % argument
            )


def split_samples(attributes):
    """Split an aggregate of several readings into samples: a new sample begins where the first key repeats.

    Source: item A26 in the docstring of `workbench.protocols.diffusion`.
    """
    samples = []
    for attribute in attributes:
        if not samples or attribute.key == attributes[0].key:
            samples.append(())
        samples[-1] += (attribute,)
    return samples


def matching_samples(subscription, publication, matching="any"):
    """Return [publication] if the publication matches the subscription, else [].

    A publication with several values of a key is not split. ``matching``: the matching rule: "any", "strict" or
    "two-way" (see `is_match`). Raises AttributeFormatError if an argument is a text.

    >>> [to_text(sample) for sample in matching_samples(parse("TEMP GE 25"), parse("TEMP IS 20, TEMP IS 30"))]
    ['TEMP IS 20, TEMP IS 30']
    """
    if isinstance(publication, str):
        _refuse_text(publication)
    return [publication] if is_match(subscription, publication, matching) else []


def two_way_match(attributes, others):
    """Return whether the IS attributes of each argument meet the constraints of the other argument."""
    return one_way_match(attributes, others) and one_way_match(others, attributes)


def is_match(subscription, publication, matching):
    """Return whether a publication matches a subscription by the rule ``matching``.

    "any": each constraint of the subscription is met by an IS attribute of the publication. "strict": as "any", and all
    constraints on the same key are met by the same attribute. "two-way": as "any", and the IS attributes of the
    subscription also meet the constraints of the publication.
    """
    if matching == "any":
        return one_way_match(subscription, publication)
    if matching == "strict":
        return one_way_match(subscription, publication, True)
    return two_way_match(subscription, publication)


def check_subscription(attributes, match_all=False):
    """Check the attributes of a subscription, and return them unchanged.

    Raises AttributeFormatError for an attribute that is not valid. If all operators are IS, the subscription would
    match every publication; this raises AttributeFormatError, too, unless ``match_all`` is set.
    """
    for attribute in attributes:
        check(attribute)
    if not match_all and all([attribute.operator == IS for attribute in attributes]):
        raise AttributeFormatError(
            "the subscription %r constrains nothing, so it would match everything; "
            "use EQ instead of IS, or set match_all=True" % text_of(attributes)
        )
    return attributes


def with_payload(attributes, payload):
    """Return a tuple of the publication's attributes, followed by the payload as PAYLOAD blobs.

    A payload that is too long for one blob is cut into several.
    """
    blobs = [Attribute(PAYLOAD, IS, payload[i : i + LONGEST_BLOB]) for i in range(0, len(payload), LONGEST_BLOB)]
    return tuple(attributes) + tuple(blobs)


def check_publication(attributes, constraints=False):
    """Check the attributes of a publication, and return them unchanged.

    Raises AttributeFormatError if ``attributes`` is empty, or if an attribute is not valid or has another operator than
    IS. If ``constraints`` is true and at least one attribute has IS, other operators are allowed too. An attribute with
    another operator is a constraint that a subscription's IS attributes must meet. The key INTERVAL, which states a
    rate, allows only IS.
    """
    has_value = False
    for attribute in attributes:
        check(attribute)
        has_value = has_value or attribute.operator == IS
    for attribute in attributes:
        if attribute.operator != IS and not (constraints and has_value):
            raise AttributeFormatError(
                "the publication %r has an attribute that is not IS; only IS attributes describe data: "
                "use IS instead of %s" % (text_of(attributes), OPERATOR_NAMES[attribute.operator])
            )
        if attribute.operator != IS and attribute.key == INTERVAL:
            raise AttributeFormatError(
                "the publication %r constrains INTERVAL, by which subscriptions state a rate; "
                "remove this constraint" % text_of(attributes)
            )
    if not attributes:
        raise AttributeFormatError("the publication has no attributes; it needs at least one attribute")
    return attributes


def until_last(attributes):
    """Return the attributes before the one with the key LAST, which ends an array of attributes in C.

    Without such an attribute, all attributes are returned.
    """
    attributes_before_last = []
    for attribute in attributes:
        if attribute.key == LAST:
            break
        attributes_before_last.append(attribute)
    return tuple(attributes_before_last)
