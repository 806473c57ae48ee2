"""The files from which repo2docker builds an image for Binder: where they are, and what their commands do."""

import os
import re
import subprocess

import pytest

from tests.repository import REPOSITORY
from workbench.cli import make_parser

STUB = """#!/bin/sh
echo "$(basename "$0") $* ($NUMBA_CPU_NAME)" >> "$CALLS"
"""


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """Return a function that runs a file of the repository with stubs of programs, and returns the calls of stubs."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("workbench", "npm", "jupyter"):
        (programs / name).write_text(STUB)
        (programs / name).chmod(0o755)

    def run(name, *arguments):
        recorded = tmp_path / "calls"
        recorded.write_text("")
        environment = {"PATH": f"{programs}:/usr/bin:/bin", "CALLS": str(recorded), "HOME": str(tmp_path)}
        subprocess.run([REPOSITORY / name, *arguments], cwd=REPOSITORY, env=environment, check=True, timeout=60)
        return recorded.read_text().splitlines()

    return run


def test_repo2docker_finds_its_files_beside_environment_yml():
    """A folder `binder` or `.binder` would hide environment.yml."""
    for name in ("environment.yml", "apt.txt", "postBuild", "start"):
        assert (REPOSITORY / name).is_file()
    for name in ("binder", ".binder"):
        assert not (REPOSITORY / name).exists()
    for name in ("postBuild", "start"):
        assert os.access(REPOSITORY / name, os.X_OK)


def test_the_build_compiles_for_any_processor_and_installs_the_interpreter_of_virtual_motes(calls):
    commands = calls("postBuild")
    assert [command.split()[0] for command in commands] == ["workbench", "npm", "jupyter"]
    assert all(command.endswith("(generic)") for command in commands)
    assert make_parser().parse_args(commands[0].split()[1:-1]).name == "warm"
    folder = re.search(r"--prefix (\S+)", commands[1])[1]
    assert (REPOSITORY / folder / "package-lock.json").is_file()


def test_a_failing_step_fails_the_build(calls, tmp_path):
    (tmp_path / "programs" / "workbench").write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(subprocess.CalledProcessError):
        calls("postBuild")


def test_the_first_process_of_a_container_uses_the_code_of_the_build(calls):
    assert calls("start", "jupyter", "lab", "--ip", "0.0.0.0") == ["jupyter lab --ip 0.0.0.0 (generic)"]


def test_apt_txt_lists_the_compilers_of_motes():
    lines = (REPOSITORY / "apt.txt").read_text().splitlines()
    packages = [name for line in lines if (name := line.partition("#")[0].strip())]
    assert packages == sorted(set(packages), key=packages.index)
    hardware = (REPOSITORY / "hardware" / "c" / "README.md").read_text()
    for package in ("gcc-arm-none-eabi", "libnewlib-arm-none-eabi"):
        assert package in packages and package in hardware
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", package) for package in packages)
