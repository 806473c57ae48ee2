"""The number of examples of the costly property tests: few in `make test`, all of them in `make test-all`."""

from hypothesis import settings

SHARE = 5
FEWEST = 8


def examples(count):
    """Return `count` under the profile `family`, which draws afresh; otherwise a fifth of it, but at least `FEWEST`."""
    return count if settings.get_current_profile_name() == "family" else min(count, max(FEWEST, count // SHARE))
