"""The name that was meant: what an error adds where somebody wrote a name that is not known.

This file runs on a mote too (MicroPython's subset of Python, which has no difflib). It is loaded by an error alone.
"""

LIKE = 0.65
CONTAINED = 0.3
_FEWEST_LETTERS = 3  # of a name that is looked for within others
_MOST_LETTERS = 40


def meant(name, known):
    """ " (did you mean TEMP?)" with the known name that is most like ``name``; "" if none is like it.

    Likeness is twice the length of the longest common subsequence over both lengths, whatever the case of the letters.
    A name that is contained in the other one is more alike: "delivery" means delivery_ratio.

    >>> meant("collision", ["loss", "collisions", "csma"])
    ' (did you mean collisions?)'
    """
    wrong = str(name)[:_MOST_LETTERS].lower()
    best, found = LIKE, ""
    for one in known:
        like = _likeness(wrong, one.lower())
        if like > best:
            best, found = like, one
    return " (did you mean %s?)" % found if found else ""


def _likeness(one, other):
    # longest[i]: of the letters so far and the first i letters of the other name.
    longest = [0] * (len(other) + 1)
    for letter in one:
        diagonal = 0
        for i in range(len(other)):
            above = longest[i + 1]
            longest[i + 1] = diagonal + 1 if letter == other[i] else max(above, longest[i])
            diagonal = above
    share = 2 * longest[-1] / max(len(one) + len(other), 1)
    is_contained = min(len(one), len(other)) >= _FEWEST_LETTERS and (one in other or other in one)
    return share + CONTAINED if is_contained else share
