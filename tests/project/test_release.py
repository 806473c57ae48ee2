"""Releases: what is checked before a build, the notes from the changelog, and two builds with equal digests."""

import re
import subprocess
import sys
import tarfile
import zipfile

import pytest
import yaml

import workbench
from scripts import release
from tests.repository import REPOSITORY

CHANGELOG = """# Changelog

Words before the sections.

## [Unreleased]

## [0.3.0] - 2026-12-01

### Added

- A line with [a link] and ## signs.

## [0.2.0] - 2026-11-23

- Older.
"""
WORKFLOWS = REPOSITORY / ".github" / "workflows"


def test_the_notes_are_the_section_of_the_version():
    assert [section[:2] for section in release.changelog_sections(CHANGELOG)] == [
        ("Unreleased", ""), ("0.3.0", "2026-12-01"), ("0.2.0", "2026-11-23"),
    ]  # fmt: skip
    assert release.release_notes(CHANGELOG, "0.3.0") == "### Added\n\n- A line with [a link] and ## signs.\n"
    assert release.release_notes(CHANGELOG, "0.2.0") == "- Older.\n"
    for version in ("Unreleased", "0.1.0"):
        with pytest.raises(release.ReleaseError, match="is missing or empty"):
            release.release_notes(CHANGELOG, version)


def test_the_repositorys_own_changelog_and_versions_can_be_read():
    sections = release.changelog_sections((REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8"))
    released = [version for version, date, text in sections if date and text]
    assert released[0] == workbench.__version__ == release._find_version(release._VERSION, "workbench/__init__.py")
    assert release._find_version(release._CITED, "CITATION.cff") == workbench.__version__


def test_a_release_without_problems_has_none():
    assert release.find_problems("v0.3.0", "0.3.0", "0.3.0", CHANGELOG, "") == []
    assert release.find_problems("v0.3.0", "0.3.0", "0.3.0", CHANGELOG.replace("## [Unreleased]\n\n", ""), "") == []


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"tag": "v0.3"}, "the tag is v0.3; it must be v0.3.0"),
        ({"cited": "0.2.0"}, "CITATION.cff has the version 0.2.0; it must be 0.3.0"),
        ({"changes": " M README.md\n?? x"}, "the tree has changes; commit or remove them:  M README.md, ?? x"),
        (
            {"changelog": CHANGELOG.replace("[Unreleased]\n", "[Unreleased]\n\n- Late.\n")},
            "CHANGELOG.md has entries under [Unreleased]; move them to [0.3.0]",
        ),
        (
            {"changelog": CHANGELOG.replace("[0.3.0]", "[0.4.0]")},
            "CHANGELOG.md: the newest section is 0.4.0; it must be [0.3.0]",
        ),
        ({"changelog": ""}, "CHANGELOG.md: the newest section is missing; it must be [0.3.0]"),
        (
            {"changelog": CHANGELOG.replace(" - 2026-12-01", "")},
            "CHANGELOG.md: the section [0.3.0] has no date; write ## [0.3.0] - YYYY-MM-DD",
        ),
    ],
)
def test_each_problem_is_a_sentence(changed, sentence):
    values = {"tag": "v0.3.0", "version": "0.3.0", "cited": "0.3.0", "changelog": CHANGELOG, "changes": ""} | changed
    (problem,) = release.find_problems(**values)
    assert problem.startswith(sentence)


def test_a_commit_has_one_tag_of_a_version():
    assert release.choose_tag(["nightly", "v0.3.0", "very-good"]) == "v0.3.0"
    for tags in ([], ["nightly"], ["v0.3.0", "v0.3.1"]):
        with pytest.raises(release.ReleaseError, match="it must have one"):
            release.choose_tag(tags)


def test_a_zip_of_a_folder_depends_on_its_files_alone(tmp_path):
    archives = []
    for name in ("one", "two"):
        folder = tmp_path / name
        (folder / "b").mkdir(parents=True)
        for file in ("b/z.html", "a.html") if name == "one" else ("a.html", "b/z.html"):
            (folder / file).write_text(file)
        release.zip_folder(folder, tmp_path / f"{name}.zip", 1_700_000_000)
        archives.append((tmp_path / f"{name}.zip").read_bytes())
    assert archives[0] == archives[1]
    assert zipfile.ZipFile(tmp_path / "one.zip").namelist() == ["a.html", "b/z.html"]


def test_a_python_that_cannot_be_found_is_reported_as_not_tried(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setattr(release.shutil, "which", lambda program: None)
    assert release.try_wheel(tmp_path / "any.whl", "3.99").startswith("not tried: Python 3.99 is not installed")


def test_workflows_run_targets_of_the_makefile():
    makefile = (REPOSITORY / "Makefile").read_text()
    files = sorted(WORKFLOWS.glob("*.yml"))
    assert [path.name for path in files] == ["release.yml", "site.yml"]
    for path in files:
        jobs = yaml.safe_load(path.read_text())["jobs"].values()
        commands = " && ".join(step["run"] for job in jobs for step in job["steps"] if "run" in step)
        targets = re.findall(r"\bmake ([a-z-]+)", commands)
        assert targets
        for target in targets:
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.family
def test_two_builds_of_a_tag_are_equal_and_contain_what_users_need(tmp_path):
    """The wheel has all code and data for users, and neither tests nor leftovers of the tree."""
    pytest.importorskip("hatchling", reason="hatchling is not installed: pip install hatchling")
    clone, out = tmp_path / "clone", tmp_path / "release"

    def git(*arguments):
        names = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
        subprocess.run(["git", *names, *arguments], cwd=clone, check=True, capture_output=True)

    subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(clone)], check=True, capture_output=True)
    for name, old, new in (
        ("workbench/__init__.py", f'"{workbench.__version__}"', '"99.0.0"'),
        ("CITATION.cff", f"version: {workbench.__version__}", "version: 99.0.0"),
        ("CHANGELOG.md", "## [Unreleased]\n", "## [99.0.0] - 2099-01-01\n"),
    ):
        path = clone / name
        path.write_text(path.read_text().replace(old, new, 1))
    git("commit", "--quiet", "--all", "--message", "99.0.0")
    git("tag", "v99.0.0")
    command = [sys.executable, "-m", "scripts.release", "--no-site", "--no-trial", "--out", str(out)]
    ended = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr

    sdist, wheel = release.file_names("99.0.0")
    digests = dict(line.split()[::-1] for line in (out / release.DIGESTS).read_text().splitlines())
    assert digests == {path.name: release.digest(path) for path in out.iterdir() if path.name != release.DIGESTS}
    assert set(digests) == {sdist, wheel, release.NOTES}

    names = zipfile.ZipFile(out / wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"workbench", "sensor_pubsub_workbench-99.0.0.dist-info"}
    for needed in (
        r"workbench/views/player/.*\.js",
        r"workbench/widgets/.*\.css",
        r"workbench/gallery/.*\.json",
        r"workbench/_hardware/c/.*\.c",
        r"workbench/_hardware/mote/.*\.py",
        r"workbench/_hardware/virtual/rack\.mjs",
        r"workbench/protocols/diffusion/c/.*\.h",
        r"workbench/_notebooks/\d\d-.*\.ipynb",
        r"workbench/_notebooks/lessons/figures/.*\.py",
        r"workbench/_notebooks/teachers/.*\.md",
    ):
        assert any(re.fullmatch(needed, name) for name in names), needed
    leftovers = re.compile(r"__pycache__|\.py[co]$|node_modules|checkpoints|(^|/)(tests?|test_[^/]*)(/|$)|/conftest")
    assert not [name for name in names if leftovers.search(name)]
    with tarfile.open(out / sdist) as tar:
        folders = {name.split("/")[1] for name in tar.getnames() if "/" in name}
    assert {"workbench", "tests", "docs", "notebooks", "CHANGELOG.md", "LICENSE"} <= folders
    assert ".ci" not in folders
