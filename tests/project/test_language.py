"""Breaches of the rules of language are counted, and their numbers may only fall."""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.project import language

CEILINGS = json.loads((Path(__file__).parent / "language.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def breaches():
    return list(language.breaches())


def test_no_rule_is_broken_more_often_than_before(breaches):
    counts = Counter(breach.rule for breach in breaches)
    worse = {rule: count for rule, count in counts.items() if count > CEILINGS.get(rule, 0)}
    places = [f"{b.path}:{b.line}: {b.rule}: {b.text[:80]}" for b in breaches if b.rule in worse]
    assert not worse, "\n".join(["more breaches than tests/project/language.json allows:", *places[:40]])


def test_ceilings_are_as_low_as_the_counts(breaches):
    counts = Counter(breach.rule for breach in breaches)
    lower = {rule: counts[rule] for rule in CEILINGS if counts[rule] < CEILINGS[rule]}
    assert not lower, f"write these numbers into tests/project/language.json: {lower}"


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ('def f():\n    """The neighbor with the fewest hops."""', "public docstring not imperative"),
        ('def _f():\n    """The neighbor with the fewest hops."""', "private docstring not imperative"),
        ('"""What views need."""', "docstring begins vaguely"),
        ('"""Rows that a node is in order of."""', "docstring lost preposition"),
        ('"""A page tells the reader."""', "docstring speaks"),
        ('"""The result is none."""', "docstring negation"),
        ("found = 1", "empty name"),
        ("def f(told_seat): ...", "foreign name"),
        ("raise ValueError('the frame is no frame')", "negation in a message"),
        ("x = 1  # somebody waits", "comment foreign word"),
    ],
)
def test_breach_is_recognised(source, rule):
    assert [breach.rule for breach in language._of_source(source, "made_up.py")][:1] == [rule]


@pytest.mark.parametrize(
    "source",
    [
        'def f():\n    """Return the neighbor with the fewest hops, or None."""',
        'class F:\n    @property\n    def f(self):\n        """The number of hops."""',
        "one_way_delay_us = 1",
        '"""What is a gradient? A direction and a rate."""',
    ],
)
def test_plain_sentence_is_no_breach(source):
    assert not list(language._of_source(source, "made_up.py"))
