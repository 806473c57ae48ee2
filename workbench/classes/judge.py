"""Judge the answers to one lesson, each in a process of its own: ``python -m workbench.classes.judge JOB.json``.

The job names the lesson's notebook and the answers; each result is a line of JSON on standard output. This process
executes the cells tagged "given" and the right answers once. Then it forks for each answer, so that an answer costs
little and cannot change the objects of another. Where the system has no fork (Windows), each answer repeats the
beginning.

An answer has a time limit, 4 GiB of memory more than the lesson itself (Linux), an empty folder, no input, and its
output is discarded. Before the check, the names that the lesson defines get their values back. This protects a class
from mistakes. It does not protect from students who attack the process: their code runs with the rights of the caller.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from workbench.classes.lessons import ANSWER, Exercise, Lesson
from workbench.errors import WorkbenchError
from workbench.sweeps.limits import limit_memory

RIGHT, WRONG, EMPTY, ERROR, TIMEOUT, UNCHECKED = "right", "wrong", "empty", "error", "timeout", "unchecked"
_EXTRA_MEMORY_MB = (4 << 30) / 1e6
_GRACE_S = 60
_LONGEST = 500  # characters of a sentence
_STUBBORN = (
    "The process of this answer ended before the check, for example because memory ran out, or because the answer "
    "called os._exit."
)


class Attempt(NamedTuple):
    """A student's answer: its position in the job, the number of the exercise, and the sources of its cells."""

    position: int
    number: str
    cells: list[str]


class _PreparedLesson:
    """A lesson, ready for answers: a shell that has executed its given cells, and the names that they defined."""

    def __init__(self, path: Path) -> None:
        from IPython.core.interactiveshell import InteractiveShell
        from traitlets.config import Config

        self.lesson = Lesson(path)
        sys.path.insert(0, str(path.parent))
        config = Config()
        config.HistoryManager.enabled = False  # a thread and a file
        self.shell = InteractiveShell.instance(config=config)
        # %matplotlib needs the event loop of a kernel.
        self.shell.enable_gui = lambda *gui: None  # type: ignore[method-assign]
        self.names: dict[str, Any] = self.shell.user_ns
        self.names["display"] = lambda *values, **options: None
        for source in self.lesson.given:
            self._execute_cell(source)
        self.given = {name: value for name, value in self.names.items() if not name.startswith("_")}

    def judge(self, number: str, cells: list[str]) -> tuple[str, str]:
        """Execute an answer's cells and check the answer; return (result, sentence).

        ``number`` is that of the exercise. The result is `RIGHT`, `WRONG`, `EMPTY` (no answer) or `ERROR`.
        """
        exercise = self.lesson.exercises[number]
        self.names.pop(ANSWER, None)
        try:
            for source in (exercise.preparation, *cells):
                self._execute_cell(source)
        except BaseException as error:  # whatever a student's code raises, such as SystemExit
            return ERROR, _describe_error(error)
        answer = self.names.get(ANSWER)
        try:
            verdict = self._check_answer(exercise, answer)
        except Exception as error:  # an answer may be an object whose methods raise anything
            return ERROR, _describe_error(error)
        if verdict.is_right:
            return RIGHT, str(verdict.sentence)
        return EMPTY if answer is None else WRONG, str(verdict.sentence)

    def _execute_cell(self, source: str) -> None:
        """Execute the source of a cell. Unlike `InteractiveShell.run_cell`, do not keep its output in memory."""
        python = self.shell.transform_cell(source)
        code = compile(python, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        coroutine = eval(code, self.names)
        if inspect.iscoroutine(coroutine):
            asyncio.run(coroutine)

    def _check_answer(self, exercise: Exercise, answer: Any) -> Any:
        self.names.update(self.given)
        exec(compile(exercise.preparation, exercise.number, "exec"), self.names)
        self.names[ANSWER] = answer
        return eval(compile(exercise.check, exercise.number, "eval"), self.names)


_prepared_lesson: _PreparedLesson | None = None  # inherited by the processes of answers


def main(job_file: str) -> None:
    """Judge the answers of a job, and print a line of JSON for each: [position, result, sentence]."""
    global _prepared_lesson
    job = json.loads(Path(job_file).read_text(encoding="utf-8"))
    attempts = [Attempt(*attempt) for attempt in job["attempts"]]
    results = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    path = Path(job["lesson"])
    with _Silence():
        _prepared_lesson = _PreparedLesson(path)
        unusable = _find_unusable({attempt.number for attempt in attempts})
    for attempt in attempts:
        if attempt.number in unusable:
            _write_result(results, attempt, UNCHECKED, unusable[attempt.number])
    usable = [attempt for attempt in attempts if attempt.number not in unusable]
    with tempfile.TemporaryDirectory(prefix="results-") as folder:
        for attempt, result, sentence in _judge_attempts(path, usable, job["timeout_s"], job["workers"], Path(folder)):
            _write_result(results, attempt, result, sentence)


def _find_unusable(numbers: set[str]) -> dict[str, str]:
    """Check the teachers' right answers; return {number of an exercise: the reason why it cannot be checked here}.

    This also fills the caches of the lesson's checks. The processes that judge answers inherit them.
    """
    assert _prepared_lesson is not None
    sentences = {}
    for number in sorted(numbers):
        result, sentence = _prepared_lesson.judge(number, [_prepared_lesson.lesson.answers(number)[0].code])
        if result != RIGHT:
            sentences[number] = f"The teacher's answer is not right on this machine: {sentence}"[:_LONGEST]
        _prepared_lesson.names.update(_prepared_lesson.given)
    return sentences


def _judge_attempts(
    path: Path, attempts: list[Attempt], timeout_s: float, workers: int, folder: Path
) -> Iterator[tuple[Attempt, str, str]]:
    """Judge attempts in processes, at most ``workers`` at the same time; yield (attempt, result, sentence) for each.

    ``path`` is the lesson's notebook, ``timeout_s`` the time limit of an attempt in seconds. The processes write their
    results into files in ``folder``, because an answer could block a pipe.
    """
    warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of a fork while other threads exist
    forks = "fork" in multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("fork" if forks else "spawn")
    waiting = attempts[::-1]
    running: dict[int, tuple[Attempt, Any, float]] = {}  # by the sentinel of the process
    while waiting or running:
        while waiting and len(running) < workers:
            attempt = waiting.pop()
            process = context.Process(target=_judge_attempt, args=(path, attempt, timeout_s, folder))
            process.start()
            running[process.sentinel] = attempt, process, time.monotonic() + timeout_s
        first_end = min(end for _, _, end in running.values())
        ready = wait(list(running), max(0.0, first_end - time.monotonic()))
        for sentinel in list(running):
            attempt, process, end = running[sentinel]
            if sentinel not in ready and time.monotonic() < end:
                continue
            del running[sentinel]
            _end_process(process)
            too_late = f"The answer did not end within {timeout_s:g} s."
            result, sentence = (ERROR, _STUBBORN) if sentinel in ready else (TIMEOUT, too_late)
            with suppress(OSError, ValueError):  # the process ended before it wrote its result
                result, sentence = json.loads((folder / str(attempt.position)).read_text(encoding="utf-8"))
            yield attempt, result, sentence


def _end_process(process: Any) -> None:
    """End a process and the processes that it started."""
    with suppress(OSError, AttributeError):  # no such group, or a system without groups
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()
    process.close()


def _judge_attempt(path: Path, attempt: Attempt, timeout_s: float, results: Path) -> None:
    """Judge an attempt in this process, write the result into the folder ``results``, and end the process."""
    global _prepared_lesson
    if hasattr(os, "setsid"):
        os.setsid()
        signal.alarm(int(timeout_s) + _GRACE_S)  # ends this process even if its parent has been killed
    with _Silence():
        os.chdir(tempfile.mkdtemp(dir=results))
        if _prepared_lesson is None:
            _prepared_lesson = _PreparedLesson(path)
        with suppress(ImportError):  # Windows
            limit_memory(_EXTRA_MEMORY_MB)
        try:
            result = _prepared_lesson.judge(attempt.number, attempt.cells)
        except BaseException as error:  # such as MemoryError or RecursionError outside of the answer's own code
            result = ERROR, _describe_error(error)
        text = json.dumps([result[0], result[1][:_LONGEST]])
        (results / str(attempt.position)).write_text(text, encoding="utf-8")
    os._exit(0)  # without the exit handlers of libraries, which belong to the parent process


class _Silence:
    """A context in which this process and its child processes read no input, and their output is discarded."""

    def __enter__(self) -> None:
        self._null = open(os.devnull, "r+")
        self._saved = [os.dup(number) for number in range(3)]
        for number in range(3):
            os.dup2(self._null.fileno(), number)
        self._redirections = redirect_stdout(self._null), redirect_stderr(self._null)
        for redirection in self._redirections:
            redirection.__enter__()

    def __exit__(self, *error: Any) -> None:
        for redirection in self._redirections:
            redirection.__exit__(None, None, None)
        for number in range(3):
            os.dup2(self._saved[number], number)
            os.close(self._saved[number])
        self._null.close()


def _describe_error(error: BaseException) -> str:
    """Return a sentence that describes an error of an answer's code."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # an error of a student's own class
        text = ""
    sentence = text if isinstance(error, WorkbenchError) else f"{type(error).__name__}: {text}".rstrip(": ")
    return f"The code of the answer raises an error: {sentence[:_LONGEST]}"


def _write_result(results: TextIO, attempt: Attempt, result: str, sentence: str) -> None:
    print(json.dumps([attempt.position, result, sentence]), file=results, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
