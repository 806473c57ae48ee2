"""A check of a subscription that must match some publications and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .exercise import Verdict


def judge_matches(
    wanted: Iterable[str], unwanted: Iterable[str], matches: Callable[[str], bool], why_not: Callable[[str], str]
) -> Verdict:
    """Judge whether all ``wanted`` publications match and no ``unwanted`` publication does.

    ``matches`` returns whether the subscription matches a publication, ``why_not`` the reason if it does not.
    """
    for publication in wanted:
        if not matches(publication):
            return Verdict(False, f"It does not match {publication!r}: {why_not(publication)}.")
    for publication in unwanted:
        if matches(publication):
            return Verdict(False, f"It matches {publication!r} as well, which is not wanted.")
    return Verdict(True, "It matches every wanted publication and no other.")
