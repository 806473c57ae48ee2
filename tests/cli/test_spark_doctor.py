"""`workbench doctor --spark` without Spark: addresses, failures of tasks, and reports on made-up workers."""

import os
import platform
import socket
import sys
import threading

import pytest

from tests.sweeps.cluster import free_port
from workbench import cli
from workbench.cli import spark_doctor
from workbench.cli.spark_doctor import NOTE, OK, PROBLEM, Check, Report
from workbench.errors import WorkbenchError
from workbench.locations import location
from workbench.sweeps.spark import probe

GB = 10**9
HERE = platform.python_version()
MINOR = HERE.rpartition(".")[0]
LIBRARIES = ("pyspark", "pyarrow", "pandas", "numpy", "networkx", "numba")


def answer(host="a", **changes):
    """Return the answer of a worker on which everything is in order, with changes."""
    return {
        "host": host,
        "process": 17,
        "python": HERE,
        "executable": "/usr/bin/python3",
        "libraries": {name: probe.library_version(name) for name in LIBRARIES},
        "memory": {"available_B": 8 * GB, "limit_B": None},
        "cache": {"folder": "/home/u/.cache/workbench/code", "is_writable": True},
        "package": {"folder": "/home/u/.cache/workbench/code/workbench-1", "error": ""},
        "location": {"is_read": True, "is_written": True, "error": ""},
        "missing_variables": [],
        "offset_s": 0.0,
        "slots": 2,
        "began_s": 0.0,
        "ended_s": 1.0,
    } | changes


def with_library(host, name, version):
    return answer(host, libraries=answer()["libraries"] | {name: version})


# The report


def test_report_begins_with_the_verdict_and_puts_each_remedy_below_its_sentence():
    checks = [Check("Python", OK, "3.11.7"), Check("libraries", PROBLEM, "numpy is missing on a", "pip install numpy")]
    assert str(Report(checks, "")).splitlines() == [
        "Not ready: 1 problem",
        "",
        "Python     ok       3.11.7",
        "libraries  PROBLEM  numpy is missing on a",
        "                    remedy: pip install numpy",
    ]
    ready = Report([checks[0], Check("memory", NOTE, "0.5 GB")], "2 workers with 4 cores can run sweeps")
    assert str(ready).splitlines()[0] == "Ready: 2 workers with 4 cores can run sweeps" and ready.is_ready


def test_lines_of_a_report_fit_into_a_terminal():
    report = str(Report([Check("results", PROBLEM, "word " * 80, "word " * 80)], ""))
    assert max(map(len, report.splitlines())) <= 120


# The address


@pytest.mark.parametrize("master", ["yarn", "http://host:7077", "spark://host", "spark://host:0", "sc://host:x", ""])
def test_a_url_that_is_not_of_spark_is_an_error_with_the_allowed_forms(master):
    with pytest.raises(WorkbenchError, match=r"--spark is .*; it must be local\[\*\], .*sc://HOST:15002"):
        spark_doctor.examine(master)


@pytest.mark.parametrize(
    ("master", "addresses"),
    [
        ("local[*]", []),
        ("local", []),
        ("spark://a:7077", [("a", 7077)]),
        ("spark://a:1,b:2", [("a", 1), ("b", 2)]),
        ("spark://[::1]:7077", [("::1", 7077)]),
        ("sc://a", [("a", 15002)]),
        ("sc://a:443/;use_ssl=true", [("a", 443)]),
    ],
)
def test_addresses_of_a_url(master, addresses):
    assert spark_doctor._parse_addresses(master) == addresses


@pytest.mark.parametrize("scheme", ["spark", "sc"])
def test_a_refused_connection_is_one_problem(scheme, capsys):
    assert cli.main(["doctor", "--spark", f"{scheme}://127.0.0.1:{free_port()}"]) == 1
    verdict, _, sentence, remedy = capsys.readouterr().out.splitlines()
    assert verdict == "Not ready: 1 problem"
    assert "master  PROBLEM  127.0.0.1 refuses connections to port" in sentence and "start the master" in remedy


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (socket.gaierror(-2, "unknown"), "the host name lab is unknown here"),
        (TimeoutError("timed out"), r"lab cannot be reached on port 7077 within 5 s \(no answer\)"),
        (OSError(113, "No route to host"), r"lab cannot be reached on port 7077 within 5 s \(No route to host\)"),
    ],
)
def test_an_address_that_does_not_answer_is_one_problem(monkeypatch, error, sentence):
    def raise_error(*_):
        raise error

    monkeypatch.setattr(socket, "create_connection", raise_error)
    with pytest.raises(spark_doctor._ProblemError, match=sentence) as caught:
        spark_doctor.check_address([("lab", 7077)])
    assert caught.value.check.remedy


def test_a_port_that_is_not_of_spark_is_given_up(monkeypatch, tmp_path, capsys):
    """A listener accepts the connection and never answers."""
    never = threading.Event()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(spark_doctor, "open_session", lambda *_: never.wait(60))
    monkeypatch.setattr(spark_doctor, "OPEN_S", 0.1)
    monkeypatch.setattr(spark_doctor, "_END_S", 0.0)
    monkeypatch.setattr(os, "_exit", sys.exit)
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(SystemExit) as end:
        cli.main(["doctor", "--spark", f"spark://127.0.0.1:{listener.getsockname()[1]}"])
    assert end.value.code == 1
    never.set()
    assert "although its port accepts connections" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_missing_packages_of_connect_are_one_problem(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "pyspark.sql.connect.session", None)
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert cli.main(["doctor", "--spark", f"sc://127.0.0.1:{listener.getsockname()[1]}"]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "session PROBLEM Spark Connect needs packages that are missing remedy: pip install" in printed


def test_missing_java_is_one_problem(monkeypatch, tmp_path, capsys):
    from pyspark import SparkContext

    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert cli.main(["doctor", "--spark", "local[2]"]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert (
        "session PROBLEM Spark needs Java 17 or newer; found: JAVA_HOME has no Java remedy: apt-get install" in printed
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--out", "results"], "apply only with --spark"),
        (["--spark", "local[2]", "--conf", "driver.host=a"], "write it as spark.NAME=VALUE"),
        (["--spark", "local[2]", "--out", "s3:///results"], "names no bucket"),
    ],
)
def test_invalid_options_are_one_sentence(arguments, sentence, capsys):
    assert cli.main(["doctor", *arguments]) == 2
    assert sentence in capsys.readouterr().err


# Failures of tasks

LOST = "Job aborted: Lost task 0.0 in stage 1.0 (TID 4) (10.0.0.2 executor 1): "


@pytest.mark.parametrize(
    ("text", "subject", "sentence", "remedy"),
    [
        (
            f"{LOST}[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.12,",
            "Python",
            "Python is 3.9 on 10.0.0.2, and 3.12 here; Spark needs the same minor version",
            "PYSPARK_PYTHON",
        ),
        (
            f'{LOST}java.io.IOException: Cannot run program "/opt/python": error=2, No such file or directory',
            "Python",
            "the program /opt/python does not exist on 10.0.0.2",
            "PYSPARK_PYTHON",
        ),
        (
            f"{LOST}Traceback:\n ModuleNotFoundError: No module named 'pyarrow.lib'\n",
            "libraries",
            "pyarrow is missing on 10.0.0.2",
            "pip install 'pyarrow>=",
        ),
        (f"{LOST}\njava.lang.OutOfMemoryError: heap", "workers", "a task failed on 10.0.0.2: ", ""),
    ],
)
def test_a_failure_of_a_task_is_a_sentence_and_a_remedy(text, subject, sentence, remedy):
    check = spark_doctor._make_failed_check(RuntimeError(text))
    assert (check.subject, check.state) == (subject, PROBLEM)
    assert check.sentence.startswith(sentence) and remedy in check.remedy


# Answers of workers


def test_two_workers_in_order_have_no_remedies():
    checks = spark_doctor.check_workers([answer("a"), answer("b")])
    assert [check.subject for check in checks] == ["workers", "Python", "libraries", "memory", "package", "clocks"]
    assert {(check.state, check.remedy) for check in checks} == {(OK, "")}
    assert checks[0].sentence == "2 workers answered: a (process 17), b (process 17)"


def test_many_workers_are_counted():
    check, *_ = spark_doctor.check_workers([answer(f"node{number}") for number in range(9)])
    assert check.sentence.startswith("9 workers answered: node0") and check.sentence.endswith(" and 5 more")


def test_another_minor_version_of_python_is_a_problem_and_another_patch_is_not():
    check = spark_doctor.check_python([answer("a"), answer("b", python="3.9.1")])
    assert check.state == PROBLEM and "Python is 3.9.1 on b" in check.sentence
    assert f"a Python {MINOR}" in check.remedy
    assert spark_doctor.check_python([answer("a", python=f"{MINOR}.99")]).state == OK


@pytest.mark.parametrize(
    ("name", "version", "state", "sentence"),
    [
        ("networkx", None, PROBLEM, "networkx is missing on b"),
        ("numba", None, PROBLEM, "numba is missing on b"),
        ("pandas", "3.0.1", PROBLEM, "pandas is 3.0.1 on b; it must be"),
        ("numpy", "1.99", NOTE, "numpy is 1.99 on b, and "),
    ],
)
def test_a_library_that_is_missing_or_differs_is_named_with_its_host(name, version, state, sentence):
    (check,) = spark_doctor.check_libraries([answer("a"), with_library("b", name, version)])
    assert check.state == state and check.sentence.startswith(sentence) and name in check.remedy


def test_little_memory_for_each_core_is_a_note():
    crowded = answer("b", memory={"available_B": 1.5 * GB, "limit_B": 2 * GB})
    check = spark_doctor.check_memory([answer("a"), crowded])
    assert (
        check.state == NOTE and "1.5 GB of a limit of 2.0 GB are available on b for 2 tasks at once" in check.sentence
    )
    assert spark_doctor.check_memory([answer("a")]).state == OK
    two_of_a_host = [answer("a", process=number, memory={"available_B": 3 * GB, "limit_B": None}) for number in (1, 2)]
    assert "for 4 tasks at once, less than 1 GB for each core" in spark_doctor.check_memory(two_of_a_host).sentence
    unknown = answer(memory={"available_B": None, "limit_B": None})
    assert "do not report" in spark_doctor.check_memory([unknown]).sentence


def test_a_cache_that_cannot_be_written_is_a_note_that_names_the_fallback():
    check = spark_doctor.check_package([answer("b", cache={"folder": "/cache", "is_writable": False})])
    assert (
        check.state == NOTE
        and "/cache cannot be written on b, so the package is unpacked to Spark's own" in check.sentence
    )
    assert "XDG_CACHE_HOME" in check.remedy


def test_a_package_that_cannot_be_unpacked_is_a_problem():
    check = spark_doctor.check_package([answer("b", package={"folder": "", "error": "No space left on device"})])
    assert check.state == PROBLEM and "No space left on device" in check.sentence


def test_a_clock_that_differs_much_is_a_note():
    check = spark_doctor.check_clocks([answer("a"), answer("b", offset_s=-3600.0)])
    assert check.state == NOTE and "the clock of b is 3600 s behind this machine's" in check.sentence


UNSEEN = {"is_read": False, "is_written": False, "error": "No such file or directory"}


def test_a_folder_that_workers_do_not_see_is_not_shared_and_no_problem():
    check = spark_doctor.check_location("/home/u/results", [answer("a"), answer("b", location=UNSEEN)])
    assert check.state == NOTE
    assert check.sentence.startswith("/home/u/results is not shared: b cannot read files of this process there.")
    assert "this process writes all their results" in check.sentence and "a shared folder or a URL" in check.remedy


def test_a_url_that_workers_do_not_reach_is_a_problem_with_the_names_of_missing_variables():
    unable = answer("b", location=UNSEEN | {"error": "Forbidden"}, missing_variables=["AWS_REGION"])
    check = spark_doctor.check_location("s3://bucket/results", [answer("a"), unable])
    assert check.state == PROBLEM and check.sentence == "s3://bucket/results cannot be read on b: Forbidden"
    assert check.remedy == "set AWS_REGION in the environment of the workers, as here"


def test_a_location_that_can_only_be_read_is_a_note():
    reader = answer("b", location={"is_read": True, "is_written": False, "error": "Permission denied"})
    check = spark_doctor.check_location("/shared", [answer("a"), reader])
    assert check.state == NOTE and "can be read, but not written, on b: Permission denied" in check.sentence


def test_a_location_that_this_process_cannot_write_is_a_problem(tmp_path):
    (tmp_path / "file").write_text("")
    with spark_doctor._probe_file(tmp_path / "file" / "results") as (probe_file, error):
        assert probe_file is None
    check = spark_doctor.check_location("there", [], error)
    assert check.state == PROBLEM and "cannot be written by this process: Not a directory" in check.sentence
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_variables_are_those_of_the_store_of_a_url(monkeypatch):
    for name in [name for name in os.environ if name.startswith(("AWS_", "GOOGLE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_REGION", "here")
    monkeypatch.setenv("GOOGLE_BUCKET", "here")
    assert spark_doctor._list_needed_variables("s3://bucket") == ["AWS_REGION"]
    assert (
        spark_doctor._list_needed_variables("/folder") == spark_doctor._list_needed_variables("memory://bucket") == []
    )


# The probe file


def test_probe_files_and_new_folders_are_deleted_also_after_an_error(tmp_path):
    with pytest.raises(ZeroDivisionError), spark_doctor._probe_file(tmp_path / "a" / "b") as (probe_file, error):
        assert not error
        written = tmp_path / "a" / "b" / probe_file["name"]
        assert written.read_text() == probe_file["content"]
        written.with_name(f"{written.name}-of-a-lost-worker").write_text("")
        1 / 0
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_results_stays(tmp_path):
    (tmp_path / "rows.parquet").write_text("")
    with spark_doctor._probe_file(tmp_path):
        assert len(list(tmp_path.iterdir())) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["rows.parquet"]


def test_probe_in_an_object_store_is_deleted(memory_url):
    place = location(memory_url)
    with spark_doctor._probe_file(place) as (probe_file, _):
        assert [path.name for path in place.iterdir()] == [probe_file["name"]]
    assert list(place.iterdir()) == []


def test_tasks_at_once_are_counted_for_each_worker():
    times = [("a", 0, 2), ("a", 1, 3), ("a", 3, 4), ("b", 0, 1)]
    answers = [answer(host, began_s=began_s, ended_s=ended_s) for host, began_s, ended_s in times]
    assert spark_doctor.tasks_at_once(answers) == {("a", 17): 2, ("b", 17): 1}
