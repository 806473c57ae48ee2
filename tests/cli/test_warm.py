"""`workbench warm`: the twins that it compiles, and its output."""

from workbench import cli
from workbench.public_names import PROTOCOLS
from workbench.sim.fast import code_cache, warming


def test_each_twin_that_is_not_on_disk_is_compiled_once(monkeypatch, capsys):
    compiled = []
    monkeypatch.setattr(code_cache, "is_cached", lambda twin: "flooding" in twin)
    monkeypatch.setattr(warming, "compile_here", lambda twin, protocol: compiled.append(twin))
    assert cli.main(["warm"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(PROTOCOLS)
    assert "Flooding: on disk" in lines
    assert sum("compiling" in line for line in lines) == len(compiled) == len(set(compiled))
    assert "workbench.protocols.flooding.fast" not in compiled
    assert any("PrintedTinyMQ has no version for the fast engine" in line for line in lines)


def test_only_named_protocols_are_compiled(monkeypatch, capsys):
    compiled = []
    monkeypatch.setattr(code_cache, "is_cached", lambda twin: False)
    monkeypatch.setattr(warming, "compile_here", lambda twin, protocol: compiled.append(protocol.__name__))
    assert cli.main(["warm", "Diffusion", "Flooding"]) == 0
    assert compiled == ["Diffusion", "Flooding"]


def test_unknown_protocol_is_refused_with_the_names_of_all_protocols(capsys):
    assert cli.main(["warm", "Floding"]) == 2
    printed = capsys.readouterr().err
    assert "unknown protocol Floding (did you mean Flooding?); the protocols are CodedDiffusion, DPS" in printed
