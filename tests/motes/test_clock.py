"""A mote's clock mapped to the host's: offset, drift, slow and uneven delays, and a clock that is set again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.motes.clock import Clock

SECOND_US = 1_000_000


class Oscillator:
    """A mote's clock that starts at ``offset_us`` and runs ``ppm`` millionths too fast."""

    def __init__(self, offset_us=0, ppm=0.0):
        self.offset_us, self.ppm = offset_us, ppm

    def at(self, host_us):
        return round(self.offset_us + host_us * (1 + self.ppm * 1e-6))

    def answer(self, clock, at_us, there_us=100, back_us=100):
        clock.add(at_us, at_us + there_us + back_us, self.at(at_us + there_us))


def test_a_clock_without_readings_equals_the_hosts():
    clock = Clock()
    assert clock.to_host_us(1234) == 1234
    assert clock.error_us == float("inf")


@given(st.integers(0, 1 << 50), st.integers(0, 1 << 40))
def test_one_answer_gives_the_offset_to_half_its_round_trip(offset_us, at_us):
    clock, mote = Clock(), Oscillator(offset_us)
    mote.answer(clock, at_us, 300, 300)
    assert clock.to_host_us(mote.at(at_us)) == pytest.approx(at_us, abs=1)
    assert clock.error_us == 300


@given(st.lists(st.tuples(st.integers(0, 50_000), st.integers(0, 50_000)), min_size=1, max_size=40))
def test_uneven_delays_never_exceed_the_reported_error(delays):
    clock, mote = Clock(), Oscillator(777)
    for i, (there_us, back_us) in enumerate(delays):
        mote.answer(clock, i * 100_000, there_us, back_us)  # within 5 s, too short to estimate a drift
        fastest = min((there + back) / 2 for there, back in delays[max(0, i - 31) : i + 1])
        assert clock.error_us == fastest
    newer = delays[-32:][len(delays[-32:]) // 2 :]
    off_us = abs(clock.to_host_us(mote.at(1_000_000)) - 1_000_000)
    assert off_us <= min((there + back) / 2 for there, back in newer) + 1


def test_the_fastest_answer_sets_the_offset():
    clock, mote = Clock(), Oscillator(5000)
    mote.answer(clock, 0, 50, 50)
    mote.answer(clock, 1000, 50, 50)
    mote.answer(clock, 2000, 90_000, 10)
    assert clock.to_host_us(mote.at(10_000)) == 10_000


@pytest.mark.parametrize("ppm", [-200, -40, 10, 40, 200])
def test_a_drift_is_followed(ppm):
    clock, mote = Clock(), Oscillator(123_456, ppm)
    for second in range(60):
        mote.answer(clock, second * SECOND_US, 200, 200)
    for at_us in (30 * SECOND_US, 60 * SECOND_US, 120 * SECOND_US):
        assert abs(clock.to_host_us(mote.at(at_us)) - at_us) < 300


def test_a_drift_with_uneven_delays_stays_within_the_tolerance_of_a_crystal():
    clock, mote = Clock(), Oscillator(0, 40)
    for second in range(40):
        mote.answer(clock, second * SECOND_US, 20_000 if second % 2 else 100, 100)
    assert abs(clock.to_host_us(mote.at(40 * SECOND_US)) - 40 * SECOND_US) < 1000


def test_answers_with_an_impossible_drift_are_noise():
    clock = Clock()
    clock.add(0, 0, 0)
    clock.add(10 * SECOND_US, 10 * SECOND_US, 9 * SECOND_US)
    # Beyond the newest answer the clock drifts by at most 500 millionths.
    assert clock.to_host_us(10 * SECOND_US) == pytest.approx(11 * SECOND_US, abs=501)


def test_readings_from_before_a_clock_was_set_are_forgotten():
    clock = Clock()
    Oscillator(10**9).answer(clock, 0)
    clock.forget()
    assert clock.to_host_us(55) == 55
    Oscillator(0).answer(clock, SECOND_US)
    assert clock.to_host_us(2 * SECOND_US) == 2 * SECOND_US


def test_a_clock_that_is_reset_during_a_conversion_gives_a_time():
    class Forgetful(Clock):
        """A clock whose readings vanish as soon as a caller checks whether it has any."""

        def __init__(self):
            super().__init__()
            self._readings = Vanishing()

    class Vanishing(list):
        def __bool__(self):
            self.clear()
            return True

    clock = Forgetful()
    clock.add(0, 0, 7)
    assert clock.to_host_us(8) in (1, 8)


def test_old_answers_make_room_for_new_ones():
    clock = Clock()
    Oscillator(0).answer(clock, 0, 0, 0)
    for i in range(32):
        Oscillator(0).answer(clock, i * 1000, 400, 400)
    assert clock.error_us == 400
