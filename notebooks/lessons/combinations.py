"""Exercises of lesson 2: combining packets, the probability of a useless packet, the size of a generation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from workbench.coding.fields import BinaryField, PrimeField
from workbench.coding.rlnc import CodedPacket, Decoder
from workbench.sim.scenario import Scenario

from .exercise import Exercise, Verdict, is_number
from .measured import cheapest

NEAR = 0.005


def without_first(
    answer: Sequence[int], first: CodedPacket, second: CodedPacket, field: BinaryField | PrimeField
) -> Verdict:
    """Judge two coefficients: in the sum of the packets times these coefficients, the first chunk must cancel out."""
    for symbol in answer:
        field.check(symbol)
    vectors = zip(first.encoding_vector, second.encoding_vector, strict=True)
    combined = [field.add(field.multiply(answer[0], left), field.multiply(answer[1], right)) for left, right in vectors]
    if not any(answer):
        return Verdict(False, "Zero times both gives a packet of zeros, which carries no information.")
    if combined[0]:
        return Verdict(
            False, f"The encoding vector is {combined}: the first chunk is in it {combined[0]} times; it must cancel."
        )
    return Verdict(True, f"The encoding vector is {combined}: an equation of the other chunks alone.")


def in_vain(answer: Any, order: int, generation_size: int, rank: int) -> Verdict:
    """Judge the probability that a random packet is useless to a node of this rank.

    The check computes the right answer by counting the useless ones of all nonzero encoding vectors.
    """
    decoder = Decoder(generation_size, order)
    for row in range(rank):
        decoder.add([int(row == column) for column in range(generation_size)], bytes(1))
    vectors = [vector for vector in product(range(order), repeat=generation_size) if any(vector)]
    useless = sum(not decoder.is_innovative(vector) for vector in vectors)
    truth = useless / len(vectors)
    count = f"Of the {len(vectors)} vectors that a sender may draw, {useless} depend on the packets that the node has"
    if abs(float(answer) - truth) <= NEAR:
        return Verdict(True, f"{count}: {truth:.4f}.")
    if abs(float(answer) - (useless + 1) / (len(vectors) + 1)) <= NEAR:
        return Verdict(False, "This counts the vector of zeros too; a sender draws again instead of sending it.")
    if abs(float(answer) - (1 - truth)) <= NEAR:
        return Verdict(False, "This is the probability of a useful packet; the question is how often it is useless.")
    deviation = "too high" if float(answer) > truth else "too low"
    return Verdict(False, f"{float(answer):.4g} is {deviation}: count the vectors that depend on the {rank} packets.")


def size(answer: Any, scenarios: Mapping[Any, Scenario]) -> Verdict:
    """Judge the generation size: it must be the one of ``scenarios`` that sends the fewest bytes."""
    return cheapest(answer, scenarios, "bytes_sent", "bytes")


EXERCISES = {
    "02.1": Exercise(
        "two coefficients, such as [3, 2]",
        lambda answer: (
            isinstance(answer, (list, tuple)) and len(answer) == 2 and all(type(value) is int for value in answer)
        ),
        without_first,
    ),
    "02.2": Exercise("a probability, such as 1/3", is_number, in_vain),
    "02.3": Exercise("a generation size", is_number, size),
}
