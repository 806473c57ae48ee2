"""A node on a real socket that receives datagrams which no node would send."""

import asyncio
import sys

from tests.repository import REPOSITORY

sys.path.append(str(REPOSITORY / "benchmarks"))
from fuzz import fuzz_socket


def test_a_node_on_a_socket_survives_any_datagrams():
    """The benchmark fails on any exception in the event loop; forged neighbors are forgotten."""
    report = asyncio.run(fuzz_socket(20_000, seed=5))
    assert "0 exceptions, 0 links left" in report
    assert "'malformed'" in report
