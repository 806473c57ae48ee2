"""Dimensions: attribute keys that span a space of readings, each with a range of values.

"TEMP" is the key with its full range; "TEMP -20 50" is the key with a narrower range.

This file keeps to MicroPython's subset of Python, so that tests of nodes can run under MicroPython.
"""

from workbench.attributes.keys import key_of, make
from workbench.attributes.model import HIGHEST, LOWEST, is_blob
from workbench.errors import ParameterError


def read_dimensions(owner, texts):
    """Parse ``texts`` as dimensions; return a list of (key number, lowest value, highest value).

    ``texts``: a list or tuple such as ("TEMP", "HUMIDITY 0 50"). Values are returned as the integers that frames carry
    (2650 for 26.5). ``owner``: the name with which error messages begin, for example that of the protocol. Raises
    ParameterError if a dimension is wrong or its key repeated, or if ``texts`` is empty.
    """
    if not isinstance(texts, (tuple, list)):
        raise ParameterError("%s: `dimensions` is %r; write a tuple or a list, as in dimensions=[...]" % (owner, texts))
    dimensions = [_read_dimension(owner, text) for text in texts]
    if not dimensions or len({number for number, _, _ in dimensions}) < len(dimensions):
        raise ParameterError("%s: `dimensions` is %r; it must name at least one key, and no key twice" % (owner, texts))
    return dimensions


def _read_dimension(owner, text):
    dimension_words = text.split() if isinstance(text, str) else []
    if len(dimension_words) not in (1, 3):
        raise ParameterError('%s: dimension is %r; it must be a key, as in "TEMP", or "TEMP -20 50"' % (owner, text))
    try:
        name_or_number = int(dimension_words[0]) if dimension_words[0].isdigit() else dimension_words[0]
    except ValueError:  # isdigit() accepts raised digits, and int() refuses very long numbers.
        name_or_number = dimension_words[0]
    key = key_of(name_or_number)
    if is_blob(key.number):
        raise ParameterError("%s: dimension is %s, a blob; it must be a key with numbers" % (owner, key.name))
    range_bounds = (key.minimum, key.maximum)
    if len(dimension_words) == 3:
        try:
            range_bounds = (float(dimension_words[1]), float(dimension_words[2]))
        except ValueError:
            raise ParameterError(
                "%s: dimension is %r; after the key, write two numbers, as in TEMP -20 50" % (owner, text)
            ) from None
    lowest_value, highest_value = [make(key.number, "EQ", bound).value for bound in range_bounds]
    if not LOWEST <= lowest_value < highest_value <= HIGHEST:
        raise ParameterError("%s: dimension is %r; its range must go from a lower to a higher value" % (owner, text))
    return key.number, lowest_value, highest_value
