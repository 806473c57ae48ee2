"""The rules of the package's structure, checked over the whole package; `structure` lists them.

A breach of a rule is reported in a sentence that names the right location of the code. The last part of this file
checks these sentences with small made-up trees.
"""

import inspect
import subprocess
import sys
from importlib import import_module

import pytest

from tests.project.structure import RANK, UPWARD, SourceTree, faults, mote_faults, named_in
from tests.repository import REPOSITORY
from workbench.errors import LinkError
from workbench.motes.program import compile_file, sources
from workbench.public_names import EXTENSIONS

ON_MOTES = sources("virtual")
MODULES = [name.removesuffix(".py").replace("/", ".") for name, _ in ON_MOTES if name.startswith("workbench/")]
NEVER_ON_A_MOTE = {"asyncio", "bokeh", "ipywidgets", "networkx", "numpy", "pandas", "pyspark", "serial"}


@pytest.fixture(scope="module")
def package():
    """Return the parsed source files of the package."""
    return SourceTree.at(REPOSITORY / "workbench")


def test_the_package_keeps_all_rules(package):
    breaches = [*faults(package), *mote_faults(package, MODULES)]
    assert not breaches, "\n".join(fault.sentence for fault in breaches)


def test_few_imports_point_upward_and_each_is_justified(package):
    imports = {(path, imported.module) for path, _, imported, _ in package.own_imports()}
    assert len(UPWARD) <= 3 and set(UPWARD) <= imports and all(why.endswith(".") for why in UPWARD.values())


def test_each_extension_is_a_function_of_a_package_that_is_not_left_of_its_class(package):
    for owner, attributes in EXTENSIONS.items():
        module, _, name = owner.rpartition(".")
        extended = getattr(import_module(f"workbench.{module}"), name)
        for attribute, function in attributes.items():
            above = function.rpartition(".")[0]
            ranks = [RANK[package.locate(f"workbench.{name}").package] for name in (module, above)]
            assert ranks == sorted(ranks), f"{above} is left of {owner}, whose {attribute} belongs into the class"
            assert attribute in dir(extended)
            assert inspect.getdoc(getattr(extended, attribute)) and inspect.signature(getattr(extended, attribute))


def test_modules_for_motes_load_nothing_a_mote_lacks():
    code = "import sys\n" + "".join(f"import {module}\n" for module in MODULES) + "print(*sys.modules)"
    command = [sys.executable, "-c", code]
    process = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=600, check=True)
    assert {name.partition(".")[0] for name in process.stdout.split()}.isdisjoint(NEVER_ON_A_MOTE)


@pytest.mark.parametrize(("name", "path"), ON_MOTES, ids=[name for name, _ in ON_MOTES])
def test_modules_for_motes_compile_for_micropython(name, path):
    try:
        compile_file(name, path)
    except LinkError as error:
        pytest.fail(f"{error}; code that MicroPython cannot compile belongs into a file that a mote does not load")


# Made-up trees
#
# TREE keeps all rules. Each case below adds one or two files that break a rule.

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
# Rule, the files that break it, and a part of the sentence.
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
    ("between", {"ants/node.py": "from workbench.protocols.bees.node import Bee"},
     'its `__init__` needs KIND_OF = "bees"'),
    ("between", {"ants/wire.py": "from ..bees import wire"}, "imports workbench.protocols.bees"),
    ("between", {"ants/views/map.py": "from workbench.protocols.bees.views import comb"}, "a generic package (views/)"),
    ("packages", {"ants/node.py": "from workbench.sim import run"}, "protocols/ants/fast or"),
    ("packages", {"ants/fast/__init__.py": "from workbench.views import drawing"}, "protocols/ants/views"),
    ("packages", {"ants/explain.py": "from workbench.views import drawing"}, "protocols/ants/views"),
    ("packages", {"/sim/run.py": "def f():\n    from workbench.protocols.ants import Ants"}, "finds it by name"),
    ("packages", {"/sim/run.py": "from workbench.views import drawing", "/views/drawing.py": ""}, "sim or left of it"),
    ("packages", {"/sim/run.py": "def f():\n    from workbench.views import drawing", "/views/drawing.py": ""},
     "into public_names.EXTENSIONS"),
    ("packages", {"/sim/run.py": "from typing import TYPE_CHECKING\n"
                                 "if TYPE_CHECKING:\n    import workbench.views.drawing",
                  "/views/drawing.py": ""}, "views is right of sim"),
    ("packages", {"/attributes/model.py": "from workbench.protocols.contract import Node"}, "attributes or left of it"),
    ("packages", {"/helpers/lists.py": ""}, "'helpers' is not a known package"),
    ("packages", {"/protocols/queues.py": ""}, "code of one protocol belongs into its folder"),
    ("names", {"/sim/run.py": "def of_ants(run): pass"}, "sim/run.py:1 names the protocol ants"),
    ("names", {"/sim/run.py": 'COLOURS = {"hive": 1}'}, "its class returns it, or it is found by name"),
    ("names", {"/cli/__init__.py": "import workbench as wb\nwb.Ants()"}, "cli/__init__.py:2 names the protocol ants"),
    ("names", {"/views/drawing.py": '"""See protocols/bees/views."""'}, "('protocols/bees')"),
    ("cycles", {"/sim/a.py": "from workbench.sim import b", "/sim/b.py": "import workbench.sim.a"},
     "sim.a -> sim.b -> sim.a: shared code belongs into a module that both import"),
    ("cycles", {"/topology/a.py": "import workbench.datasets.b",
                "/datasets/b.py": "def f():\n    import workbench.topology.a"}, "through datasets, topology"),
    ("prefixes", {"ants/trails_drawing.py": ""}, "workbench/protocols/ants/trails/"),
    ("prefixes", {"/views/map_legend.py": "", "/views/map_scale.py": ""}, "workbench/views/map/"),
    ("prefixes", {"/sim/fast_names.py": ""}, "fast/, fast_names.py share the word 'fast'"),
    ("lists", {"ants/trails.py": 'COST = {"ants": 1, "bees": 2}'}, "into its own folder, where its class returns it"),
    ("lists", {"/datasets/__init__.py": "TABLE = (Ants, Hive)"}, "only public_names.py lists protocols"),
    ("constants", {"ants/fast/__init__.py": "ANT = 7"}, "into workbench/protocols/ants/wire.py, from where"),
    ("constants", {"ants/views/map.py": "_LONGEST_B = 128"}, "LONGEST_B = 128 is also in protocols/ants/wire.py"),
    ("mote", {"ants/trails.py": "from dataclasses import dataclass"}, "a file that a mote does not load"),
    ("mote", {"ants/trails.py": "def f():\n    import numpy"}, "MicroPython has no numpy"),
    ("mote", {"ants/node.py": "from workbench.attributes import parse"}, "into a module of its own"),
    ("mote", {"ants/trails.py": "from workbench.protocols.protocol import Parameter"}, "protocols/contract.py"),
]  # fmt: skip


def all_faults(tree):
    return [*faults(tree), *mote_faults(tree, ["workbench.protocols.ants.node"])]


def test_a_tree_that_keeps_all_rules_has_no_fault():
    assert all_faults(SourceTree(TREE)) == []


@pytest.mark.parametrize(
    ("rule", "files", "part"), BROKEN, ids=[f"{rule} {next(iter(files))}" for rule, files, _ in BROKEN]
)
def test_breach_of_a_rule_is_reported_with_the_right_location(rule, files, part):
    broken = {name.removeprefix("/") if name[0] == "/" else f"protocols/{name}": text for name, text in files.items()}
    breaches = [fault for fault in all_faults(SourceTree(TREE | broken)) if fault.rule == rule]
    assert len(breaches) == 1, breaches
    assert part in breaches[0].sentence
    assert "belong" in breaches[0].sentence


def test_allowed_imports_and_names_are_not_reported():
    allowed = {
        "protocols/ants/views/map.py": "import workbench.sim.run\nfrom workbench.protocols.ants import fast, metrics",
        "protocols/ants/metrics.py": "from workbench.protocols.ants import Ants\nfrom workbench.sim import run",
        "protocols/ants/explain.py": "from workbench.protocols.ants import Ants\nfrom workbench.sim import run",
        "protocols/bees/views/map.py": "from workbench.protocols.ants.views.map import Scene\nWIDTH = 5",
        "protocols/bees/views/comb.py": "WIDTH = 5",  # not a constant of the protocol's definition
        "sim/run.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import workbench.sim.fast.loop",
        "sim/fast/loop.py": "def f():\n    import workbench.sim.run",
        "motes/line.py": "# as ants do\nimport workbench.sim.run as wants",
    }
    assert faults(SourceTree(TREE | allowed)) == []


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
def test_names_of_protocols_are_found_in_any_case(text, named, package):
    assert named_in(text, package.names) == named


def test_a_file_that_micropython_cannot_compile_is_reported(tmp_path):
    path = tmp_path / "trails.py"
    path.write_text("match trail:\n    case 1:\n        pass\n")
    with pytest.raises(LinkError, match="mpy-cross cannot compile ants/trails.py"):
        compile_file("ants/trails.py", path)
