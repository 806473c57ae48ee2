"""Exercises of lesson 4: wildcards, a publication that goes somewhere in vain, the length of a filter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import workbench as wb

from .exercise import Exercise, Verdict, is_number, is_text
from .figures.topics import routing_steps
from .telling_apart import tells_apart


def subscription(answer: str, wanted: Iterable[str], unwanted: Iterable[str]) -> Verdict:
    """A subscription's topic that matches all wanted topics and no other."""
    wb.dps.topics.check_subscription_topic(answer)
    levels = f"{answer!r} has {answer.count('/') + 1} levels"
    return tells_apart(
        wanted,
        unwanted,
        lambda topic: wb.dps.topics.matches(topic, answer),
        lambda topic: f"{levels}, and one of them says something else than {topic!r} has there",
    )


def in_vain(answer: str, subscribed: str) -> Verdict:
    """A topic that has all items of a subscription, and does not match it."""
    published, asked = wb.dps.topics.publication_items(answer), wb.dps.topics.subscription_items(subscribed)
    lacks = [item for item in asked if item not in published]
    if lacks:
        return Verdict(False, f"{answer!r} does not go there: it lacks the item {lacks[0]!r} of {subscribed!r}.")
    if wb.dps.topics.matches(answer, subscribed):
        return Verdict(False, f"{answer!r} goes there and is wanted there: it matches {subscribed!r}.")
    items = ", ".join(map(repr, asked)) or "no items at all"
    return Verdict(True, f"It has all of {subscribed!r} ({items}) and does not match; the subscriber sorts it out.")


def length(answer: Any, topic: str, behind: Sequence[str], lengths: Sequence[int], hashes: int) -> Verdict:
    """The shortest of some filter lengths at which a link with subscriptions behind it stops a topic."""
    if answer not in lengths:
        return Verdict(False, f"{answer!r:.40} is not one of the lengths {', '.join(map(str, lengths))}.")
    decisions = {bits: routing_steps(topic, list(behind), bits, hashes) for bits in sorted(lengths)}
    if decisions[answer].goes:
        return Verdict(False, f"With {answer} bits: {decisions[answer].verdict()}")
    shortest = next(bits for bits, decision in decisions.items() if not decision.goes)
    if shortest != answer:
        return Verdict(False, f"{answer} bits stop it; there is a shorter filter that does.")
    return Verdict(True, f"With {answer} bits: {decisions[answer].verdict()}")


EXERCISES = {
    "04.1": Exercise('the topic of a subscription, such as "house/#"', is_text, subscription),
    "04.2": Exercise('the topic of a publication, such as "a/b"', is_text, in_vain),
    "04.3": Exercise("a number of bits", is_number, length),
}
