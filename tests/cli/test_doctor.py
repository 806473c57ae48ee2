"""The doctor: its report on a complete machine, and on machines where something is missing or too old."""

import pytest

from workbench.cli import doctor
from workbench.cli.doctor import Finding


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
