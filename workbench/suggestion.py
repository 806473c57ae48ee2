"""Suggestions for misspelled names: an error message adds the known name that is most similar to the unknown one.

This file runs on a mote too (MicroPython's subset of Python, which has no difflib). Only errors load it.
"""

LIKE = 0.65
CONTAINED = 0.3
_FEWEST_LETTERS = 3  # a shorter name is not searched for inside other names
_MOST_LETTERS = 40


def meant(name, known):
    """Return " (did you mean TEMP?)" with the known name most similar to ``name``, or "" if none is similar.

    Similarity is twice the length of the longest common subsequence divided by the sum of both lengths; case does not
    count. A name that contains the other one scores higher: "delivery" suggests delivery_ratio.

    >>> meant("collision", ["loss", "collisions", "csma"])
    ' (did you mean collisions?)'
    """
    wrong = str(name)[:_MOST_LETTERS].lower()
    best, closest = LIKE, ""
    for candidate in known:
        similarity = _similarity(wrong, candidate.lower())
        if similarity > best:
            best, closest = similarity, candidate
    return " (did you mean %s?)" % closest if closest else ""


def _similarity(name, other):
    # longest[i]: common subsequence of the letters so far and the first i letters of the other name.
    longest = [0] * (len(other) + 1)
    for letter in name:
        diagonal = 0
        for i in range(len(other)):
            above = longest[i + 1]
            longest[i + 1] = diagonal + 1 if letter == other[i] else max(above, longest[i])
            diagonal = above
    share = 2 * longest[-1] / max(len(name) + len(other), 1)
    is_contained = min(len(name), len(other)) >= _FEWEST_LETTERS and (name in other or other in name)
    return share + CONTAINED if is_contained else share
