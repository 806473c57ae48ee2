"""A mote's clock on the host's: offset, drift, answers on slow and uneven ways, and a clock that is set anew."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.motes.clock import Clock

SECOND_US = 1_000_000


class Oscillator:
    """A mote's clock that begins at ``offset_us`` and goes ``ppm`` millionths too fast."""

    def __init__(self, offset_us=0, ppm=0.0):
        self.offset_us, self.ppm = offset_us, ppm

    def at(self, host_us):
        return round(self.offset_us + host_us * (1 + self.ppm * 1e-6))

    def ask(self, clock, at_us, there_us=100, back_us=100):
        clock.add(at_us, at_us + there_us + back_us, self.at(at_us + there_us))


def test_a_clock_that_was_never_read_is_taken_for_ours():
    clock = Clock()
    assert clock.to_host_us(1234) == 1234
    assert clock.error_us == float("inf")


@given(st.integers(0, 1 << 50), st.integers(0, 1 << 40))
def test_one_answer_gives_the_offset_to_half_its_way(offset_us, at_us):
    clock, mote = Clock(), Oscillator(offset_us)
    mote.ask(clock, at_us, 300, 300)
    assert clock.to_host_us(mote.at(at_us)) == pytest.approx(at_us, abs=1)
    assert clock.error_us == 300


@given(st.lists(st.tuples(st.integers(0, 50_000), st.integers(0, 50_000)), min_size=1, max_size=40))
def test_uneven_ways_never_cost_more_than_the_error_that_is_told(ways):
    clock, mote = Clock(), Oscillator(777)
    for i, (there_us, back_us) in enumerate(ways):
        mote.ask(clock, i * 100_000, there_us, back_us)  # within 5 s: too short a time to tell a drift
        fastest = min((there + back) / 2 for there, back in ways[max(0, i - 31) : i + 1])
        assert clock.error_us == fastest
    newer = ways[-32:][len(ways[-32:]) // 2 :]
    off_us = abs(clock.to_host_us(mote.at(1_000_000)) - 1_000_000)
    assert off_us <= min((there + back) / 2 for there, back in newer) + 1


def test_the_fastest_answer_is_believed():
    clock, mote = Clock(), Oscillator(5000)
    mote.ask(clock, 0, 50, 50)
    mote.ask(clock, 1000, 50, 50)
    mote.ask(clock, 2000, 90_000, 10)
    assert clock.to_host_us(mote.at(10_000)) == 10_000


@pytest.mark.parametrize("ppm", [-200, -40, 10, 40, 200])
def test_a_drift_is_followed(ppm):
    clock, mote = Clock(), Oscillator(123_456, ppm)
    for second in range(60):
        mote.ask(clock, second * SECOND_US, 200, 200)
    for at_us in (30 * SECOND_US, 60 * SECOND_US, 120 * SECOND_US):
        assert abs(clock.to_host_us(mote.at(at_us)) - at_us) < 300


def test_a_drift_on_uneven_ways_stays_within_what_a_crystal_does():
    clock, mote = Clock(), Oscillator(0, 40)
    for second in range(40):
        mote.ask(clock, second * SECOND_US, 20_000 if second % 2 else 100, 100)
    assert abs(clock.to_host_us(mote.at(40 * SECOND_US)) - 40 * SECOND_US) < 1000


def test_answers_that_speak_of_an_impossible_drift_are_noise():
    clock = Clock()
    clock.add(0, 0, 0)
    clock.add(10 * SECOND_US, 10 * SECOND_US, 9 * SECOND_US)
    # Beyond the newest answer the clock goes at most 500 millionths off.
    assert clock.to_host_us(10 * SECOND_US) == pytest.approx(11 * SECOND_US, abs=501)


def test_what_was_read_before_a_clock_was_set_is_forgotten():
    clock = Clock()
    Oscillator(10**9).ask(clock, 0)
    clock.forget()
    assert clock.to_host_us(55) == 55
    Oscillator(0).ask(clock, SECOND_US)
    assert clock.to_host_us(2 * SECOND_US) == 2 * SECOND_US


def test_a_clock_that_is_forgotten_while_it_is_asked_gives_a_time():
    class Forgetful(Clock):
        """Whose readings are gone as soon as somebody has looked whether there are any."""

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
    Oscillator(0).ask(clock, 0, 0, 0)
    for i in range(32):
        Oscillator(0).ask(clock, i * 1000, 400, 400)
    assert clock.error_us == 400
