"""The commands ``workbench lab``, which opens JupyterLab, and ``workbench app``, which serves the lab without code.

Both listen only on this machine's loopback interface.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import workbench

FIRST_NOTEBOOK = "00-start.ipynb"
# JupyterLab extensions that need its menus or notebooks, and show errors in a page without them.
_NOT_OF_AN_APP = ("ipylab", "@voila-dashboards/jupyterlab-preview", "@jupyter-notebook/lab-extension")
_APP = "from workbench.widgets import tabs\n\ntabs.lab_of_this_tab()"


def add_parser(commands: Any) -> None:
    """Add the sub-commands ``lab`` and ``app`` to the command line."""
    lab = commands.add_parser("lab", help="open JupyterLab on the first notebook")
    lab.add_argument("--no-browser", action="store_true", help="only print the address")
    lab.set_defaults(command=open_lab)
    app = commands.add_parser("app", help="serve the lab in the browser, without code")
    app.add_argument("--no-browser", action="store_true", help="only print the address")
    app.add_argument(
        "--port", type=int, default=None, help="port to listen on (default: the first free one from 8866 on)"
    )
    app.set_defaults(command=open_app)


def open_lab(options: argparse.Namespace) -> int:
    """Replace this process by JupyterLab, which opens the first notebook."""
    command = lab_command(options.no_browser, _is_root())
    os.execv(command[0], command)


def open_app(options: argparse.Namespace) -> int:
    """Replace this process by Voilà, which serves a notebook whose only cell shows the lab.

    Scenarios are saved in the folder ``.workbench`` of the current folder, in one file for each browser tab.
    """
    folder = Path(tempfile.mkdtemp(prefix="workbench-app-"))
    command = app_command(write_app(folder), options.no_browser, options.port)
    os.execv(command[0], command)


def write_app(folder: Path) -> Path:
    """Write the notebook that ``workbench app`` serves into ``folder``, and return its path.

    The notebook's code runs in the current folder.
    """
    cell_source = f"import os\n\nos.chdir({str(Path.cwd())!r})\n{_APP}"
    cell = {
        "cell_type": "code",
        "execution_count": None,
        "id": "lab",
        "metadata": {},
        "outputs": [],
        "source": cell_source,
    }
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"cells": [cell], "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    path = folder / "lab.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def app_command(notebook: Path, no_browser: bool, port: int | None) -> list[str]:
    """Return the command that starts Voilà on a notebook.

    ``no_browser``: whether to start without a browser window; ``port``: the server's TCP port, None: Voilà's choice.
    """
    command = [sys.executable, "-m", "voila", str(notebook), "--Voila.ip=127.0.0.1", "--show_tracebacks=True"]
    command += [f"--VoilaConfiguration.extension_denylist={extension}" for extension in _NOT_OF_AN_APP]
    command += ["--no-browser"] if no_browser else []
    command += [f"--port={port}"] if port is not None else []
    return command


def _is_root() -> bool:
    return os.geteuid() == 0 if hasattr(os, "geteuid") else False


def notebooks() -> Path | None:
    """Return the folder with the notebooks, or None if the workbench was installed without them."""
    folder = Path(workbench.__file__).parents[1] / "notebooks"
    return folder if (folder / FIRST_NOTEBOOK).is_file() else None


def lab_command(no_browser: bool, as_root: bool) -> list[str]:
    """Return the command that starts JupyterLab in the folder of the notebooks, with the first notebook open.

    Without that folder, JupyterLab starts in the current folder. ``no_browser``: whether to start JupyterLab without a
    browser window; ``as_root``: whether this process runs as root, which JupyterLab refuses without a special option.
    """
    folder = notebooks()
    command = [sys.executable, "-m", "jupyterlab", "--ServerApp.ip=127.0.0.1"]
    command.append(f"--ServerApp.root_dir={folder or Path.cwd()}")
    command += [f"--LabApp.default_url=/lab/tree/{FIRST_NOTEBOOK}"] if folder else []
    command += ["--no-browser"] if no_browser else []
    command += ["--allow-root"] if as_root else []
    return command
