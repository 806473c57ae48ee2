"""A standalone cluster of Spark on the loopback: a master, and workers in separate process groups."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import venv
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark

from tests.until import wait_until

PYTHON = "python-of-the-workers"  # each worker finds its own Python of this name on its path
# Little memory and no second compiler, because the Java side only distributes tasks.
SMALL = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
CONFIG = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": SMALL,
}


def free_port():
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_listening(port):
    """Return whether a process on this machine listens on a port."""
    with socket.socket() as line:
        return line.connect_ex(("127.0.0.1", port)) == 0


def python_with_libraries_alone(folder):
    """Return a Python that has the libraries of this one, but not the package."""
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder / "venv")
    site = next((folder / "venv" / "lib").glob("python3*")) / "site-packages"
    # A .pth file installs the package, and Python reads such files only in a site's own folder.
    (site / "libraries.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    return folder / "venv" / "bin" / "python"


def bin_of_bare_python(folder, name):
    """Return a new folder with an executable ``name``: a Python that has the libraries, but not the package."""
    binaries = folder / "bin"
    binaries.mkdir()
    (binaries / name).write_text(f'#!/bin/sh\nexec {python_with_libraries_alone(folder)} "$@"\n')
    (binaries / name).chmod(0o755)
    return binaries


def environment(**variables):
    """Return the environment of this process without variables that lead to this checkout, plus the given ones."""
    plain = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYSPARK_PYTHON")}
    home = Path(pyspark.__file__).parent
    return plain | {"SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13", "SPARK_LOCAL_IP": "127.0.0.1", **variables}


class Cluster:
    """A master and its workers; `url` is the master's. Each worker has its own core, Python and cache."""

    def __init__(self, folder):
        self._folder = folder
        self._processes = []
        self.workers = []
        self.port = free_port()
        self.url = f"spark://127.0.0.1:{self.port}"
        self._begin("master", "master.Master", "--port", str(self.port), env=environment())

    def add_worker(self, name, python):
        """Start a worker whose tasks run in this Python."""
        home = self._folder / name
        (home / "bin").mkdir(parents=True)
        (home / "bin" / PYTHON).write_text(f'#!/bin/sh\nexec {python} "$@"\n')
        (home / "bin" / PYTHON).chmod(0o755)
        path = os.pathsep.join([str(home / "bin"), os.environ["PATH"]])
        env = environment(PATH=path, XDG_CACHE_HOME=str(home / "cache"))
        options = ("--cores", "1", "--memory", "1g", "--work-dir", str(home / "work"), self.url)
        self.workers.append(self._begin(name, "worker.Worker", *options, env=env))

    def _begin(self, name, role, *options, env):
        java = shutil.which("java", path=f"{os.environ.get('JAVA_HOME', '')}/bin:{os.environ['PATH']}")
        jars = Path(pyspark.__file__).parent / "jars" / "*"
        command = [java, *SMALL.split(), "-Xmx256m", "-cp", str(jars), f"org.apache.spark.deploy.{role}"]
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [*command, "--host", "127.0.0.1", "--webui-port", "0", *options],
                env=env,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def wait(self):
        """Wait until drivers and workers can register."""
        log = self._folder / "master.log"
        wait_until(lambda: "elected leader" in log.read_text(errors="replace"), 60, every_s=0.1)

    def kill_worker(self):
        """End a worker with its executors at once, as when its machine loses power."""
        worker = self.workers.pop()
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()

    def kill_executors(self):
        """End all executors and their Python processes, but not the workers, which start new ones; return how many."""
        folder, killed = str(self._folder), 0
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                command = (process / "cmdline").read_bytes()
                if b"CoarseGrainedExecutorBackend" in command and os.readlink(process / "cwd").startswith(folder):
                    os.kill(int(process.name), signal.SIGKILL)
                    killed += 1
        return killed

    def close(self):
        """End the master and all workers."""
        for process in self._processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@contextmanager
def cluster(folder):
    """Yield a cluster of two workers that register when they are up; the second one does not have the package."""
    begun = Cluster(folder)
    try:
        begun.add_worker("with", sys.executable)
        begun.add_worker("without", python_with_libraries_alone(folder))
        begun.wait()
        yield begun
    finally:
        begun.close()
