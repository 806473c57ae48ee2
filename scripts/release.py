"""Build and try a release from the tag of the current commit: ``python -m scripts.release``, into out/release.

    1. checks      the tree is clean; tag, package, CITATION.cff and changelog (newest section) have the same version
    2. build       wheel and sdist from the files of the tag, twice, and the wheel a third time from the sdist; the
                   digests must be equal (times in them are the time of the tag's commit)
    3. site        the web site as a zip file, if the extra `site` is installed
    4. notes       RELEASE_NOTES.md, the changelog's section
    5. trial       on each Python from 3.11 to 3.13: install the wheel in an empty environment, run `workbench demo`
    6. digests     SHA256SUMS

It uploads nothing; the workflow `.github/workflows/release.yml` uploads the release of a pushed tag. An error leaves no
SHA256SUMS, so a folder with this file is complete.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
DIGESTS, NOTES = "SHA256SUMS", "RELEASE_NOTES.md"
_SITE_EXTRA = ("sphinx", "myst_nb", "pydata_sphinx_theme")
_SECTION = re.compile(r"^## \[([^\]]+)\](?: - (\d{4}-\d\d-\d\d))?\s*$", re.MULTILINE)
_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
_CITED = re.compile(r"^version: (\S+)$", re.MULTILINE)


class ReleaseError(Exception):
    """The reason why a release fails, as a sentence."""


def changelog_sections(changelog: str) -> list[tuple[str, str, str]]:
    """Return (version, date or "", text) of each section of a changelog, from the newest to the oldest."""
    parts = _SECTION.split(changelog)[1:]
    return [
        (version, date or "", text.strip())
        for version, date, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    ]


def release_notes(changelog: str, version: str) -> str:
    """Return the text of a version's section of the changelog. Raises ReleaseError if it is missing or empty."""
    for name, _, text in changelog_sections(changelog):
        if name == version and text:
            return f"{text}\n"
    raise ReleaseError(f"CHANGELOG.md: the section [{version}] is missing or empty")


def find_problems(tag: str, version: str, cited: str, changelog: str, changes: str) -> list[str]:
    """Return the reasons against a release of ``tag``, a sentence each.

    ``version`` is the package's version, ``cited`` the version in CITATION.cff, ``changelog`` the text of the
    changelog, and ``changes`` the output of ``git status --porcelain``.
    """
    problems = []
    if changes:
        problems.append(f"the tree has changes; commit or remove them: {', '.join(changes.split(chr(10))[:3])}")
    if tag != f"v{version}":
        problems.append(f"the tag is {tag}; it must be v{version}, because workbench/__init__.py has this version")
    if cited != version:
        problems.append(f"CITATION.cff has the version {cited}; it must be {version}")
    sections = changelog_sections(changelog)
    if sections and sections[0][0] == "Unreleased":
        if sections[0][2]:
            problems.append(f"CHANGELOG.md has entries under [Unreleased]; move them to [{version}]")
        sections = sections[1:]
    if not sections or sections[0][0] != version:
        newest = sections[0][0] if sections else "missing"
        problems.append(f"CHANGELOG.md: the newest section is {newest}; it must be [{version}]")
    elif not sections[0][1]:
        problems.append(f"CHANGELOG.md: the section [{version}] has no date; write ## [{version}] - YYYY-MM-DD")
    return problems


def file_names(version: str) -> list[str]:
    """Return the file names of a version's sdist and wheel, in this order."""
    name = f"sensor_pubsub_workbench-{version}"
    return [f"{name}.tar.gz", f"{name}-py3-none-any.whl"]


def build(files: Path, out: Path, epoch_s: int, kinds: Iterable[str] = ("sdist", "wheel")) -> dict[str, str]:
    """Build the package from the folder ``files`` into ``out``; return {file name: SHA-256}.

    ``epoch_s`` is the time of all files in the results, in s since 1970.
    """
    out.mkdir(parents=True)
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out)]
    for kind in kinds:
        command += ["-t", kind]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch_s)}
    environment.pop("PYTHONPATH", None)
    run(command, cwd=files, env=environment)
    return {path.name: digest(path) for path in sorted(out.iterdir())}


def build_reproducibly(tag: str, out: Path) -> None:
    """Build wheel and sdist of a tag twice, and store them in ``out``. Raises ReleaseError if the two builds differ."""
    epoch_s = int(git("log", "-1", "--format=%ct", tag))
    with tempfile.TemporaryDirectory(prefix="release-") as folder:
        work = Path(folder)
        for name in ("first", "second"):
            archive = subprocess.run(["git", "archive", tag], cwd=REPOSITORY, capture_output=True, check=True).stdout
            with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
                tar.extractall(work / name, filter="data")
        first = build(work / "first", work / "first-built", epoch_s)
        second = build(work / "second", work / "second-built", epoch_s)
        (sdist,) = (work / "first-built").glob("*.tar.gz")
        with tarfile.open(sdist) as tar:
            tar.extractall(work / "sdist", filter="data")
        (unpacked,) = (work / "sdist").iterdir()
        from_sdist = build(unpacked, work / "third-built", epoch_s, ["wheel"])
        for name, expected in first.items():
            for description, built in (("a second build", second), ("a build from the sdist", from_sdist)):
                if built.get(name, expected) != expected:
                    raise ReleaseError(f"{name}: {description} has another digest, so the build is not reproducible")
        if sorted(first) != sorted(file_names(tag.removeprefix("v"))):
            expected_names = ", ".join(file_names(tag.removeprefix("v")))
            raise ReleaseError(f"the build has the files {', '.join(first)}; it must have {expected_names}")
        for path in (work / "first-built").iterdir():
            shutil.copy(path, out / path.name)


def build_site(out: Path, version: str, epoch_s: int) -> str:
    """Build the web site as a zip file in ``out``; return a line with its name and size, or why it was not built."""
    missing = [name for name in _SITE_EXTRA if find_spec(name) is None]
    if missing:
        return f"site: not built, because {', '.join(missing)} is not installed: pip install -e '.[site]'"
    with tempfile.TemporaryDirectory(prefix="release-site-") as folder:
        site = Path(folder) / "site"
        run([sys.executable, "-m", "scripts.site", str(site)], cwd=REPOSITORY)
        path = out / f"sensor_pubsub_workbench-{version}-site.zip"
        zip_folder(site, path, epoch_s)
    return f"site: {path.name}, {path.stat().st_size / 1e6:.1f} MB"


def zip_folder(folder: Path, path: Path, epoch_s: int) -> None:
    """Write the files of a folder into a zip file, in the order of their names.

    All get the time ``epoch_s``, in s since 1970.
    """
    date_time = time.gmtime(epoch_s)[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(file.relative_to(folder).as_posix(), date_time)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
            archive.writestr(entry, file.read_bytes())


def find_python(version: str) -> str | None:
    """Return the path of a Python of this version, such as "3.12": an installed one, or one that uv downloads.

    Returns None if there is neither.
    """
    command = ["sh", "scripts/find_python.sh", version]
    ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if ended.returncode == 0:
        return ended.stdout.strip()
    if shutil.which("uv"):
        installed = subprocess.run(["uv", "python", "install", "--quiet", version], check=False)
        if installed.returncode == 0:
            return run(["uv", "python", "find", version], cwd=REPOSITORY).strip()
    return None


def try_wheel(wheel: Path, version: str) -> str:
    """Install a wheel in an empty environment of Python ``version``, run its demo, and return a line on the result.

    Raises ReleaseError if a command fails. If the Python cannot be found, the line begins with "not tried".
    """
    python = find_python(version)
    if python is None:
        return f"not tried: Python {version} is not installed, and uv could not install it"
    began_s = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="release-trial-") as folder:
        venv, home = Path(folder) / "venv", Path(folder) / "home"
        home.mkdir()
        # The demo gets no variables of this process but those by which it finds programs such as Java.
        environment = {name: os.environ[name] for name in ("PATH", "JAVA_HOME", "LANG") if name in os.environ}
        environment["HOME"] = str(home)
        if shutil.which("uv"):
            run(["uv", "venv", "--quiet", "--python", python, str(venv)], cwd=home)
            run(["uv", "pip", "install", "--quiet", "--python", str(venv / "bin" / "python"), str(wheel)], cwd=home)
        else:
            run([python, "-m", "venv", str(venv)], cwd=home)
            run([str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", str(wheel)], cwd=home)
        installed_s = time.perf_counter() - began_s
        run([str(venv / "bin" / "workbench"), "demo", "--out", "demo"], cwd=home, env=environment)
        run([str(venv / "bin" / "workbench"), "lessons", "list"], cwd=home, env=environment)
        for name in ("demo.html", "demo.png"):
            if not (home / "demo" / name).stat().st_size:
                raise ReleaseError(f"Python {version}: workbench demo wrote an empty {name}")
    demo_s = time.perf_counter() - began_s - installed_s
    return f"tried: Python {version}, installed in {installed_s:.0f} s, workbench demo in {demo_s:.0f} s"


def digest(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def git(*arguments: str) -> str:
    """Return the output of a git command in the repository. Raises ReleaseError if it fails."""
    return run(["git", *arguments], cwd=REPOSITORY).strip()


def run(command: list[str], cwd: Path, env: dict[str, str] | None = None) -> str:
    """Run a command in the folder ``cwd`` and return its output.

    ``env`` has its environment variables; None: those of this process. Raises ReleaseError with the end of the
    command's messages if it fails.
    """
    ended = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        last_lines = "\n".join((ended.stdout + ended.stderr).strip().splitlines()[-15:])
        raise ReleaseError(f"{' '.join(command)} failed with exit code {ended.returncode}:\n{last_lines}")
    return ended.stdout


def choose_tag(tags: list[str]) -> str:
    """Return the only tag of a version, such as "v1.2.0", in ``tags``.

    Raises ReleaseError unless there is exactly one.
    """
    versions = [tag for tag in tags if re.fullmatch(r"v\d[\w.]*", tag)]
    if len(versions) != 1:
        names = ", ".join(versions) or "none"
        raise ReleaseError(f"the commit's tags of versions are: {names}; it must have one, such as: git tag v0.3.0")
    return versions[0]


def release(out: Path, with_site: bool, pythons: Iterable[str], all_pythons: bool) -> None:
    """Build and try a release into the folder ``out``, which is emptied first.

    ``with_site``: whether to build the web site. ``pythons``: versions of Python on which the wheel is tried. At least
    one of them must be found; with ``all_pythons``, all of them. Raises ReleaseError if anything is wrong.
    """
    tag = choose_tag(git("tag", "--points-at", "HEAD").splitlines())
    version = _find_version(_VERSION, "workbench/__init__.py")
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    cited = _find_version(_CITED, "CITATION.cff")
    problems = find_problems(tag, version, cited, changelog, git("status", "--porcelain"))
    if problems:
        raise ReleaseError("\n".join(problems))
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    epoch_s = int(git("log", "-1", "--format=%ct", tag))
    build_reproducibly(tag, out)
    for name in file_names(version):
        print(f"{name}: {(out / name).stat().st_size / 1e6:.2f} MB, the same in every build", flush=True)
    (out / NOTES).write_text(release_notes(changelog, version), encoding="utf-8")
    if with_site:
        print(build_site(out, version, epoch_s), flush=True)
    trials = {}
    for python in pythons:
        trials[python] = try_wheel(out / file_names(version)[1], python)
        print(trials[python], flush=True)
    untried = [python for python, line in trials.items() if line.startswith("not tried")]
    if untried and (all_pythons or len(untried) == len(trials)):
        raise ReleaseError(
            f"the wheel was not tried on Python {', '.join(untried)}; "
            f"install {'all' if all_pythons else 'at least one'} of these versions"
        )
    files = sorted(path for path in out.iterdir())
    lines = [f"{digest(path)}  {path.name}\n" for path in files]
    (out / DIGESTS).write_text("".join(lines), encoding="utf-8")


def _find_version(pattern: re.Pattern[str], name: str) -> str:
    match = pattern.search((REPOSITORY / name).read_text(encoding="utf-8"))
    if match is None:
        raise ReleaseError(f"{name} has no line with the version")
    return match[1]


def main() -> int:
    """Build and try a release, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=REPOSITORY / "out" / "release", metavar="FOLDER")
    parser.add_argument("--no-site", action="store_true", help="leave out the web site")
    parser.add_argument("--no-trial", action="store_true", help="leave out the trials of the wheel")
    parser.add_argument("--all-pythons", action="store_true", help=f"fail unless all of {', '.join(PYTHONS)} are tried")
    options = parser.parse_args()
    began_s = time.perf_counter()
    try:
        release(options.out.resolve(), not options.no_site, () if options.no_trial else PYTHONS, options.all_pythons)
    except ReleaseError as error:
        for line in str(error).splitlines():
            print(f"make release: {line}", file=sys.stderr)
        return 1
    print(f"{options.out}: complete, {time.perf_counter() - began_s:.0f} s; nothing was uploaded")
    return 0


if __name__ == "__main__":
    sys.exit(main())
