"""The tests of a mote's files, run unchanged under MicroPython, with stand-ins for pytest and hypothesis.

Theory of operation
    MicroPython on node runs each file of tests in a separate process, with tests/micropython instead of pytest and
    hypothesis. A @given test draws a few examples there (`make test-all`: a hundred) and does not shrink them: they
    search for differences between MicroPython and Python, where the same test draws more. Tests that cannot run there
    are listed here by name. A skipped test that is not listed is a failure, and so is a listed test that runs.
"""

import json
import re
import sys

import pytest

from tests.repository import REPOSITORY

sys.path.append(str(REPOSITORY / "hardware"))
import interpreter

from tests.protocols.tinymq.test_wire import GOLDEN as TINYMQ_FRAMES
from workbench.motes.program import sources
from workbench.protocols.tinymq import wire as tinymq_wire

TESTS = REPOSITORY / "tests"
STAND_INS = TESTS / "micropython"
HOST_S = [
    REPOSITORY / "workbench" / name
    for name in (
        *("attributes/__init__.py", "protocols/protocol.py"),
        *("protocols/diffusion/filters/__init__.py", "protocols/diffusion/filters/value.py"),
    )
]
TIMEOUT_S = 1200  # for a busy machine
FEW = 6  # examples in `make test`, which also leaves out the longest tests of each file
LONG = {
    "coding/test_rlnc": ("test_decode_undoes_encode_over_hops_loss_duplication_and_reordering",),
    "protocols/coded_diffusion/test_node": ("test_intermediate_node_decodes_from_what_is_innovative",),
    "protocols/coded_diffusion/test_wire": (
        "test_coded_packets_of_an_event_decode_to_it",
        "test_every_one_and_two_flipped_bits_are_a_decode_error",
    ),
}
NETWORKX, NUMPY = "a mote has no networkx", "a mote has no numpy"
# File of tests -> the tests in it that a mote cannot run, and why.
FILES = {
    "attributes/test_model": {},
    "attributes/test_text": {
        "test_half_of_a_surrogate_pair_is_not_valid_text": "MicroPython encodes half of a surrogate pair",
    },
    "protocols/test_subscriptions": {},
    "protocols/flooding/test_rules": {},
    "protocols/coded_diffusion/test_rules": {},
    "protocols/diffusion/test_rules": {},
    "protocols/diffusion/test_wire": {},
    "protocols/flooding/test_wire": {},
    "protocols/coded_diffusion/test_wire": {},
    "protocols/diffusion/test_node": {
        "test_every_sink_gets_every_matching_reading_once_and_nothing_when_it_has_unsubscribed": NETWORKX,
    },
    "protocols/coded_diffusion/test_node": {},
    "protocols/diffusion/test_interests": {"test_each_node_sends_an_interest_once": NETWORKX},
    "protocols/diffusion/test_reinforcement": {},
    "protocols/diffusion/test_merging": {},
    "protocols/flooding/test_node": {
        "test_every_node_holds_every_event_once_in_whatever_order_links_deliver": NETWORKX,
    },
    "protocols/gossip/test_pieces": {
        "test_every_event_is_held_once_and_right_in_whatever_order_links_deliver": NETWORKX,
    },
    "motes/test_probes": {},
    "coding/test_fields": {"test_arithmetic_equals_that_of_galois": NUMPY},
    "coding/test_rlnc": {},
    "protocols/diffusion/test_filters": {"test_numbers_of_numpy_are_numbers_and_become_pythons": NUMPY},
}

missing = interpreter.why_missing()


def files_of_a_mote():
    """Return {path: source} of the mote's own files and the tests; sources give tracebacks with line numbers."""
    # The files of a mote, and the packages of the protocols, which make the tested nodes.
    on_mote = {name: path for name, path in sources("virtual") if name.startswith("workbench/")}
    for path in (*(REPOSITORY / "workbench" / "protocols").glob("*/__init__.py"), *HOST_S):
        on_mote[path.relative_to(REPOSITORY).as_posix()] = path
    on_mote |= {path.relative_to(STAND_INS).as_posix(): path for path in sorted(STAND_INS.rglob("*.py"))}
    on_mote |= {f"tests/{name}.py": TESTS / f"{name}.py" for name in ("neighbor", "network", *FILES)}
    return {name: path.read_bytes() for name, path in on_mote.items()}


@pytest.mark.skipif(missing is not None, reason=str(missing))
@pytest.mark.parametrize("examples", [FEW, pytest.param(100, marks=pytest.mark.family)])
@pytest.mark.parametrize("name", FILES)
def test_file_of_tests_passes_under_micropython(name, examples):
    module = f"tests.{name}".replace("/", ".")
    left_out = LONG.get(name, ()) if examples == FEW else ()
    program = f"import runner\nrunner.run({module!r}, {examples}, {left_out!r})"
    process = interpreter.run(files_of_a_mote(), program, timeout_s=TIMEOUT_S)
    assert process.returncode == 0, process.stdout + process.stderr
    *printed, last = process.stdout.splitlines()
    result = json.loads(last)
    print(f"{name}: {result['passed']} passed, {len(result['skipped'])} skipped")
    failures = [f"{test}\n{traceback}" for test, traceback in result["failed"].items()]
    assert not failures, "\n".join((*failures, *printed))
    assert result["skipped"] == FILES[name]
    tests = re.findall(r"^def (test_\w+)", (TESTS / f"{name}.py").read_text(), re.MULTILINE)
    assert result["ran"] == sorted({*tests}.difference(left_out)) and {*left_out} <= {*tests}


@pytest.mark.skipif(missing is not None, reason=str(missing))
def test_frames_of_tinymq_are_the_same_under_micropython():
    # Its package holds syntax for hosts only, so its file of tests does not run there.
    on_mote = {name: path.read_bytes() for name, path in sources("virtual") if name.startswith("workbench/")}
    frames = [bytes.fromhex(text) for text, *_ in TINYMQ_FRAMES]
    program = """
from workbench.protocols.tinymq import wire
for frame in %r:
    number, message = wire.decode(frame)
    if number is not None:
        assert wire.encode(number, message) == frame
        assert wire.decode(wire.without_ack(frame)) == (number, message)
    print((number, message))
"""
    process = interpreter.run(on_mote, program % (frames,))
    assert process.stderr == ""
    assert process.stdout.splitlines() == [str(tinymq_wire.decode(frame)) for frame in frames]
