"""`workbench warm`: which twins it compiles, and what it says."""

from workbench import cli
from workbench.public_names import PROTOCOLS
from workbench.sim.fast import code_cache, warming


def test_twins_that_are_not_on_disk_are_compiled_once_each(monkeypatch, capsys):
    compiled = []
    monkeypatch.setattr(code_cache, "is_cached", lambda twin: "flooding" in twin)
    monkeypatch.setattr(warming, "compile_here", lambda twin, protocol: compiled.append(twin))
    assert cli.main(["warm"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(PROTOCOLS)
    assert "Flooding: on disk" in lines
    assert sum("compiling" in line for line in lines) == len(compiled) == len(set(compiled))
    assert "workbench.protocols.flooding.fast" not in compiled
    assert any("PrintedTinyMQ has no fast twin" in line for line in lines)


def test_only_those_named_are_compiled(monkeypatch, capsys):
    compiled = []
    monkeypatch.setattr(code_cache, "is_cached", lambda twin: False)
    monkeypatch.setattr(warming, "compile_here", lambda twin, protocol: compiled.append(protocol.__name__))
    assert cli.main(["warm", "Diffusion", "Flooding"]) == 0
    assert compiled == ["Diffusion", "Flooding"]


def test_unknown_name_is_answered_with_those_there_are(capsys):
    assert cli.main(["warm", "Floding"]) == 2
    told = capsys.readouterr().err
    assert "unknown protocol Floding (did you mean Flooding?); the protocols are CodedDiffusion, DPS" in told
