"""Dimensions: keys that span a space of readings, each with a range of values.

"TEMP" is the key with the range that it has; "TEMP -20 50" is that key with a narrower one.

This file keeps to MicroPython's subset of Python, so that tests of nodes run there.
"""

from workbench.attributes.keys import key_of, make
from workbench.attributes.model import HIGHEST, LOWEST, is_blob
from workbench.errors import ParameterError


def read_dimensions(owner, texts):
    """[(key number, lowest, highest value)] of the dimensions, in the integers of the wire.

    ParameterError, in a sentence about ``owner``, if there are none, or if a key comes twice or has no numbers.
    """
    if not isinstance(texts, (tuple, list)):
        raise ParameterError("%s: dimensions is %r; write a tuple or a list, as in dimensions=[...]" % (owner, texts))
    found = [_read(owner, text) for text in texts]
    if not found or len({one[0] for one in found}) < len(found):
        raise ParameterError("%s: dimensions is %r; it must name one key or several, each once" % (owner, texts))
    return found


def _read(owner, text):
    words = text.split() if isinstance(text, str) else []
    if len(words) not in (1, 3):
        raise ParameterError('%s: a dimension is %r; write a key, as in "TEMP", or "TEMP -20 50"' % (owner, text))
    try:
        named = int(words[0]) if words[0].isdigit() else words[0]
    except ValueError:  # Digits that Python reads as no number: a raised two, or thousands of them.
        named = words[0]
    key = key_of(named)
    if is_blob(key.number):
        raise ParameterError("%s: dimension %s is a blob; only numbers can be mapped" % (owner, key.name))
    bounds = (key.minimum, key.maximum)
    if len(words) == 3:
        try:
            bounds = (float(words[1]), float(words[2]))
        except ValueError:
            raise ParameterError("%s: the range of dimension %r must be two numbers" % (owner, text)) from None
    low, high = [make(key.number, "EQ", bound).value for bound in bounds]
    if not LOWEST <= low < high <= HIGHEST:
        raise ParameterError("%s: the range of dimension %r must go from a lower to a higher value" % (owner, text))
    return key.number, low, high
