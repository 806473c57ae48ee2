"""How two interests compare: whether their constraints are the same, and whether one lies within the other.

Differs from the original in (as in model.py, A16, A20, ... number its gaps)
    A16  interests overlap whatever their INTERVAL, unless it is a constraint on data ("INTERVAL LE 5") and no IS.
    A20  `is_within` is the relaxed match of a reinforcement: never less constrained than the interest.

This file runs on a mote too (MicroPython's subset of Python). A mote loads it for diffusion alone.
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
    """The attributes in a canonical order without INTERVAL: equal for interests that overlap (A16).

    An INTERVAL that constrains data stays, or the sink that asks without it would be given what the other one wants.
    The value beside EQ_ANY means nothing.
    """
    canonical = []
    for attribute in attributes:
        key, operator, _ = attribute
        if operator == EQ_ANY:
            attribute = Attribute(key, EQ_ANY, b"" if is_blob(key) else 0)
        if key != INTERVAL or operator != IS:
            # The attribute itself and no copy: a mote keeps these for as long as the interest.
            canonical.append(attribute)
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
