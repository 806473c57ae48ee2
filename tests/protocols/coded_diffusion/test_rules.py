"""The rules of coded diffusion: how many packets a node sends, when it forgets events, and when it is full."""

from hypothesis import given
from hypothesis import strategies as st

from workbench.protocols.coded_diffusion import rules


def test_packets_to_send_are_forwarding_factor_times_innovative_packets_rounded_up():
    table = [(0.5, 0, 0), (0.5, 1, 1), (0.5, 2, 1), (0.5, 3, 2), (1.0, 16, 16), (0.001, 1, 1), (0.001, 1000, 1)]
    for forwarding_factor, fresh, packets in table:
        assert rules.packets_to_send(forwarding_factor, fresh) == packets


def test_floating_point_errors_of_a_whole_product_are_not_rounded_up():
    assert 0.07 * 100 > 7
    assert rules.packets_to_send(0.07, 100) == 7


@given(st.integers(1, 100), st.integers(0, 255))
def test_packets_to_send_agree_with_integer_arithmetic(hundredths, fresh):
    assert rules.packets_to_send(hundredths / 100, fresh) == -(-hundredths * fresh // 100)


def test_collecting_time_is_in_whole_microseconds():
    assert [rules.collecting_us(ms) for ms in (50, 0.001, 0.0019, 2.5)] == [50000, 1, 1, 2500]


def test_event_is_remembered_until_its_neighbors_have_finished_collecting():
    table = [(10.0, 2, 50000, 10000000), (0.0, 2, 50000, 200000), (0.5, 16, 50000, 1600000), (2.0, 16, 50000, 2000000)]
    for forget_after_s, generation_size, collecting_us, forget_after_us in table:
        assert rules.forget_after_us(forget_after_s, generation_size, collecting_us, 0) == forget_after_us
    assert rules.forget_after_us(0.5, 2, 50000, 850000) == 1700000  # longer than a decoded event is stored


def test_decoded_event_is_stored_until_its_last_request():
    for collecting_us, max_requests in [(50000, 1), (50000, 3), (1, 255)]:
        request_after_us = rules.request_after_us(collecting_us)
        last_request_us = collecting_us + max_requests * request_after_us
        assert rules.keep_us(max_requests, collecting_us, request_after_us) > last_request_us
    assert rules.keep_us(0, 50000, 200000) == 0


def test_event_is_quiet_from_the_end_of_its_time():
    assert [rules.is_quiet(now, 100, 50) for now in (100, 149, 150, 151)] == [False, False, True, True]


def test_node_is_full_if_all_ids_or_matrices_are_used():
    table = [(0, 0, False), (9, 5, False), (10, 0, True), (9, 6, True), (11, 6, True)]
    for known, generations, is_full in table:
        assert rules.is_full(known, 10, generations, 5) is is_full
