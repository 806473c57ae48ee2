"""Suggestions for misspelled names: an error message adds the known name that is most similar to the unknown one.

This file runs on a mote too (MicroPython's subset of Python, which has no difflib). Only errors load it.
"""

LIKE = 0.65
CONTAINED = 0.3
_SHORTEST = 3  # characters; a shorter name is not searched for inside other names
_LONGEST = 40  # characters of a name that are compared


def meant(name, known):
    """Return " (did you mean TEMP?)" with the known name most similar to ``name``, or "" if none is similar.

    The similarity of two names is twice the length of their longest common subsequence, divided by the sum of their
    lengths; case does not count. If one name contains the other, their similarity is increased: "delivery" suggests
    delivery_ratio.

    >>> meant("collision", ["loss", "collisions", "csma"])
    ' (did you mean collisions?)'
    """
    unknown_name = str(name)[:_LONGEST].lower()
    greatest_similarity, closest_name = LIKE, ""
    for candidate in known:
        similarity = _similarity(unknown_name, candidate.lower())
        if similarity > greatest_similarity:
            greatest_similarity, closest_name = similarity, candidate
    return " (did you mean %s?)" % closest_name if closest_name else ""


def _similarity(name, other_name):
    # longest[i]: common subsequence of the characters so far and the first i characters of the other name.
    common_lengths = [0] * (len(other_name) + 1)
    for character in name:
        diagonal_length = 0
        for i in range(len(other_name)):
            length_above = common_lengths[i + 1]
            common_lengths[i + 1] = (
                diagonal_length + 1 if character == other_name[i] else max(length_above, common_lengths[i])
            )
            diagonal_length = length_above
    similarity = 2 * common_lengths[-1] / max(len(name) + len(other_name), 1)
    is_contained = min(len(name), len(other_name)) >= _SHORTEST and (name in other_name or other_name in name)
    return similarity + CONTAINED if is_contained else similarity
