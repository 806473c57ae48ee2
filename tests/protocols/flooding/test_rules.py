"""The rules of flooding."""

from workbench.protocols.flooding.rules import hops_taken
from workbench.protocols.flooding.wire import LONGEST_TTL


def test_frame_with_the_initial_ttl_has_travelled_one_hop_and_each_hop_decrements_it():
    table = [(10, 10, 1), (10, 9, 2), (10, 1, 10), (1, 1, 1), (LONGEST_TTL, 1, LONGEST_TTL)]
    for first_ttl, ttl, hops in table:
        assert hops_taken(first_ttl, ttl) == hops
