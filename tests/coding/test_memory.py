"""A mote's memory: a decoder of 16 chunks of 64 bytes takes a few KiB and does not grow once it is full."""

import sys

import pytest

from tests.families import family_except
from tests.repository import REPOSITORY

sys.path.append(str(REPOSITORY / "hardware"))
import interpreter

from workbench.motes.program import compile_file

missing = interpreter.why_missing()
pytestmark = pytest.mark.skipif(missing is not None, reason=str(missing))

CODE = ("errors", "draws", "coding/fields", "coding/rlnc")
LOAD = """
from workbench import draws
from workbench.coding import fields
from workbench.coding.rlnc import Decoder, Encoder, split
"""
FILL = """
encoder = Encoder(split(bytes(range(256)) * 4, 16, {order}), {order})
decoder = Decoder(16, {order})
for _ in range({packets}):
    decoder.add(*encoder.encode())
encoder = None
"""


def memory_B(*pieces):
    files = dict(compile_file(f"workbench/{name}.py", REPOSITORY / "workbench" / f"{name}.py") for name in CODE)
    return interpreter.measure(files, pieces)


@pytest.mark.parametrize("order", family_except([2, 16, 256, 65536], 256))
def test_decoder_of_16_chunks_of_64_bytes_takes_a_few_KiB_and_stops_growing(order):
    loaded, full = memory_B(LOAD, FILL.format(order=order, packets=40))
    _, fuller = memory_B(LOAD, FILL.format(order=order, packets=400))
    assert 16 * 64 < full - loaded < 6 * 1024
    assert fuller - full < 1024  # storing each packet would take at least 80 bytes, 360 times


def test_fields_and_coding_take_a_quarter_of_a_mote_at_most():
    before, loaded = memory_B("import workbench.errors, workbench.draws", LOAD)
    assert 0 < loaded - before < 16 * 1024
