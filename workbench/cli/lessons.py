"""``workbench lessons``: list the lessons, export them for a class, and check submitted notebooks."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any


def add_parser(commands: Any) -> None:
    """Add the sub-command ``lessons`` to the command line."""
    parser = commands.add_parser("lessons", help="list lessons, export them for a class, check submitted notebooks")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    shown = actions.add_parser("list", help="list the lessons and their exercises")
    shown.set_defaults(command=list_lessons)

    export = actions.add_parser("export", help="write the lessons for students, for teachers or for nbgrader")
    kind = export.add_mutually_exclusive_group(required=True)
    kind.add_argument("--plain", action="store_true", help="notebooks for students and, with answers, for teachers")
    kind.add_argument("--nbgrader", action="store_true", help="the folder of a course of nbgrader")
    export.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="the folder to write into")
    export.set_defaults(command=export_lessons)

    check = actions.add_parser("check", help="check submitted notebooks; this executes the students' code")
    check.add_argument("submissions", type=Path, metavar="SUBMISSIONS", help="a folder with a sub-folder per student")
    check.add_argument(
        "--out",
        type=Path,
        default=Path("out", "lessons"),
        metavar="FOLDER",
        help="folder for passed.csv and sentences.csv (default: out/lessons)",
    )
    check.add_argument(
        "--timeout-s", type=float, default=120.0, metavar="S", help="time limit of an answer in seconds (default: 120)"
    )
    check.add_argument("--workers", type=int, metavar="N", help="answers that run at the same time (default: cores)")
    check.set_defaults(command=check_submissions)

    for action in (shown, export, check):
        action.add_argument(
            "--lesson",
            action="append",
            metavar="NN",
            help="only this lesson, such as 05; may be repeated (default: all)",
        )
        action.add_argument("--lessons", type=Path, metavar="FOLDER", help="your own folder of lessons")


def list_lessons(options: argparse.Namespace) -> int:
    """Print the lessons with their titles, and their exercises with the first sentence of each."""
    from workbench.classes.lessons import find_lessons

    for lesson in find_lessons(options.lessons, options.lesson):
        print(f"{lesson.name}: {lesson.title}")
        for exercise in lesson.exercises.values():
            sentence = " ".join(exercise.text.split())
            print(f"    {exercise.number}  {sentence if len(sentence) <= 110 else sentence[:107].rstrip() + '...'}")
    return 0


def export_lessons(options: argparse.Namespace) -> int:
    """Write the lessons into a folder, and print what to do next."""
    from workbench.classes.lessons import find_lessons
    from workbench.classes.nbgrader import export_nbgrader
    from workbench.classes.plain import export_plain

    lessons = find_lessons(options.lessons, options.lesson)
    if options.nbgrader:
        paths = export_nbgrader(lessons, options.out)
        print(f"wrote a course of nbgrader with {len(paths)} assignments into {options.out}")
        if paths:
            print(f"next: cd {options.out} && nbgrader generate_assignment {paths[0].stem}")
    else:
        export_plain(lessons, options.out)
        print(f"wrote {len(lessons)} notebooks each for students and for teachers into {options.out}")
        print(f"next: hand out {options.out / 'students'}; later: workbench lessons check SUBMISSIONS")
    return 0


def check_submissions(options: argparse.Namespace) -> int:
    """Check submitted notebooks: print a table of students and exercises, and write it as CSV."""
    from workbench.classes import submissions
    from workbench.classes.lessons import find_lessons

    checked = submissions.check_submissions(
        options.submissions,
        find_lessons(options.lessons, options.lesson),
        options.timeout_s,
        options.workers,
        lambda line: print(line, file=sys.stderr, flush=True),
    )
    for file, reason in checked.ignored:
        print(f"{file}: left out: {reason}", file=sys.stderr)
    if checked.results:
        _print_table([["student", *checked.exercises, "right"], *checked.table()])
    passed, sentences = checked.save(options.out)
    print(f"wrote {passed} and {sentences}")
    return 0


def _print_table(rows: list[list[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
