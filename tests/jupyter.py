"""A notebook in JupyterLab or Notebook 7, in Chromium: tests run cells, and examine the page.

with Jupyter("lab", tmp_path) as jupyter:
    page = jupyter.notebook(chromium, ["import workbench as wb", "run.show()"])
    page.run_cell()
"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

from tests.repository import REPOSITORY
from workbench.cli.lab import app_command, write_app

CHROMIUM = Path("/usr/bin/chromium")
WITHIN_S = 300  # of a machine that is busy with other things: only what hangs takes as long
# After a reload the manager of widgets gives the kernel 4 s to describe all widgets of a page, and else loses some.
PATIENCE = """
const setTimeoutAtOnce = window.setTimeout
window.setTimeout = (act, delay_ms, ...rest) => setTimeoutAtOnce(act, delay_ms === 4000 ? 300000 : delay_ms, ...rest)
"""
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
# Kernels that other processes start at the same time would take free ports from each other; sockets in files do not.
_OWN_SOCKETS = Config({"KernelManager": {"transport": "ipc"}})
OPTIONS = (
    "--no-browser",
    "--expose-app-in-browser",
    "--allow-root",
    "--ServerApp.ip=127.0.0.1",
    "--IdentityProvider.token=",
    "--ServerApp.disable_check_xsrf=True",
    "--LabApp.news_url=None",
)


def client_of(notebook, **options):
    """Return a client that executes a notebook in a kernel of its own; ``options`` are those of NotebookClient."""
    return NotebookClient(notebook, config=_OWN_SOCKETS, **options)


def execute(notebook, **options):
    """Execute a notebook in a kernel of its own, and start another kernel if the first does not answer.

    About one kernel in a thousand starts never publishes a message, for an unknown reason, while others start.
    """
    for attempt in range(3):
        try:
            return client_of(notebook, startup_timeout=20, **options).execute()
        except RuntimeError as error:
            if attempt == 2 or "respond" not in str(error):
                raise
    return None


def end(server):
    """Terminate a server's process, and kill it if it waits for a kernel that was starting: that never ends."""
    server.terminate()
    try:
        server.wait(15)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


class Jupyter:
    """A server of JupyterLab (application "lab") or Notebook 7 ("notebook") on loopback, with a folder of its own."""

    def __init__(self, application, folder):
        self.application, self.folder = application, Path(folder)

    def __enter__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        own = {f"JUPYTER_{kind}_DIR": str(self.folder / kind.lower()) for kind in ("CONFIG", "DATA", "RUNTIME")}
        own["JUPYTERLAB_SETTINGS_DIR"] = str(self.folder / "settings")
        self._keep_all_cells(self.folder / "settings")
        own["PYTHONPATH"] = os.pathsep.join(filter(None, (str(REPOSITORY), os.environ.get("PYTHONPATH", ""))))
        command = [sys.executable, "-m", "jupyter", self.application, *OPTIONS, f"--ServerApp.port={self.port}"]
        self.log = (self.folder / "server.log").open("w")
        self.process = subprocess.Popen(
            [*command, f"--ServerApp.root_dir={self.folder}"],
            env=os.environ | own,
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )
        end_s = time.monotonic() + WITHIN_S
        while not self._answers():
            assert self.process.poll() is None and time.monotonic() < end_s, (self.folder / "server.log").read_text()
            time.sleep(0.1)
        return self

    @staticmethod
    def _keep_all_cells(folder):
        """Make JupyterLab render all cells, as tests examine cells that are not in sight."""
        settings = folder / "@jupyterlab" / "notebook-extension"
        settings.mkdir(parents=True)
        (settings / "tracker.jupyterlab-settings").write_text('{"windowingMode": "none"}')

    def __exit__(self, *_):
        end(self.process)
        self.log.close()

    def _answers(self):
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api", timeout=WITHIN_S).status == 200
        except OSError:
            return False

    def kernels(self):
        """Return the ids of the running kernels."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/kernels", timeout=WITHIN_S) as answer:
            return [kernel["id"] for kernel in json.load(answer)]

    def shut_down(self, kernel):
        """End a kernel."""
        where = f"http://127.0.0.1:{self.port}/api/kernels/{kernel}"
        urllib.request.urlopen(urllib.request.Request(where, method="DELETE"), timeout=WITHIN_S).close()

    def notebook(self, chromium, cells, name="notebook.ipynb", size=(1366, 768)):
        """Open a new notebook with these cells in a page of its own."""
        notebook = nbformat.v4.new_notebook(metadata=KERNEL)
        notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
        nbformat.write(notebook, self.folder / name)
        return self.opened(chromium, name, size)

    def opened(self, chromium, name, size=(1366, 768)):
        """Open a notebook from the folder in a page of its own."""
        page = chromium.new_page(viewport={"width": size[0], "height": size[1]})
        page.add_init_script(PATIENCE)
        where = "lab/tree" if self.application == "lab" else "notebooks"
        page.goto(f"http://127.0.0.1:{self.port}/{where}/{name}?reset")
        return Notebook(page)


class App:
    """The lab served by Voilà on loopback, as ``workbench app`` serves it; its kernel works in the folder.

    before: code that its kernel runs first.
    """

    def __init__(self, folder, before=""):
        self.folder, self.before = Path(folder), before

    def __enter__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        path = write_app(self.folder)
        notebook = nbformat.read(path, as_version=4)
        # The app's cell goes to the folder in which it was started, which is not that of the tests.
        source = notebook.cells[0].source.replace(repr(str(Path.cwd())), repr(str(self.folder)))
        notebook.cells[0].source = f"{self.before}\n{source}"
        nbformat.write(notebook, path)
        own = {f"JUPYTER_{kind}_DIR": str(self.folder / kind.lower()) for kind in ("CONFIG", "DATA", "RUNTIME")}
        own["PYTHONPATH"] = os.pathsep.join(filter(None, (str(REPOSITORY), os.environ.get("PYTHONPATH", ""))))
        self.log = (self.folder / "server.log").open("w")
        self.process = subprocess.Popen(
            app_command(path, True, self.port), env=os.environ | own, stdout=self.log, stderr=subprocess.STDOUT
        )
        end_s = time.monotonic() + WITHIN_S
        while not self._listens():
            assert self.process.poll() is None and time.monotonic() < end_s, (self.folder / "server.log").read_text()
            time.sleep(0.1)
        return self

    def __exit__(self, *_):
        end(self.process)
        self.log.close()

    def _listens(self):
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", self.port)) == 0

    def opened(self, chromium, size=(1366, 900), theme="light"):
        """Open the lab in a page of its own, which sends requests only to this server."""
        page = chromium.new_page(viewport={"width": size[0], "height": size[1]})
        page.set_default_timeout(1000 * WITHIN_S)
        address = f"http://127.0.0.1:{self.port}/"
        page.route(lambda url: not url.startswith(address), lambda route: route.abort())
        page.goto(f"{address}?theme={theme}", timeout=1000 * WITHIN_S)
        return page


class Notebook:
    """A notebook in a page, driven through its application. ``complaints``: the errors that the page logged."""

    def __init__(self, page):
        self.page = page
        self.complaints = []
        page.on("pageerror", lambda error: self.complaints.append(f"{error} {error.stack}"))
        page.set_default_timeout(1000 * WITHIN_S)
        page.wait_for_function("() => window.jupyterapp?.shell.currentWidget?.content?.widgets?.length")
        page.evaluate("() => jupyterapp.shell.currentWidget.context.ready")

    def run(self, cell, times=1):
        """Run a cell ``times`` times; return when it has been executed."""
        for _ in range(times):
            self.page.evaluate(
                "async (cell) => { const panel = jupyterapp.shell.currentWidget; await panel.sessionContext.ready;"
                " panel.content.activeCellIndex = cell; await jupyterapp.commands.execute('notebook:run-cell') }",
                cell,
            )

    def save(self):
        """Write the notebook with its outputs into its file."""
        self.page.evaluate("() => jupyterapp.shell.currentWidget.context.save()")

    def output(self, cell):
        """Return the text that a cell has printed."""
        outputs = self.page.evaluate(
            "(cell) => jupyterapp.shell.currentWidget.content.widgets[cell].model.outputs.toJSON()", cell
        )
        return "".join("".join(output.get("text", "")) for output in outputs)

    def players(self, expression="one.picture.title"):
        """Return the value of an expression for each player ``one`` in the page."""
        return self.page.evaluate(
            "() => [...document.querySelectorAll('.wb-player')].map((root) => root.workbenchPlayer)"
            f".map((one) => {expression})"
        )
