"""Detection of this machine's Java, which Spark needs. This module works without Spark, to report a broken setup."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

OLDEST = 17
REMEDY = "apt-get install openjdk-17-jre-headless, or brew install openjdk@17 (sweeps on Spark need it)"


class Java(NamedTuple):
    """The result of the search for Java: its ``version``, and whether Spark can use it (``is_ok``).

    ``version`` is "" if no Java was found. If its version cannot be determined, ``version`` is a text with the reason.
    """

    version: str
    is_ok: bool


def find_java() -> Java:
    """Find the Java that Spark would start: the one in JAVA_HOME, or else the first on the PATH."""
    home = os.environ.get("JAVA_HOME")
    program = Path(home, "bin", "java") if home else Path(shutil.which("java") or "java")
    try:
        output = subprocess.run([program, "-version"], capture_output=True, text=True, check=True, timeout=30).stderr
    except (OSError, subprocess.SubprocessError):
        return Java("JAVA_HOME has no Java" if home else "", False)
    version = re.search(r'version "((\d+)[\d._]*)', output)
    if version is None:
        return Java(output.strip().partition("\n")[0], False)
    return Java(version.group(1), int(version.group(2)) >= OLDEST)
