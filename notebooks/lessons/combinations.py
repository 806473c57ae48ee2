"""Exercises of lesson 2: combining packets, packets in vain, the size of a generation."""

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
    """Coefficients for two packets whose combination has nothing of the first chunk."""
    for symbol in answer:
        field.check(symbol)
    vectors = zip(first.encoding_vector, second.encoding_vector, strict=True)
    combined = [field.add(field.multiply(answer[0], one), field.multiply(answer[1], other)) for one, other in vectors]
    if not any(answer):
        return Verdict(False, "Zero times both is a packet of zeros, which says nothing at all.")
    if combined[0]:
        return Verdict(False, f"The encoding vector is {combined}: the first chunk is in it {combined[0]} times.")
    return Verdict(True, f"The encoding vector is {combined}: an equation of the other chunks alone.")


def in_vain(answer: Any, order: int, generation_size: int, rank: int) -> Verdict:
    """How probable it is that a random packet is in vain for a node of this rank: counted over all vectors."""
    field_decoder = Decoder(generation_size, order)
    for place in range(rank):
        field_decoder.add([int(place == column) for column in range(generation_size)], bytes(1))
    vectors = [one for one in product(range(order), repeat=generation_size) if any(one)]
    useless = sum(not field_decoder.is_innovative(vector) for vector in vectors)
    truth = useless / len(vectors)
    said = f"of the {len(vectors)} vectors that a sender may draw, {useless} depend on what the node has"
    if abs(float(answer) - truth) <= NEAR:
        return Verdict(True, f"{said[0].upper()}{said[1:]}: {truth:.4f}.")
    if abs(float(answer) - (useless + 1) / (len(vectors) + 1)) <= NEAR:
        return Verdict(False, "That counts the vector of zeros too, which a sender draws again.")
    if abs(float(answer) - (1 - truth)) <= NEAR:
        return Verdict(False, "That is the probability that the packet is of use; asked is the contrary.")
    near = "too high" if float(answer) > truth else "too low"
    return Verdict(False, f"{float(answer):.4g} is {near}: count the vectors that depend on the {rank} packets.")


def size(answer: Any, scenarios: Mapping[Any, Scenario]) -> Verdict:
    """The generation size with which the fewest bytes are sent."""
    return cheapest(answer, scenarios, "bytes_sent", "bytes")


EXERCISES = {
    "02.1": Exercise(
        "two coefficients, such as [3, 2]",
        lambda one: isinstance(one, (list, tuple)) and len(one) == 2 and all(type(each) is int for each in one),
        without_first,
    ),
    "02.2": Exercise("a probability, such as 1/3", is_number, in_vain),
    "02.3": Exercise("a generation size", is_number, size),
}
