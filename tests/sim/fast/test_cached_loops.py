"""Names of compiled loops on disk: a change to any source of a loop, in any package, changes its name."""

import importlib
import os
import subprocess
import sys

import pytest

import workbench as wb
from tests.repository import REPOSITORY
from workbench.sim.fast import code_cache, loop

TWINS = ("coded_diffusion", "diffusion", "dps", "flooding", "gossip", "tinymq")

TWIN = """
from collections import namedtuple
from enum import auto

import numpy as np

from coin_flooding import pieces, rules
from workbench.protocols.flooding.fast import Message, needs, size_B
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled


class Reason(twin.Reasons):
    CHANCE = auto()


FIELDS = {"ttl": int, "known": twin.Array(np.uint8, ("messages", "nodes"))}
State = namedtuple("State", FIELDS)

twin.compiled_rules(rules)


@compiled
def hear(core, state, i, peer, message, hops, now):
    state.known[message, i] = 1
    twin.hold(core, now, i, peer, message, hops, True)


@compiled
def publish(core, state, i, content, number, now):
    message = twin.make_message(core, Message.FLOOD, core.addresses[i], number, content)
    state.known[message, :] = 0
    twin.report_originated(core, now, i, message, number)
    hear(core, state, i, NONE, message, 0, now)
    twin.send(core, now, i, twin.BROADCAST, message, state.ttl)
    twin.let_go(core, message)


@compiled
def receive(core, state, i, sender, message, word, broadcast, now):
    peer = core.addresses[sender]
    if state.known[message, i]:
        twin.drop(core, now, i, peer, message, twin.Reason.DUPLICATE)
        return
    hear(core, state, i, peer, message, rules.hops_taken(state.ttl, word), now)
    if twin.stream_uniform(core, i) < pieces.CHANCE:
        twin.report_forwarded(core, now, i, peer, message, 0)
        twin.send(core, now, i, twin.BROADCAST, message, word - 1)
    else:
        twin.drop(core, now, i, peer, message, Reason.CHANCE)
"""
PIECES = "CHANCE = 1.0\n"
RULES = """
from coin_flooding.node import FIRST_HOP

def hops_taken(first_ttl, ttl):
    return first_ttl - ttl + FIRST_HOP
"""
NODE = "FIRST_HOP = 1\n"
FILES = {"__init__.py": "", "fast.py": TWIN, "pieces.py": PIECES, "rules.py": RULES, "node.py": NODE}


def load(folder, **files):
    """Return the twin of a package with these files."""
    package = folder / "coin_flooding"
    package.mkdir(exist_ok=True)
    for name, text in (FILES | {f"{name}.py": text for name, text in files.items()}).items():
        (package / name).write_text(text)
    for name in [name for name in sys.modules if name.partition(".")[0] == "coin_flooding"]:
        del sys.modules[name]
    importlib.invalidate_caches()
    return importlib.import_module("coin_flooding.fast")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    # Python would reuse the byte code of a file that is rewritten within a second at the same length.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "coin_flooding"]:
        del sys.modules[name]


@pytest.mark.parametrize(
    "change",
    [
        {"pieces": "CHANCE = 0.5\n"},
        {"rules": RULES.replace("+ FIRST_HOP", "- FIRST_HOP")},
        {"node": "FIRST_HOP = 2\n"},
        {"fast": TWIN.replace("np.uint8", "np.uint16")},
        {"fast": TWIN.replace("message, Reason.CHANCE", "message, twin.Reason.TTL")},
    ],
    ids=["a number of a module", "a rule", "a number that a rule imports", "the twin's layout", "the twin"],
)
def test_change_of_a_source_outside_the_workbench_changes_the_name(folder, change):
    before = loop.name_of(load(folder))
    assert loop.name_of(load(folder)) == before
    assert loop.name_of(load(folder, **change)) != before


@pytest.mark.parametrize("protocol", TWINS)
def test_the_name_is_constant_while_the_process_loads_and_runs(protocol):
    twin = importlib.import_module(f"workbench.protocols.{protocol}.fast")
    name = loop.name_of(twin)
    with code_cache.loading():
        wb.Scenario(wb.topology.line(3), wb.Flooding(), [wb.subscribe(0, "TEMP GE 25")]).run(engine="fast")
    assert loop.name_of(twin) == name


def test_rules_of_the_workbench_are_sources_of_a_loop_and_nodes_are_not():
    parts = loop._collect_parts(importlib.import_module("workbench.protocols.diffusion.fast"))
    assert "workbench.protocols.diffusion.rules" in parts
    assert "workbench.protocols.diffusion.fast.memory" in parts
    assert "workbench.sim.fast.twin" in parts
    assert not {"workbench.protocols.diffusion.node", "workbench.protocols.diffusion.wire"} & set(parts)


PLAY = """
import workbench as wb
from workbench.sim import fast

fast.twin_of = lambda protocol: "coin_flooding.fast"
workload = [wb.subscribe(0, "TEMP GE 20"), wb.publish(15, "TEMP IS 26", every_s=1)]
scenario = wb.Scenario(wb.topology.grid(4, 4), wb.Flooding(ttl=9), workload, duration_s=5)
run = scenario.run(engine="fast")
assert run.engine == "fast"
assert run.trace_hash == scenario.run(engine="reference").trace_hash
"""


@pytest.mark.family  # it compiles a twin twice
def test_twin_from_another_package_runs_and_the_next_process_finds_its_loop(folder):
    load(folder)
    cache_folder = folder / "kept"
    path = os.pathsep.join((str(folder), str(REPOSITORY)))
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache_folder), "PYTHONPATH": path}
    for _ in range(2):
        subprocess.run([sys.executable, "-c", PLAY], env=environment, cwd=folder, timeout=600, check=True)
        # Other twins' machine code is in separate files: it can be read without this package.
        assert [path.name.split(".")[1] for path in cache_folder.rglob("loop.*.nbc")] == ["coin_flooding"]
        # ... and later callers can query it without compiling or importing numba.
        assert [path.name.split(".")[1] for path in cache_folder.rglob("loop.*.json")] == ["coin_flooding"]
