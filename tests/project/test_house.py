"""The rules of the house, held over the whole package; `house` says which they are.

Whoever breaks a rule gets a sentence that says where the thing belongs. The last part of this file shows it, with small
trees that are made up.
"""

import inspect
import subprocess
import sys
from importlib import import_module

import pytest

from tests.project.house import RANK, UPWARD, House, faults, mote_faults, named_in
from tests.repository import REPOSITORY
from workbench.errors import LinkError
from workbench.motes.program import compile_file, sources
from workbench.public_names import EXTENSIONS

ON_MOTES = sources("virtual")
MODULES = [name.removesuffix(".py").replace("/", ".") for name, _ in ON_MOTES if name.startswith("workbench/")]
NEVER_ON_A_MOTE = {"asyncio", "bokeh", "ipywidgets", "networkx", "numpy", "pandas", "pyspark", "serial"}


@pytest.fixture(scope="module")
def house():
    """Return the package, parsed."""
    return House.at(REPOSITORY / "workbench")


def test_the_house_keeps_its_rules(house):
    found = [*faults(house), *mote_faults(house, MODULES)]
    assert not found, "\n".join(fault.sentence for fault in found)


def test_few_imports_point_upward_and_each_is_justified(house):
    imported = {(path, one.module) for path, _, one, _ in house.own_imports()}
    assert len(UPWARD) <= 3 and set(UPWARD) <= imported and all(why.endswith(".") for why in UPWARD.values())


def test_each_extension_is_a_function_of_a_room_that_is_not_left_of_its_class(house):
    for owner, attributes in EXTENSIONS.items():
        module, _, name = owner.rpartition(".")
        extended = getattr(import_module(f"workbench.{module}"), name)
        for attribute, function in attributes.items():
            above = function.rpartition(".")[0]
            ranks = [RANK[house.place(f"workbench.{one}").room] for one in (module, above)]
            assert ranks == sorted(ranks), f"{above} is left of {owner}, whose {attribute} belongs into the class"
            assert attribute in dir(extended)
            assert inspect.getdoc(getattr(extended, attribute)) and inspect.signature(getattr(extended, attribute))


def test_what_runs_on_a_mote_loads_nothing_a_mote_lacks():
    code = "import sys\n" + "".join(f"import {module}\n" for module in MODULES) + "print(*sys.modules)"
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=600, check=True)
    assert {name.partition(".")[0] for name in ran.stdout.split()}.isdisjoint(NEVER_ON_A_MOTE)


@pytest.mark.parametrize(("name", "path"), ON_MOTES, ids=[name for name, _ in ON_MOTES])
def test_what_runs_on_a_mote_compiles_for_micropython(name, path):
    try:
        compile_file(name, path)
    except LinkError as error:
        pytest.fail(f"{error}; what MicroPython has not belongs into a file that a mote does not load")


# Made-up trees
#
# TREE keeps all rules. Each case below puts a file or two into it that break one.

TREE = {
    "__init__.py": "",
    "errors.py": "class WorkbenchError(Exception): pass",
    "public_names.py": 'PROTOCOLS = {"Ants": "protocols.ants", "Hive": "protocols.bees.hive"}',
    "attributes/model.py": "from workbench.errors import WorkbenchError",
    "protocols/contract.py": "class Node: pass",
    "protocols/protocol.py": "from workbench.protocols.contract import Node",
    "protocols/ants/__init__.py": "from workbench.protocols.ants.node import AntNode",
    "protocols/ants/wire.py": "ANT = 7\nLONGEST_B = 1 << 7",
    "protocols/ants/node.py": "import math\nfrom workbench.protocols.ants import trails, wire",
    "protocols/ants/trails.py": "from workbench.protocols.contract import Node",
    "protocols/ants/fast/__init__.py": "from workbench.protocols.ants import Ants\nfrom workbench.sim.fast import loop",
    "protocols/ants/views/map.py": "from workbench.views.drawing import Drawing",
    "protocols/bees/__init__.py": 'KIND_OF = "ants"\nfrom workbench.protocols.ants import Ants',
    "protocols/bees/node.py": "from workbench.protocols.ants.node import AntNode",
    "protocols/bees/hive.py": "from workbench.protocols import bees",
    "sim/run.py": "",
    "sim/fast/loop.py": "",
    "views/drawing.py": '"""Draws: an example is `wb.Ants()`."""\nfrom workbench.sim import run',
    "cli/__init__.py": "from workbench.views.drawing import Drawing",
}
# Rule, the files that break it, and what the sentence has to say.
BROKEN = [
    ("inside", {"ants/wire.py": "import workbench.protocols.ants.node"}, "protocols/ants/rules.py"),
    ("inside", {"ants/wire.py": "from workbench.protocols.ants import scent",
                "ants/scent.py": "from workbench.protocols.ants import node"}, "scent -> node"),
    ("inside", {"ants/node.py": "from workbench.protocols.ants import Ants"}, "a part of the node, from where"),
    ("inside", {"ants/trails.py": "def f():\n    from workbench.protocols.ants.views import map"}, "rules.py, wire.py"),
    ("inside", {"ants/__init__.py": "from workbench.protocols.ants import fast"}, "belongs into the definition"),
    ("inside", {"ants/metrics.py": "from workbench.protocols.ants.views import map"}, "belongs into the definition"),
    ("inside", {"ants/node.py": "from workbench.protocols.ants import dissector",
                "ants/dissector.py": ""}, "a part of the node, from where"),
    ("inside", {"ants/fast/__init__.py": "from workbench.protocols.ants import udp",
                "ants/udp/__init__.py": ""}, "belongs into the definition"),
    ("inside", {"bees/node.py": "from workbench.protocols.ants import Ants"}, "protocols/ants/rules.py"),
    ("between", {"ants/node.py": "from workbench.protocols.bees.node import Bee"}, 'its page says KIND_OF = "bees"'),
    ("between", {"ants/wire.py": "from ..bees import wire"}, "imports workbench.protocols.bees"),
    ("between", {"ants/views/map.py": "from workbench.protocols.bees.views import comb"}, "a generic room (views/)"),
    ("rooms", {"ants/node.py": "from workbench.sim import run"}, "protocols/ants/fast or"),
    ("rooms", {"ants/fast/__init__.py": "from workbench.views import drawing"}, "protocols/ants/views"),
    ("rooms", {"ants/explain.py": "from workbench.views import drawing"}, "protocols/ants/views"),
    ("rooms", {"/sim/run.py": "def f():\n    from workbench.protocols.ants import Ants"}, "finds it by name"),
    ("rooms", {"/sim/run.py": "from workbench.views import drawing", "/views/drawing.py": ""}, "sim or left of it"),
    ("rooms", {"/sim/run.py": "def f():\n    from workbench.views import drawing", "/views/drawing.py": ""},
     "into public_names.EXTENSIONS"),
    ("rooms", {"/sim/run.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import workbench.views.drawing",
               "/views/drawing.py": ""}, "views is right of sim"),
    ("rooms", {"/attributes/model.py": "from workbench.protocols.contract import Node"}, "attributes or left of it"),
    ("rooms", {"/helpers/lists.py": ""}, "the house has no room 'helpers'"),
    ("rooms", {"/protocols/queues.py": ""}, "what is one protocol's own belongs into its folder"),
    ("names", {"/sim/run.py": "def of_ants(run): pass"}, "sim/run.py:1 names the protocol ants"),
    ("names", {"/sim/run.py": 'COLOURS = {"hive": 1}'}, "its class says it, or it is found by name"),
    ("names", {"/cli/__init__.py": "import workbench as wb\nwb.Ants()"}, "cli/__init__.py:2 names the protocol ants"),
    ("names", {"/views/drawing.py": '"""See protocols/bees/views."""'}, "('protocols/bees')"),
    ("circles", {"/sim/a.py": "from workbench.sim import b", "/sim/b.py": "import workbench.sim.a"},
     "sim.a -> sim.b -> sim.a: what they need of each other belongs into a module that both import"),
    ("circles", {"/topology/a.py": "import workbench.datasets.b",
                 "/datasets/b.py": "def f():\n    import workbench.topology.a"}, "through datasets, topology"),
    ("prefixes", {"ants/trails_drawing.py": ""}, "workbench/protocols/ants/trails/"),
    ("prefixes", {"/views/map_legend.py": "", "/views/map_scale.py": ""}, "workbench/views/map/"),
    ("prefixes", {"/sim/fast_names.py": ""}, "fast/, fast_names.py share the word 'fast'"),
    ("lists", {"ants/trails.py": 'COST = {"ants": 1, "bees": 2}'}, "into its own folder, where its class says it"),
    ("lists", {"/datasets/__init__.py": "TABLE = (Ants, Hive)"}, "only public_names.py lists protocols"),
    ("constants", {"ants/fast/__init__.py": "ANT = 7"}, "into workbench/protocols/ants/wire.py, from where"),
    ("constants", {"ants/views/map.py": "_LONGEST_B = 128"}, "LONGEST_B = 128 stands in protocols/ants/wire.py too"),
    ("mote", {"ants/trails.py": "from dataclasses import dataclass"}, "a file that a mote does not load"),
    ("mote", {"ants/trails.py": "def f():\n    import numpy"}, "MicroPython has no numpy"),
    ("mote", {"ants/node.py": "from workbench.attributes import parse"}, "into a module of its own"),
    ("mote", {"ants/trails.py": "from workbench.protocols.protocol import Parameter"}, "protocols/contract.py"),
]  # fmt: skip


def all_faults(house):
    return [*faults(house), *mote_faults(house, ["workbench.protocols.ants.node"])]


def test_a_tree_that_keeps_all_rules_has_no_fault():
    assert all_faults(House(TREE)) == []


@pytest.mark.parametrize(("rule", "files", "said"), BROKEN, ids=[f"{one[0]} {next(iter(one[1]))}" for one in BROKEN])
def test_breaking_a_rule_says_where_the_thing_belongs(rule, files, said):
    more = {name.removeprefix("/") if name[0] == "/" else f"protocols/{name}": text for name, text in files.items()}
    found = [fault for fault in all_faults(House(TREE | more)) if fault.rule == rule]
    assert len(found) == 1, found
    assert said in found[0].sentence
    assert "belong" in found[0].sentence


def test_what_breaks_no_rule():
    more = {
        "protocols/ants/views/map.py": "import workbench.sim.run\nfrom workbench.protocols.ants import fast, metrics",
        "protocols/ants/metrics.py": "from workbench.protocols.ants import Ants\nfrom workbench.sim import run",
        "protocols/ants/explain.py": "from workbench.protocols.ants import Ants\nfrom workbench.sim import run",
        "protocols/bees/views/map.py": "from workbench.protocols.ants.views.map import Scene\nWIDTH = 5",
        "protocols/bees/views/comb.py": "WIDTH = 5",  # no constant of the protocol's definition
        "sim/run.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import workbench.sim.fast.loop",
        "sim/fast/loop.py": "def f():\n    import workbench.sim.run",
        "motes/line.py": "# as ants do\nimport workbench.sim.run as wants",
    }
    assert faults(House(TREE | more)) == []


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("coded_diffusion", {"diffusion", "codeddiffusion"}),
        ("CodedDiffusionNode", {"diffusion", "codeddiffusion"}),
        ("wb.TinyMQ(roots=2)", {"tinymq"}),
        ("Pub2Sub", {"pub2sub"}),
        ("cli_dps", {"dps"}),
        ("DPSNode", {"dps"}),
        ("endpoints of gossipers", set()),
    ],
)
def test_names_are_found_in_whatever_case_they_are_written(text, named, house):
    assert named_in(text, house.names) == named


def test_a_file_that_micropython_cannot_compile_is_told(tmp_path):
    path = tmp_path / "trails.py"
    path.write_text("match trail:\n    case 1:\n        pass\n")
    with pytest.raises(LinkError, match="mpy-cross cannot compile ants/trails.py"):
        compile_file("ants/trails.py", path)
