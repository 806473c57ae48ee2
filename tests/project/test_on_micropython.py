"""The tests of what runs on a mote, run under MicroPython: the same files, on stand-ins for pytest and hypothesis.

Theory of operation
    Each file of tests is run by MicroPython on node in a process of its own, with tests/micropython in the place of
    pytest and hypothesis. A @given test draws up to a hundred examples there, not shrunk. What cannot run there is
    listed here by name: a test that is skipped and not listed is a failure, and so is one that is listed and runs.
"""

import json
import re
import sys

import pytest

from tests.repository import REPOSITORY

sys.path.append(str(REPOSITORY / "hardware"))
import interpreter

TESTS = REPOSITORY / "tests"
STAND_INS = TESTS / "micropython"
NETWORKX, NUMPY = "a mote has no networkx", "a mote has no numpy"
# File of tests -> the tests in it that a mote cannot run, and why.
FILES = {
    "test_attributes": {},
    "test_attribute_text": {
        "test_half_of_a_surrogate_pair_is_no_text": "MicroPython encodes half of a surrogate pair",
    },
    "test_wire_tiny_diffusion": {},
    "test_wire_flooding": {},
    "test_wire_coded": {},
    "test_diffusion_node": {
        "test_every_sink_gets_every_matching_reading_once_and_nothing_when_it_has_unsubscribed": NETWORKX,
    },
    "test_coded_diffusion_node": {},
    "test_diffusion_interests": {"test_each_node_sends_an_interest_once": NETWORKX},
    "test_diffusion_reinforcement": {},
    "test_flooding_node": {
        "test_every_node_holds_every_event_once_in_whatever_order_links_deliver": NETWORKX,
    },
    "test_gossip_pieces": {
        "test_every_event_is_held_once_and_right_in_whatever_order_links_deliver": NETWORKX,
    },
    "test_fields": {"test_arithmetic_is_that_of_galois": NUMPY},
    "test_rlnc": {},
    "test_filters": {"test_numbers_of_numpy_are_numbers_and_become_pythons": NUMPY},
}

missing = interpreter.why_missing()


def files_of_a_mote():
    """What lies on the mote: its own files and those of the tests, as sources, so that a traceback has lines."""
    package = REPOSITORY / "workbench"
    paths = [
        package / f"{name}.py"
        for name in ("__init__", "attribute_text", "attributes", "draws", "errors", "fields", "keys", "rlnc")
    ]
    for room in ("protocols", "wire"):
        paths += sorted((package / room).glob("*.py"))
    on_mote = {path.relative_to(REPOSITORY).as_posix(): path for path in paths}
    on_mote |= {path.relative_to(STAND_INS).as_posix(): path for path in sorted(STAND_INS.rglob("*.py"))}
    on_mote |= {f"{name}.py": TESTS / f"{name}.py" for name in ("neighbor", "network", *FILES)}
    return {name: path.read_bytes() for name, path in on_mote.items()}


@pytest.mark.skipif(missing is not None, reason=str(missing))
@pytest.mark.parametrize("name", FILES)
def test_file_of_tests_passes_under_micropython(name):
    ran = interpreter.run(files_of_a_mote(), f"import runner\nrunner.run({name!r})")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    *printed, last = ran.stdout.splitlines()
    result = json.loads(last)
    print(f"{name}: {result['passed']} passed, {len(result['skipped'])} skipped")
    failures = [f"{test}\n{traceback}" for test, traceback in result["failed"].items()]
    assert not failures, "\n".join((*failures, *printed))
    assert result["skipped"] == FILES[name]
    assert result["ran"] == sorted(re.findall(r"^def (test_\w+)", (TESTS / f"{name}.py").read_text(), re.MULTILINE))
