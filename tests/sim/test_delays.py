"""Delays of broadcasts: a batch has the same values as delays drawn one by one."""

from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import draws, purposes
from workbench.sim.delays import Delays, node_keys

U64 = st.integers(0, 2**64 - 1)


@given(U64, st.lists(st.integers(0, 2**31 - 1), min_size=1))
def test_keys_of_all_nodes_equal_those_made_one_by_one(seed, addresses):
    prefix = draws.make_key(seed, purposes.JITTER)
    assert node_keys(prefix, tuple(addresses)) == [
        draws.make_key(seed, purposes.JITTER, address) for address in addresses
    ]


@settings(max_examples=50)
@given(st.lists(U64, min_size=1, max_size=40), st.integers(0, 10**6), st.integers(0, 10**9), st.data())
def test_delay_does_not_depend_on_other_nodes(keys, shortest, width, data):
    delays = Delays(keys, shortest, shortest + width)
    node = st.integers(0, len(keys) - 1)
    for i, counter in data.draw(st.lists(st.tuples(node, st.integers(1, 30)), max_size=200)):
        assert delays.draw(i, counter) == shortest + draws.below(keys[i], counter, width + 1)


def test_delays_of_a_flood_are_drawn_in_a_batch_and_old_batches_are_dropped():
    delays = Delays(list(range(100)), 1000, 5000)
    for counter in range(1, 50):
        for i in range(100):
            assert 1000 <= delays.draw(i, counter) <= 5000
    assert 1 <= len(delays._columns) <= 8
    alone = Delays(list(range(100)), 1000, 5000)
    for counter in range(1, 5000):
        alone.draw(7, counter)
    assert not alone._columns and len(alone._requests) <= 1000
