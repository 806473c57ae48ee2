"""The costly tests: few of their examples and parameters run in `make test`, all of them in `make test-all`."""

import pytest
from hypothesis import settings

SHARE = 5
FAMILY_SHARE = 0.6
FEWEST = 8


def examples(count):
    """Return 60 % of `count` under the profile `family`, which draws afresh; otherwise 20 %, at least `FEWEST`."""
    if settings.get_current_profile_name() == "family":
        return max(1, round(FAMILY_SHARE * count))
    return min(count, max(FEWEST, count // SHARE))


def family_except(values, *always):
    """Return the values of a parametrized test, all but ``always`` with the marker `family`.

    A value of several parameters is a tuple.
    """
    assert set(always) <= set(values), always
    of_one = {value: value if isinstance(value, tuple) else (value,) for value in values}
    return [pytest.param(*of_one[value], marks=() if value in always else pytest.mark.family) for value in values]
