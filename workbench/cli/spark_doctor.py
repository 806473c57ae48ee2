"""The command ``workbench doctor --spark URL``: whether a Spark session can run sweeps, and what to do if it cannot.

Theory of operation
    A connection to the master's port is tried first, because Spark itself takes a minute to report that a master cannot
    be reached. Then a session is opened as for a sweep, and the package is sent to the workers. A job with twice as
    many tasks as cores follows. Spark gives the tasks of a job to the executors in turn, and each task waits a moment,
    so that every executor probably gets a task. On a cluster the job is repeated until no new worker has answered for
    some seconds, because executors start at different times. A task runs the checks of `probe` on its worker.

    A job ends with the first failed task. If it fails, single tasks run as jobs of their own, so that the report names
    both the failure and the results of all other workers.

    The driver writes a small file of random content into the location of results. Each worker reads it, and tries to
    write and delete a file of its own. At the end the driver deletes all of them, and the folder if it has created it.

Cost
    Some seconds beyond the start of the session. Every step has a time limit.
"""

from __future__ import annotations

import json
import os
import platform
import re
import secrets
import socket
import textwrap
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from importlib import import_module, metadata
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from workbench import java
from workbench.cli.doctor import DISTRIBUTION, LINE_WIDTH, is_within
from workbench.errors import WorkbenchError
from workbench.locations import Location, is_url, location
from workbench.sweeps.spark import probe, shipping
from workbench.sweeps.spark.session import CONNECT_REMEDY, ConnectSession, Session, open_session, reason

OK, NOTE, PROBLEM = "ok", "note", "PROBLEM"
DEFAULT_OUT = "results"
CONNECT_S = 5.0  # for a connection to the master's port
OPEN_S = 75.0  # for the session: Spark itself gives up after 60 s if the master does not answer
WRITE_S = 20.0  # for the driver's probe file
JOB_S = 90.0  # for a job, which includes the start of the first executor
WAIT_S = 0.5  # duration of a task
SETTLE_S = 4.0  # time without a new worker after which a cluster is complete
_END_S = 2.0  # for a thread whose task was cancelled
_THREAD_NAME = "spark-doctor"
_MOST_TASKS = 1000
_SINGLE_TASKS = 16
_LEAST_MEMORY_B = 1e9  # for each core
_LARGE_OFFSET_S = 60.0
_CLUSTER = re.compile(r"spark://([^/,;]+(?:,[^/,;]+)*)/?")
_CONNECT = re.compile(r"sc://([^/;]+)/?(;.*)?")
_LOCAL = re.compile(r"local(\[(\d+|\*)(,\d+)?\])?")
_CONNECT_PORT = 15002
_REQUIRED_LIBRARIES = ("pyspark", "pyarrow", "pandas", "numpy", "networkx", "numba")
_OBJECT_STORES = "obstore"
# Environment variables with which obstore finds a store and its credentials, by the scheme of a URL.
_VARIABLES = {
    "s3": ("AWS_",),
    "s3a": ("AWS_",),
    "gs": ("GOOGLE_",),
    "az": ("AZURE_",),
    "azure": ("AZURE_",),
    "abfs": ("AZURE_",),
    "abfss": ("AZURE_",),
}
_NOT_FOR_WORKERS = ("AWS_PAGER", "AWS_CLI_AUTO_PROMPT", "AWS_EXECUTION_ENV", "AZURE_CONFIG_DIR")
_NAMED_WORKERS = 4

Answer = dict[str, Any]  # of a worker, as `probe.describe_worker` returns it
Result = TypeVar("Result")


class Check(NamedTuple):
    """The result of one check: its subject, a state, a sentence, and a remedy ("" if nothing needs to be done).

    The state is `OK`, `NOTE` (sweeps can run) or `PROBLEM`.
    """

    subject: str
    state: str
    sentence: str
    remedy: str = ""


class Report(NamedTuple):
    """All checks of a Spark session.

    As text it begins with the verdict, which is ``ready`` if no check is a problem.
    """

    checks: list[Check]
    ready: str

    @property
    def is_ready(self) -> bool:
        """True if sweeps can run: no check has found a problem."""
        return not any(check.state == PROBLEM for check in self.checks)

    def __str__(self) -> str:
        problems = sum(check.state == PROBLEM for check in self.checks)
        verdict = f"Not ready: {problems} problem{'s' if problems > 1 else ''}" if problems else f"Ready: {self.ready}"
        width = max(len(check.subject) for check in self.checks)
        lines = [verdict, ""]
        for check in self.checks:
            sentence = f"{check.subject:{width}}  {check.state:{len(PROBLEM)}}  {check.sentence}"
            indent = " " * (width + len(PROBLEM) + 4)
            remedy = f"remedy: {check.remedy}" if check.remedy else ""
            for text, first in ((sentence, ""), (remedy, indent)):
                lines += textwrap.wrap(
                    text,
                    LINE_WIDTH,
                    initial_indent=first,
                    subsequent_indent=indent,
                    break_on_hyphens=False,
                    break_long_words=False,
                )
        return "\n".join(lines)


class _LateError(Exception):
    """The error that a call did not return within its time limit."""


class _ProblemError(Exception):
    """The error that a problem makes further checks impossible; ``check`` describes the problem."""

    def __init__(self, check: Check) -> None:
        super().__init__(check.sentence)
        self.check = check


def examine(master: str, out: str | None = None, config: Mapping[str, str] | None = None) -> Report:
    """Check a Spark session, its workers, and whether they can read and write the location ``out``; return the report.

    ``master`` is the session's URL, ``config`` its settings. ``out`` is the folder or URL of results; None stands for
    the folder "results". Raises WorkbenchError if ``master`` is not a URL of Spark.
    """
    addresses = _parse_addresses(master)
    place = location(out or DEFAULT_OUT).absolute()
    checks: list[Check] = []
    try:
        check_address(addresses)
        session, is_own = _get_session(master, dict(config or {}))
        try:
            return _examine_session(session, master, place, checks)
        finally:
            if is_own:
                with suppress(Exception):  # The report matters, not the session's end.
                    _run_within(10.0, session.spark.stop)
    except _ProblemError as problem:
        return Report([*checks, problem.check], "")


def _examine_session(session: Session, master: str, place: Location, checks: list[Check]) -> Report:
    """Check an open session, append the results to ``checks``, and return the report.

    ``place`` is the location of results. Raises _ProblemError if no worker answers.
    """
    checks.append(Check("session", OK, f"Spark {session.spark.version} at {master}"))
    with _probe_file(place) as (probe_file, error):
        workers = _Workers(session, place, probe_file)
        answers, failures = workers.collect()
        checks += failures
        if not answers:
            raise _ProblemError(checks.pop() if failures else _describe_silence(session, master))
        cores = _count_cores(session)
        checks += check_workers(answers, session)
        results = check_location(str(place), answers, error)
        checks.append(results)
    names = _list_workers(answers)
    can_all_write = all(answer.get("location", {}).get("is_written") for answer in answers)
    numbers = f"{len(names)} worker{'s' if len(names) > 1 else ''} with {cores} core{'s' if cores > 1 else ''}"
    writing = f" and write to {place}" if can_all_write else f"; only this process writes to {place}"
    return Report(checks, f"{numbers} can run sweeps{writing}")


# The address of the master


def _parse_addresses(master: str) -> list[tuple[str, int]]:
    """Return [(host, port), ...] of the servers in the URL ``master``; [] for Spark on this machine, "local[2]".

    Raises WorkbenchError if ``master`` is not a URL of Spark.
    """
    with suppress(ValueError):
        if _LOCAL.fullmatch(master):
            return []
        if match := _CLUSTER.fullmatch(master):
            return [_split_address(address, None) for address in match[1].split(",")]
        if match := _CONNECT.fullmatch(master):
            return [_split_address(match[1], _CONNECT_PORT)]
    raise WorkbenchError(f"--spark is {master!r}; it must be local[*], local[2], spark://HOST:7077 or sc://HOST:15002")


def _split_address(address: str, default_port: int | None) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if not colon and default_port is not None:
        return address, default_port
    if not host or not 0 < int(port) < 1 << 16:
        raise ValueError(address)
    return host.strip("[]"), int(port)


def check_address(addresses: Sequence[tuple[str, int]]) -> None:
    """Connect to one of the addresses. Raises _ProblemError if none of them accepts a connection."""
    problem = None
    for host, port in addresses:
        try:
            socket.create_connection((host, port), CONNECT_S).close()
        except socket.gaierror:
            sentence, remedy = f"the host name {host} is unknown here", "check the name, or use the address instead"
        except ConnectionRefusedError:
            sentence = f"{host} refuses connections to port {port}"
            remedy = "start the master or the Connect server, or check the port (docs/CLUSTER.md has the commands)"
        except OSError as error:
            cause = "no answer" if isinstance(error, TimeoutError) else error.strerror or str(error)
            sentence = f"{host} cannot be reached on port {port} within {CONNECT_S:g} s ({cause})"
            remedy = "check the address, the network and the firewall between this machine and the master"
        else:
            return
        problem = problem or Check("master", PROBLEM, sentence, remedy)
    if problem:
        raise _ProblemError(problem)


def _run_within(limit_s: float, call: Callable[[], Result]) -> Result:
    """Return the result of ``call``, which runs in a thread. Raises _LateError after ``limit_s`` seconds."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    # This process can end although a daemon thread still waits for Spark.
    threading.Thread(target=run, daemon=True, name=_THREAD_NAME).start()
    if not wait([future], limit_s).done:
        raise _LateError
    return future.result()


def is_waiting() -> bool:
    """Return whether a call that exceeded its time limit is still running in a thread.

    The function first waits a moment for the end of such threads.
    """
    threads = [thread for thread in threading.enumerate() if thread.name.startswith(_THREAD_NAME)]
    for thread in threads:
        thread.join(_END_S)
    return any(thread.is_alive() for thread in threads)


def _get_session(master: str, config: Mapping[str, str]) -> tuple[Session, bool]:
    """Return (session, whether this function has opened it): the active Spark session, or else a new one.

    Raises _ProblemError if the session cannot be opened.
    """
    from pyspark import SparkContext

    is_own = SparkContext._active_spark_context is None
    try:
        return _run_within(OPEN_S, lambda: open_session(master, config)), is_own
    except _LateError:
        sentence = f"no Spark answers at {master} within {OPEN_S:g} s, although its port accepts connections"
        remedy = "check that the port is the master's (spark://, 7077) or the Connect server's (sc://, 15002)"
        raise _ProblemError(Check("session", PROBLEM, sentence, remedy)) from None
    except WorkbenchError as error:
        raise _ProblemError(_make_session_check(str(error), master)) from None


def _make_session_check(text: str, master: str) -> Check:
    """Return the check that describes why no session could be opened at the URL ``master``.

    ``text`` is the error's message. If it contains one of the workbench's remedies, the check gets this remedy.
    """
    for remedy in (java.REMEDY, CONNECT_REMEDY):
        sentence, separator, rest = text.partition(remedy)
        if separator:
            return Check("session", PROBLEM, sentence.rstrip(" :;"), remedy + rest)
    remedy = "check that the port is that of the master or the Connect server, and that its Spark has this version"
    return Check("session", PROBLEM, text, remedy if _parse_addresses(master) else "")


def _count_cores(session: Session) -> int:
    try:
        return _run_within(JOB_S, lambda: session.cores)
    except Exception as error:
        raise _ProblemError(_make_failed_check(error)) from None


# The location of results


@contextmanager
def _probe_file(place: Location) -> Iterator[tuple[dict[str, str] | None, str]]:
    """Yield (description of a probe file, error text), after writing the file into a location of results.

    `probe.try_location` reads the file on workers. The description is None, and the error text is not "", if the file
    cannot be written. At the end of the context all probe files are deleted, and so are the folders created for them.
    """
    name, content = f".workbench-doctor-{secrets.token_hex(8)}", secrets.token_hex(32)
    created = [] if is_url(place) else [path for path in (place, *place.absolute().parents) if not path.exists()]
    error_text = ""
    try:
        try:
            _run_within(WRITE_S, lambda: _write_probe(place, name, content))
        except _LateError:
            error_text = f"no answer within {WRITE_S:g} s"
        except Exception as error:  # Libraries of stores raise errors of their own.
            error_text = str(error) if isinstance(error, WorkbenchError) else probe.describe_error(error)
        yield ({"folder": str(place), "name": name, "content": content} if not error_text else None), error_text
    finally:
        with suppress(Exception):
            _run_within(WRITE_S, lambda: _delete_probes(place, name))
        for folder in created:
            with suppress(OSError):
                folder.rmdir()


def _write_probe(place: Location, name: str, content: str) -> None:
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_bytes(content.encode())


def _delete_probes(place: Location, name: str) -> None:
    # A worker that was lost may have left its own file.
    for path in [*place.glob(f"{name}*")]:
        path.unlink(missing_ok=True)


def _list_needed_variables(place: str) -> list[str]:
    """Return the names of this process's environment variables that workers need to access the location ``place``.

    These are variables such as AWS_REGION for a URL of S3; [] for a folder.
    """
    prefixes = _VARIABLES.get(place.partition("://")[0].lower(), ()) if is_url(place) else ()
    return sorted(name for name in os.environ if name.startswith(prefixes or ("\0",)) and name not in _NOT_FOR_WORKERS)


# Tasks on the workers


class _Workers:
    """The workers of a Spark session, which are queried by tasks that run `probe.describe_worker`."""

    def __init__(self, session: Session, place: Location, probe_file: dict[str, str] | None) -> None:
        self._session, self._place, self._probe_file = session, place, probe_file
        self._group = f"workbench-doctor-{os.getpid()}-{secrets.token_hex(4)}"

    def collect(self) -> tuple[list[Answer], list[Check]]:
        """Return an answer of each worker that was reached, and a failed check for each distinct error of a task."""
        describe = self._prepare_task()
        waits = not self._session.is_here and not isinstance(self._session, ConnectSession)
        answers: dict[tuple[str, int], Answer] = {}
        new_s = monotonic()
        while True:
            count = min(_MOST_TASKS, max(4, 2 * _count_cores(self._session)))
            try:
                round_answers = _run_within(JOB_S, partial(self._run_job, describe, count))
            except _LateError:
                self._cancel_jobs()
                return list(answers.values()), []
            except Exception as error:
                return self._run_single_tasks(describe, answers, error)
            is_complete = self._merge_answers(answers, round_answers)
            if not is_complete:
                new_s = monotonic()
            if self._session.is_here or (is_complete and (not waits or monotonic() - new_s > SETTLE_S)):
                return list(answers.values()), []

    def _prepare_task(self) -> Callable[[Any], str]:
        """Send the package to the workers, and return the function that each task runs on its worker."""
        archive = None
        if not self._session.is_here:
            package = shipping.package_file()
            try:
                _run_within(JOB_S, lambda: self._session.send_file(str(package)))
            except Exception as error:
                cause = "no answer" if isinstance(error, _LateError) else reason(error)
                raise _ProblemError(Check("package", PROBLEM, f"the package could not be sent: {cause}")) from None
            archive = package.name
        probe.send_by_value()
        import_package = shipping.package_importer(archive, str(shipping.HOME.parent))
        names = [*_REQUIRED_LIBRARIES, *([_OBJECT_STORES] if is_url(self._place) else [])]
        variables, probe_file, wait_s = _list_needed_variables(str(self._place)), self._probe_file, WAIT_S
        describe_worker = probe.describe_worker

        def describe(_: Any) -> str:
            import json

            return json.dumps(describe_worker(names, variables, import_package, probe_file, wait_s))

        return describe

    def _run_job(self, describe: Callable[[Any], str], count: int) -> list[Answer]:
        """Run a job of ``count`` tasks on the workers, each of which calls ``describe``; return the tasks' answers.

        The function is sent as a plain UDF, which needs no pyarrow on the workers.
        """
        from pyspark.sql.types import StringType

        is_connect = isinstance(self._session, ConnectSession)
        functions: Any = import_module(f"pyspark.sql{'.connect' if is_connect else ''}.functions")
        self._session.set_group(self._group)
        # A type given by its name would need the session that is active in this thread.
        function = functions.udf(describe, StringType(), useArrow=False)
        began_s = datetime.now(UTC).timestamp()
        rows = self._session.spark.range(0, count, 1, count).select(function("id")).collect()
        ended_s = datetime.now(UTC).timestamp()
        answers = [json.loads(row[0]) for row in rows]
        for answer in answers:
            answer["offset_s"] = min(0.0, answer["clock_s"] - began_s) + max(0.0, answer["clock_s"] - ended_s)
        return answers

    def _merge_answers(self, answers: dict[tuple[str, int], Answer], round_answers: list[Answer]) -> bool:
        """Add the answers of a job to ``answers``, {worker: answer}; return whether the job reached no new worker."""
        known = set(answers)
        for key, slots in tasks_at_once(round_answers).items():
            answer = next(answer for answer in round_answers if _host_and_process(answer) == key)
            answers[key] = {**answer, "slots": max(slots, answers.get(key, {}).get("slots", 1))}
        return set(answers) == known

    def _run_single_tasks(
        self, describe: Callable[[Any], str], answers: dict[tuple[str, int], Answer], error: Exception
    ) -> tuple[list[Answer], list[Check]]:
        """Run jobs of one task each, after a larger job has failed with ``error``.

        Return the answers of all workers so far, and a failed check for each distinct error.
        """
        failures = [_make_failed_check(error)]
        threads = ThreadPoolExecutor(_SINGLE_TASKS, _THREAD_NAME)
        futures = [threads.submit(self._run_job, describe, 1) for _ in range(_SINGLE_TASKS)]
        done, late = wait(futures, JOB_S)
        if late:
            self._cancel_jobs()
        threads.shutdown(wait=not late, cancel_futures=True)
        round_answers: list[Answer] = []
        for future in done:
            if single_error := future.exception():
                failures.append(_make_failed_check(single_error))
            else:
                round_answers += future.result()
        self._merge_answers(answers, round_answers)
        return list(answers.values()), list(dict.fromkeys(failures))

    def _cancel_jobs(self) -> None:
        with suppress(Exception):
            _run_within(10.0, lambda: self._session.cancel(self._group))


def _host_and_process(answer: Answer) -> tuple[str, int]:
    return answer["host"], answer["process"]


def _list_workers(answers: Sequence[Answer]) -> list[tuple[str, int]]:
    return sorted({_host_and_process(answer) for answer in answers})


def tasks_at_once(answers: Sequence[Answer]) -> dict[tuple[str, int], int]:
    """Return {worker: largest number of tasks that it has run at once}; a worker is identified by (host, process)."""
    changes = defaultdict(list)
    for answer in answers:
        changes[_host_and_process(answer)] += [(answer["began_s"], 1), (answer["ended_s"], -1)]
    counts = {}
    for key, events in changes.items():
        running, counts[key] = 0, 1
        for _, change in sorted(events):
            running += change
            counts[key] = max(counts[key], running)
    return counts


# Failures of tasks


def _describe_silence(session: Session, master: str) -> Check:
    """Return the check that describes that no task has ended within the time limit."""
    sentence = f"no worker has run a task within {JOB_S:g} s"
    if isinstance(session, ConnectSession):
        return Check(
            "workers", PROBLEM, sentence, "check on the server's page that its cluster has workers, and free cores"
        )
    host = session.spark.sparkContext.getConf().get("spark.driver.host")
    return Check(
        "workers",
        PROBLEM,
        sentence,
        "check on the master's page that workers with free cores and enough memory exist "
        f"(--conf spark.executor.memory=512m), and that they can connect to this machine as {host} "
        "(else --conf spark.driver.host=ADDRESS)",
    )


def _make_failed_check(error: BaseException) -> Check:
    """Return the check that explains why a task or a job failed."""
    text = str(error)
    match = re.search(r"\(TID \d+\) \((\S+) executor \w+\)", text)
    where = f" on {match[1]}" if match else " on a worker"
    here = ".".join(platform.python_version_tuple()[:2])
    python_remedy = (
        f"install Python {here} there, and set PYSPARK_PYTHON to its path before the session starts: in the "
        "environment of this command, or of the Spark Connect server"
    )
    if match := re.search(r"PYTHON_VERSION_MISMATCH\D*(\d+\.\d+)\D*(\d+\.\d+)", text):
        sentence = f"Python is {match[1]}{where}, and {match[2]} here; Spark needs the same minor version"
        return Check("Python", PROBLEM, sentence, python_remedy)
    if match := re.search(r"Cannot run program \"([^\"]+)\"", text):
        return Check("Python", PROBLEM, f"the program {match[1]} does not exist{where}", python_remedy)
    if match := re.search(r"No module named '([\w.]+)'", text):
        library = match[1].partition(".")[0]
        return Check("libraries", PROBLEM, f"{library} is missing{where}", _install_remedy([library]))
    if isinstance(error, _LateError):
        return Check("workers", PROBLEM, f"no answer within {JOB_S:g} s", "check on Spark's page what the workers do")
    return Check("workers", PROBLEM, f"a task failed{where}: {reason(error)}")  # type: ignore[arg-type]


# Checks of the workers' answers


def check_workers(answers: Sequence[Answer], session: Session | None = None) -> list[Check]:
    """Return the results of all checks of the workers: Python, libraries, memory, package and clocks."""
    is_here = session is not None and session.is_here
    return [
        _check_presence(answers),
        check_python(answers),
        *check_libraries(answers),
        check_memory(answers),
        check_package(answers, is_here),
        check_clocks(answers),
    ]


def _check_presence(answers: Sequence[Answer]) -> Check:
    names = [f"{host} (process {process})" for host, process in _list_workers(answers)]
    count = f"{len(names)} worker{'s' if len(names) > 1 else ''} answered"
    return Check("workers", OK, f"{count}: {_join_names(names)}")


def check_python(answers: Sequence[Answer]) -> Check:
    """Return the result of a check: the workers need the minor version of Python of this process, such as 3.12."""
    here = platform.python_version()
    hosts_by_version = _group_hosts(answers, lambda answer: answer["python"])
    wrong = {
        version: hosts for version, hosts in hosts_by_version.items() if version.split(".")[:2] != here.split(".")[:2]
    }
    if wrong:
        versions = "; ".join(f"Python is {version} on {_join_names(hosts)}" for version, hosts in wrong.items())
        remedy = f"set PYSPARK_PYTHON to the path of a Python {'.'.join(here.split('.')[:2])} on the workers"
        return Check("Python", PROBLEM, f"{versions}, and {here} here", remedy)
    programs = _join_names(sorted({answer["executable"] for answer in answers}))
    return Check("Python", OK, f"{_join_names(sorted(hosts_by_version))} ({programs}); {here} here")


def check_libraries(answers: Sequence[Answer]) -> list[Check]:
    """Return the results of a check: the workers need the libraries of a task, in versions that the package allows."""
    checks = []
    installed: dict[str, str] = {}
    bounds = _read_version_bounds()
    for name in answers[0]["libraries"]:
        here = probe.library_version(name)
        for version, hosts in _group_hosts(answers, partial(_find_version, name)).items():
            where = _join_names(hosts)
            if version is None:
                checks.append(Check("libraries", PROBLEM, f"{name} is missing on {where}", _install_remedy([name])))
            elif version[0].isdigit() and not is_within(version, bounds.get(name, "")):
                sentence = f"{name} is {version} on {where}; it must be {bounds[name]}"
                checks.append(Check("libraries", PROBLEM, sentence, _install_remedy([name])))
            elif version != here:
                sentence = f"{name} is {version} on {where}, and {here or 'missing'} here"
                remedy = f"install {name} {here} there if results must be equal to the last digit" if here else ""
                checks.append(Check("libraries", NOTE, sentence, remedy))
            else:
                installed[name] = version
    if installed and not checks:
        versions = ", ".join(f"{name} {version}" for name, version in installed.items())
        return [Check("libraries", OK, f"{versions}, as here")]
    return checks


def _find_version(name: str, answer: Answer) -> str | None:
    return answer["libraries"][name]


def _read_version_bounds() -> dict[str, str]:
    """Return {library: version bounds} of the libraries that the package requires, such as {"pandas": "<3,>=2.2"}."""
    try:
        requirements = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return {}
    matches = (re.match(r"([\w.-]+)\s*([<>=\d.,\s]*)$", text) for text in requirements)
    return {match[1]: match[2].strip() for match in matches if match}


def _install_remedy(names: Sequence[str]) -> str:
    bounds = _read_version_bounds()
    specifications = " ".join(f"'{name}{bounds.get(name, '')}'" for name in names)
    return f"pip install {specifications}, in the Python of the workers (PYSPARK_PYTHON)"


def check_memory(answers: Sequence[Answer]) -> Check:
    """Return the result of a check: a worker's machine needs about 1 GB of free memory for each of its cores.

    Only the cores that Spark uses count.
    """
    slots: Counter[str] = Counter()
    available_B: dict[str, float] = {}
    limits_B: dict[str, float] = {}
    for answer in answers:
        host, memory = answer["host"], answer["memory"]
        slots[host] += answer.get("slots", 1)
        if memory["available_B"] is not None:
            available_B[host] = min(memory["available_B"], available_B.get(host, float("inf")))
        if memory["limit_B"] is not None:
            limits_B[host] = memory["limit_B"]
    if not available_B:
        return Check("memory", NOTE, "the workers' systems do not report their available memory")
    shares_B = {host: size_B / slots[host] for host, size_B in available_B.items()}
    host = min(shares_B, key=lambda name: shares_B[name])
    limit = f" of a limit of {limits_B[host] / 1e9:.1f} GB" if host in limits_B else ""
    tasks = f"{slots[host]} task{'s' if slots[host] > 1 else ''} at once"
    sentence = f"{available_B[host] / 1e9:.1f} GB{limit} are available on {host} for {tasks}"
    if shares_B[host] < _LEAST_MEMORY_B:
        remedy = f"use fewer cores of {host} (--cores of its worker, or spark.cores.max), or give it 1 GB for each core"
        return Check("memory", NOTE, f"{sentence}, less than 1 GB for each core", remedy)
    return Check("memory", OK, f"at least {sentence}" if len(shares_B) > 1 else sentence)


def check_package(answers: Sequence[Answer], is_here: bool = False) -> Check:
    """Return the result of a check: the workers must be able to import the package, and to write its cache folder.

    With ``is_here`` the workers are on this machine and import the installed package; otherwise they unpack a copy.
    """
    for error, hosts in _group_hosts(answers, lambda answer: answer["package"]["error"]).items():
        if error:
            sentence = f"the package cannot be unpacked on {_join_names(hosts)}: {error}"
            return Check("package", PROBLEM, sentence, "set XDG_CACHE_HOME of the workers to a folder with free space")
    unwritable = [answer for answer in answers if not answer["cache"]["is_writable"]]
    for folder, hosts in _group_hosts(unwritable, lambda answer: answer["cache"]["folder"]).items():
        effect = "machine code" if is_here else "the package is unpacked to Spark's own folder, and its machine code"
        sentence = f"{folder} cannot be written on {_join_names(hosts)}, so {effect} is compiled again in each session"
        return Check("package", NOTE, sentence, "set XDG_CACHE_HOME of the workers to a folder that they can write")
    if is_here:
        return Check("package", OK, f"the workers import it from {answers[0]['package']['folder']}")
    folders = sorted({answer["cache"]["folder"] for answer in answers})
    return Check("package", OK, f"sent, and unpacked in {_join_names(folders)}")


def check_clocks(answers: Sequence[Answer]) -> Check:
    """Return the result of a check: the workers' clocks should differ from this machine's by less than 60 s."""
    answer = max(answers, key=lambda answer: abs(answer["offset_s"]))
    if abs(answer["offset_s"]) < _LARGE_OFFSET_S:
        return Check("clocks", OK, f"they differ by less than {_LARGE_OFFSET_S:g} s")
    direction = "ahead of" if answer["offset_s"] > 0 else "behind"
    sentence = f"the clock of {answer['host']} is {abs(answer['offset_s']):.0f} s {direction} this machine's"
    return Check("clocks", NOTE, sentence, "set it by NTP: object stores refuse requests with a wrong time")


def check_location(place: str, answers: Sequence[Answer], error: str = "") -> Check:
    """Return the result of a check: this process and the workers should be able to write to ``place``.

    ``error`` is the text of the error with which this process failed to write; "" if it succeeded.
    """
    if error:
        remedy = "check the credentials in the environment variables, and the name" if is_url(place) else ""
        sentence = f"{place} cannot be written by this process: {error}"
        return Check("results", PROBLEM, sentence, remedy or "use --out with another folder or URL")
    blind = [answer for answer in answers if not answer["location"]["is_read"]]
    if blind and is_url(place):
        cause = blind[0]["location"]["error"]  # Texts of one cause differ, as they contain durations.
        sentence = f"{place} cannot be read on {_join_names(_list_hosts(blind))}: {cause}"
        missing = sorted({name for answer in blind for name in answer["missing_variables"]})
        remedy = f"set {', '.join(missing)} in the environment of the workers, as here" if missing else ""
        return Check("results", PROBLEM, sentence, remedy or "check the network, the proxy and the store's permissions")
    if blind:
        sentence = (
            f"{place} is not shared: {_join_names(_list_hosts(blind))} cannot read files of this process there. "
            "Sweeps work, because this process writes all their results"
        )
        remedy = (
            "workers can write only to a shared folder or a URL: --out /shared/results, or --out s3://bucket/results"
        )
        return Check("results", NOTE, sentence, remedy)
    unable = [answer for answer in answers if not answer["location"]["is_written"]]
    for cause, hosts in _group_hosts(unable, lambda answer: answer["location"]["error"]).items():
        sentence = f"{place} can be read, but not written, on {_join_names(hosts)}: {cause}"
        remedy = (
            "give the workers' user the permission to write; sweeps work, because this process writes their results"
        )
        return Check("results", NOTE, sentence, remedy)
    return Check("results", OK, f"this process and the workers can read and write {place}")


def _list_hosts(answers: Sequence[Answer]) -> list[str]:
    return sorted({answer["host"] for answer in answers})


def _group_hosts(answers: Sequence[Answer], value: Callable[[Answer], Any]) -> dict[Any, list[str]]:
    """Group the hosts of the answers by a property of an answer: {property: hosts}.

    The function ``value`` returns the property of an answer."""
    groups = defaultdict(list)
    for answer in answers:
        groups[value(answer)].append(answer)
    return {key: _list_hosts(members) for key, members in groups.items()}


def _join_names(names: Sequence[str]) -> str:
    """Return names as text, separated by commas; of a long list, only the first names and the number of the others."""
    if len(names) > _NAMED_WORKERS:
        return f"{', '.join(names[:_NAMED_WORKERS])} and {len(names) - _NAMED_WORKERS} more"
    return ", ".join(names)
