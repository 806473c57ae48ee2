"""Comparison of two interests: whether their constraints are the same, and whether one lies within the other.

`is_within` compares only the constraints. `covers` is stricter: it returns whether the first of a sink's two interests
brings all data that the second interest would bring. Then the sink does not need to send the second interest.

Differs from the original in (the original is the TinyDiffusion design note of 2003; A16 and A20 are gaps in its
                              description, as numbered in the docstring of `workbench.protocols.diffusion`)
    A16  interests count as the same whatever their INTERVAL, unless INTERVAL constrains data ("INTERVAL LE 5").
    A20  a reinforcement matches an interest if it is at least as constrained as the interest (`is_within`).

This file runs on a mote too (MicroPython's subset of Python). A mote loads it only if it runs diffusion.
"""

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
    Attribute,
    is_blob,
    satisfies,
)


def constraints(attributes):
    """Return an interest's attributes in a canonical form: interests with the same constraints have equal forms.

    The attributes are sorted. An INTERVAL with IS, which states a data rate, is left out. An INTERVAL with another
    operator constrains data and remains. The value of an EQ_ANY attribute has no meaning and is replaced by 0 or b"".
    Source: item A16 of `workbench.protocols.diffusion`.
    """
    canonical_attributes = []
    for attribute in attributes:
        key, operator, _ = attribute
        if operator == EQ_ANY:
            attribute = Attribute(key, EQ_ANY, b"" if is_blob(key) else 0)
        if key != INTERVAL or operator != IS:
            # The attribute itself is stored, not a copy: a mote keeps it as long as the interest.
            canonical_attributes.append(attribute)
    return tuple(sorted(canonical_attributes))


def interval_us(attributes):
    """Return the INTERVAL that an interest requests, in µs: the shortest time between two readings of a source.

    The result is 0 if no attribute is an INTERVAL with IS.
    """
    for key, operator, value in attributes:
        if key == INTERVAL and operator == IS:
            return max(0, value) * 100000  # an INTERVAL counts tenths of a second
    return 0


def is_within(reinforcement, interest):
    """Return whether a reinforcement's constraints are at least as strict as an interest's.

    For each key that the interest constrains, the interest must admit all values that the reinforcement admits. The
    reinforcement may constrain further keys. IS attributes (INTERVAL among them) and expirations are ignored.

    >>> is_within(parse("TEMP GE 30, INSTANCE EQ 4, INTERVAL IS 1"), parse("TEMP GE 25, INTERVAL IS 10"))
    True
    """
    for constrained_key in {a.key for a in interest if a.operator != IS}:
        reinforcement_constraints = [a for a in reinforcement if a.key == constrained_key and a.operator != IS]
        interest_constraints = [a for a in interest if a.key == constrained_key and a.operator != IS]
        if not reinforcement_constraints:
            return False
        is_subset = _is_blob_subset if is_blob(constrained_key) else _is_integer_subset
        if not is_subset(reinforcement_constraints, interest_constraints):
            return False
    return True


def covers(interest, attributes, strict):
    """Return whether one interest of a sink brings all data that another one would bring.

    ``interest``: the attributes of the first interest; ``attributes``: those of the second one. ``strict``: whether the
    matching rule requires a single value that meets all constraints of a key. If so, the second interest must be at
    least as strict as the first (`is_within`). Otherwise a reading may repeat a key, and different values may meet
    different constraints. Then each constraint of the first interest must follow from a single constraint of the
    second.

    If the first interest has an INTERVAL, the result is False: a source could withhold readings that the second
    interest would bring. The IS attributes of both, except INTERVAL, must be equal, because filters may treat interests
    with different IS attributes differently.

    >>> covers(parse("TEMP GE 25"), parse("TEMP GE 30, INSTANCE EQ 4, INTERVAL IS 1"), strict=False)
    True
    """
    if interval_us(interest):
        return False
    own_is_attributes, other_is_attributes = [
        [a for a in constraints(compared_attributes) if a.operator == IS]
        for compared_attributes in (interest, attributes)
    ]
    if own_is_attributes != other_is_attributes:
        return False
    if strict:
        return is_within(attributes, interest)
    return all([any([is_within([a], [outer]) for a in attributes]) for outer in interest if outer.operator != IS])


def _is_integer_subset(inner, outer):
    low, high, excluded_values = _intersect_constraints(inner)
    outer_low, outer_high, outer_excluded_values = _intersect_constraints(outer)
    if low > high:
        return True
    if low < outer_low or high > outer_high:
        return False
    return all([value in excluded_values or not low <= value <= high for value in outer_excluded_values])


def _intersect_constraints(constraints_of_key):
    """Return (lowest, highest, excluded values) of the integers that meet all constraints of a key.

    If no integer meets them, lowest is above highest.
    """
    lowest_value, highest_value, excluded_values = LOWEST, HIGHEST, set()
    for _, operator, bound in constraints_of_key:
        if operator in (EQ, GE):
            lowest_value = max(lowest_value, bound)
        if operator in (EQ, LE):
            highest_value = min(highest_value, bound)
        if operator == GT:
            lowest_value = max(lowest_value, bound + 1)
        if operator == LT:
            highest_value = min(highest_value, bound - 1)
        if operator == NE:
            excluded_values.add(bound)
    while lowest_value in excluded_values:
        lowest_value += 1
    while highest_value in excluded_values:
        highest_value -= 1
    return lowest_value, highest_value, excluded_values


def _is_blob_subset(inner, outer):
    allowed_values = {a.value for a in inner if a.operator == EQ}
    if allowed_values:
        possible_values = [v for v in allowed_values if all([satisfies(v, a.operator, a.value) for a in inner])]
        return all([satisfies(v, a.operator, a.value) for v in possible_values for a in outer])
    excluded_values = {a.value for a in inner if a.operator == NE}
    return all([a.operator == EQ_ANY or (a.operator == NE and a.value in excluded_values) for a in outer])
