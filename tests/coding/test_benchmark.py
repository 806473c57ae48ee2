"""The benchmark of network coding compares equal work: every contender encodes and decodes the same generation."""

import sys

import numpy as np
import pytest

from tests.repository import REPOSITORY

pytest.importorskip("galois")
sys.path.append(str(REPOSITORY / "benchmarks"))
import coding
from coding_contenders import GALOIS, MAKERS, OURS, OURS_AT_ONCE, generation
from native import Absent

pytestmark = pytest.mark.family
CONTENDERS = [("workbench", lambda: OURS), ("all at once", lambda: OURS_AT_ONCE), ("galois", lambda: GALOIS), *MAKERS]


@pytest.mark.parametrize(("name", "make"), CONTENDERS, ids=[name for name, _ in CONTENDERS])
def test_all_contenders_encode_and_decode_the_same_and_agree_on_innovative_vectors(name, make):
    try:
        contender = make()
    except Absent as reason:
        pytest.skip(str(reason))
    for size_B in (1, 100, 1040):
        contender.check(generation(5, size_B))
    if contender.innovative is None:
        return
    known = generation(4, 8).vectors[:-1]
    dependent = np.array([known[0], known[1] ^ known[2], known[0] ^ known[2], np.zeros(4)], np.uint8)
    assert contender.innovative(known, generation(4, 8).vectors)() == 1
    assert contender.innovative(known, dependent)() == 0


def test_a_contender_with_a_different_result_is_an_error():
    lazy = OURS._replace(name="lazy", encode=lambda data: lambda: data.chunks)
    with pytest.raises(AssertionError, match="lazy encodes wrongly"):
        lazy.check(generation(3, 16))


def test_tables_have_a_row_per_contender_and_ratio_1_for_ours():
    text = coding.coding_table(generation(2, 64), [OURS, OURS_AT_ONCE], runs=1, run_s=0.001)
    assert len(text.splitlines()) == 4
    assert text.splitlines()[2].split("|")[4].strip() == "1"
