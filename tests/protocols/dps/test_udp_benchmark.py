"""The benchmark of DPS over the loopback interface, in small."""

import asyncio
import sys

from tests.repository import REPOSITORY

sys.path.append(str(REPOSITORY / "benchmarks"))
import dps_udp


def test_round_trips_are_tabulated_with_those_of_the_c_implementation(capsys):
    report = asyncio.run(dps_udp.with_subscriber(dps_udp.round_trips, 40))
    rows = [line for line in report.splitlines() if line.startswith("|")]
    assert [row.split("|")[1].strip() for row in rows[2:]] == [
        "to a handler",
        "to a coroutine",
        "the C implementation, on a similar machine",
    ]
    assert "a second" in report


def test_endurance_examines_both_processes_and_detects_growth(capsys):
    sizes = asyncio.run(dps_udp.with_subscriber(dps_udp.measure_endurance, 60))
    assert [size.publications for size in sizes] == list(range(3, 61, 3))
    assert all(size.publisher_B > 0 and size.subscriber_B > 0 for size in sizes)
    capsys.readouterr()
    dps_udp.print_growth([dps_udp.Size(number, 10**7, 10**7 + number * 10**5) for number in range(1, 21)])
    publisher, subscriber = capsys.readouterr().out.splitlines()
    assert publisher.endswith("flat")
    assert subscriber.endswith("grows")
