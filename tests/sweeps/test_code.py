"""The digest of a point's code: an edit of code that a point uses makes it run again, an edit elsewhere does not."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import workbench as wb
from tests.repository import REPOSITORY
from workbench.sweeps import LocalRunner, code, work
from workbench.sweeps.code import Codes

# A copy of the package is edited; each step is a fresh process, as after an edit in an editor.
SWEEPS = """
import json, sys
import workbench as wb
from workbench.sweeps import LocalRunner
wb.register_filter("scale", lambda attributes: FILTER)
class Counting:
    def __init__(self):
        self.ran = 0
    def run(self, plan, numbers, report_progress):
        self.ran += len(numbers)
        return LocalRunner().run(plan, numbers, report_progress)
workload = [wb.subscribe(at=0, what="TEMP GE 25"), wb.publish(at=4, what="TEMP IS 26.5", every_s=2)]
ran = {}
for name, protocol in {
    "flooding": wb.Flooding(), "gossip": wb.Gossip(), "diffusion": wb.Diffusion(), "tinymq": wb.TinyMQ(),
    "filtered": wb.Diffusion(filters=(wb.Filter("scale"),)),
}.items():
    runner = Counting()
    scenario = wb.Scenario(wb.topology.line(5), protocol, workload, duration_s=3)
    wb.Sweep(scenario, {"seed": [1, 2]}).run(out=sys.argv[1], runner=runner, progress=False)
    ran[name] = runner.ran
print(json.dumps({name: count for name, count in ran.items() if count}))
"""


@pytest.fixture
def copied(tmp_path):
    """Return a copy of the package for edits, with byte code, so that no process compiles the unchanged files."""
    shutil.copytree(REPOSITORY / "workbench", tmp_path / "workbench", ignore=shutil.ignore_patterns("*.nb?"))
    return tmp_path


def ran(folder, filter_="attributes"):
    """Return {name: number of points} that the sweeps run in a fresh process that has the copy."""
    command = [sys.executable, "-c", SWEEPS.replace("FILTER", filter_), str(folder / "results")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.family
def test_an_edit_reruns_only_the_points_that_run_the_edited_code(copied):
    everything = dict.fromkeys(("flooding", "gossip", "diffusion", "tinymq", "filtered"), 2)
    protocols = copied / "workbench" / "protocols"
    assert ran(copied) == everything
    for path in (
        "protocols/diffusion/views/__init__.py",
        "views/charts/static.py",
        "sweeps/table.py",
        "widgets/sweep.py",
    ):
        edit(copied / "workbench" / path, '"""', '"""Edited. ')
    assert ran(copied) == {}
    edit(protocols / "tinymq" / "node.py", '"""', '"""Edited. ')
    assert ran(copied) == {"tinymq": 2}
    edit(protocols / "flooding" / "node.py", '"""', '"""Edited. ')
    assert ran(copied) == {"flooding": 2, "gossip": 2}  # gossip inherits from flooding
    assert ran(copied, "attributes or None") == {"filtered": 2}
    edit(copied / "workbench" / "sim" / "channel.py", '"""', '"""Edited. ')
    assert ran(copied, "attributes or None") == everything


def test_generic_modules_do_not_import_protocols():
    digests = {
        name: code.package_digest(frozenset([name])) for name in ("flooding", "diffusion", "tinymq", "dps", "gossip")
    }
    assert len(set(digests.values())) == 5
    assert code.package_digest(frozenset()) not in digests.values()


def test_line_ends_and_compiled_files_beside_their_sources_do_not_matter(tmp_path):
    (tmp_path / "node.py").write_bytes(b"ONE = 1\nTWO = 2\n")
    plain = b"".join(code._read_module_contents(tmp_path, is_deep=True))
    (tmp_path / "node.py").write_bytes(b"ONE = 1\r\nTWO = 2\r\n")
    (tmp_path / "node.pyc").write_bytes(b"\0" * 40)
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "map.py").write_text("drawn")
    assert b"".join(code._read_module_contents(tmp_path, is_deep=True)) == plain


def test_a_compiled_file_without_its_source_counts_by_its_code(tmp_path):
    import py_compile

    contents = []
    for turn, text in enumerate(("ONE = 1\n", "\nONE = 1\n", "ONE = 2\n")):
        folder = tmp_path / str(turn)
        folder.mkdir()
        (folder / "node.py").write_text(text)
        py_compile.compile(folder / "node.py", folder / "node.pyc")
        (folder / "node.py").unlink()
        contents.append(b"".join(code._read_module_contents(folder, is_deep=True)))
    assert contents[0] == contents[1] != contents[2]


PROTOCOL = """
from workbench.protocols.flooding import Flooding
class Mine(Flooding):
    def make_node(self, address, random):
        from workbench.protocols.tinymq import rules

        return Flooding.make_node(self, address, random)
"""


def test_the_digest_of_a_custom_protocol_covers_the_package_code_that_it_uses(monkeypatch):
    packages = []
    digest_of = code.package_digest
    monkeypatch.setattr(
        code, "package_digest", lambda protocols: packages.append(set(protocols)) or digest_of(protocols)
    )
    module = {"__name__": "users_protocol"}
    exec(PROTOCOL, module)
    assert Codes().digest(module["Mine"]()) != Codes().digest(wb.Flooding())
    assert "flooding" in packages[0] and "tinymq" in packages[0]  # of the parent, and imported by its own code


EDITED_LATE = """
import os, pathlib, time
import workbench as wb
from workbench.protocols.flooding import node
from workbench.protocols.tinymq import rules
time.sleep(0.05)
for module in (rules, node):
    path = pathlib.Path(module.__file__)
    path.write_text(path.read_text() + "# edited\\n")
    os.utime(path, (path.stat().st_atime, path.stat().st_mtime + 7))
    try:
        wb.Sweep(wb.Scenario(wb.topology.line(3), wb.Flooding()), {"seed": [1]})
        print("took")
    except wb.WorkbenchError as error:
        print(error)
    from workbench.sweeps import code
    code.package_digest.cache_clear()
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="the start of a process is read from /proc")
def test_a_source_that_was_edited_after_it_was_loaded_is_an_error(copied, monkeypatch):
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    for _ in range(3):  # a later process loads the edited files
        command = [sys.executable, "-c", EDITED_LATE]
        done = subprocess.run(command, cwd=copied, capture_output=True, text=True, timeout=600, check=True)
        other_protocol, own_protocol = done.stdout.splitlines()
        assert other_protocol == "took"  # the edited file belongs to another protocol
        if own_protocol.startswith(f"{copied}/workbench/protocols/flooding/node.py was edited after this process had"):
            return
    # The start of a process is known to the second: an edit on disk within that second cannot be detected.
    pytest.fail(f"none of three processes reported the edit of its code; the last one printed: {own_protocol}")


def test_the_error_for_an_edited_source_is_raised_by_point_key(monkeypatch):
    def edited(protocols):
        raise wb.WorkbenchError("node.py was edited after this process had loaded it")

    plan = wb.Sweep(wb.Scenario(wb.topology.line(3), wb.Flooding()), {"protocol.ttl": [3, 9]}).plan.fresh()
    monkeypatch.setattr(code, "package_digest", edited)
    object.__setattr__(plan, "codes", Codes())
    with pytest.raises(wb.WorkbenchError, match="was edited after"):
        plan.point_key(0)


def test_rows_of_other_code_are_refused():
    scenario = wb.Scenario(wb.topology.line(3), wb.Flooding(), duration_s=1)

    class OtherCode:
        def __repr__(self):
            return "OtherCode()"

        def run(self, plan, numbers, report_progress):
            for rows in LocalRunner().run(plan, numbers, report_progress):
                yield [row._replace(code="0123456789abcdef") for row in rows]

    with pytest.raises(
        wb.WorkbenchError, match=r"a worker of OtherCode\(\) has other code .*0123456789abcdef.*same version"
    ):
        wb.Sweep(scenario, {"seed": [1, 2]}).run(runner=OtherCode(), progress=False)


def test_a_packed_plan_has_the_code_digest_of_its_driver(tmp_path):
    """Code travels by value, together with its digest: a worker that cannot read its source uses the same digest."""
    from workbench.sweeps import user_code

    path = tmp_path / "elsewhere.py"
    path.write_text("LIMIT = 3\ndef clip(attributes):\n    return attributes[:LIMIT]\n")
    spec = importlib.util.spec_from_file_location("elsewhere", path)
    module = sys.modules["elsewhere"] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        wb.register_filter("clip", module.clip)
        scenario = wb.Scenario(wb.topology.line(3), wb.Diffusion(filters=(wb.Filter("clip"),)), duration_s=1)
        plan = wb.Sweep(scenario, {"seed": [1]}, measure=lambda run: {"one": 1.0}).plan.fresh()
        unpacked = user_code.unpack(user_code.pack(plan, plan.protocols, plan.measure))
        assert work.run_point(unpacked, 0).code == plan.code_of(0) != ""
    finally:
        del sys.modules["elsewhere"]
