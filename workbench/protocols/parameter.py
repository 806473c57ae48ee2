"""Parameters of protocols and filters: the entries of a parameter table, and the check of a parameter's value.

This file runs on a mote too (MicroPython's subset of Python).
"""

from collections import namedtuple

from workbench.errors import ParameterError

_LARGEST = 1e30
_LARGEST_WHOLE = 10**18  # fits the fast engine's 64-bit integers, with room to count beyond it
Parameter = namedtuple("Parameter", ("name", "default", "minimum", "maximum", "unit", "reason"))


def check_parameter(owner, parameter, value):
    """Return ``value``, converted to the type of the parameter's default value, if its type and range are valid.

    ``owner``: the name that begins an error message. ``parameter``: an entry of a parameter table. If its ``minimum``
    is a tuple, this tuple lists the allowed values; None as ``minimum`` or ``maximum`` sets no limit. Lists become
    tuples, and numbers of other libraries become Python's. Raises ParameterError if ``value`` is not valid.
    """
    name, default, minimum, maximum, unit, _ = parameter
    value = _to_plain_type(value, default)
    if isinstance(minimum, tuple):
        if value not in minimum:
            from workbench.suggestion import meant  # Only here, because a mote has no room for it.

            hint = meant(value, [choice for choice in minimum if isinstance(choice, str)])
            raise ParameterError(
                "%s: %s is %.60s%s; it must be one of %s"
                % (owner, name, repr(value), hint, ", ".join([repr(choice) for choice in minimum]))
            )
        return value
    if isinstance(default, tuple) and not isinstance(value, tuple):
        raise ParameterError(
            "%s: %s is %.60s; it must be a tuple or a list, as in %s=[...]" % (owner, name, repr(value), name)
        )
    is_number = isinstance(default, (int, float)) and not isinstance(default, bool)
    has_right_type = (
        isinstance(value, (int, float) if isinstance(default, float) else int) and not isinstance(value, bool)
        if is_number
        else isinstance(value, type(default))
    )
    # These conditions also reject NaN and, even in a range without a limit, infinity: JSON can represent neither.
    largest = _LARGEST if isinstance(default, float) else _LARGEST_WHOLE
    is_too_small = is_number and has_right_type and not value >= (-largest if minimum is None else minimum)
    is_too_large = is_number and has_right_type and not value <= (largest if maximum is None else maximum)
    if not has_right_type or is_too_small or is_too_large:
        if not is_number:
            allowed = {bool: "True or False", str: "a text"}.get(type(default), type(default).__name__)
        else:
            allowed = "a number" if isinstance(default, float) else "a whole number"
            # ``largest`` limits every parameter; the message mentions this limit only if the value exceeds it.
            if maximum is not None or is_too_large or (minimum is None and is_too_small):
                lowest, highest = -largest if minimum is None else minimum, largest if maximum is None else maximum
                allowed += " from %s to %s" % (lowest, highest) + (" " + unit if unit else "")
            else:
                allowed += ("" if minimum is None else ", %s or more" % minimum) + (", in " + unit if unit else "")
        raise ParameterError("%s: %s is %.60s; it must be %s" % (owner, name, repr(value), allowed))
    return value


def _to_plain_type(value, default):
    """Return ``value``; a list, or a number of a library such as NumPy, is converted if ``default`` requires it.

    If ``default`` is a tuple, a list becomes a tuple. If ``default`` is an int or a float, a library's integer becomes
    an int. If ``default`` is a float, a library's float becomes a float. Other values are not converted.
    """
    if isinstance(default, tuple):
        return tuple(value) if isinstance(value, list) else value
    if isinstance(default, bool) or not isinstance(default, (int, float)) or type(value) in (bool, int, float):
        return value
    try:
        if hasattr(value, "__index__"):
            return value.__index__()
        if isinstance(default, float) and hasattr(value, "__float__"):
            return float(value)
    except TypeError:  # An array has these methods too, but raises TypeError.
        pass
    return value
