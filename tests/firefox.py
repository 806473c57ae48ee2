"""Firefox, driven by WebDriver BiDi (W3C): Playwright drives only a Firefox of its own, not the system's.

with Firefox(tmp_path) as firefox:
    firefox.resize(1280, 900)
    firefox.open("http://127.0.0.1:8000/")
    title = firefox.evaluate("document.title")
"""

import json
import re
import subprocess
from itertools import count
from pathlib import Path

from websocket import create_connection

FIREFOX = Path("/usr/bin/firefox-esr")
WITHIN_S = 300  # of a machine that is busy with other things: only what hangs takes as long
LISTENS = re.compile(r"WebDriver BiDi listening on (ws://\S+)")
# Pages come from loopback alone: these settings end what Firefox looks up by itself.
PREFERENCES = {
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "http://127.0.0.1:9/",
    "toolkit.telemetry.enabled": False,
}
EVALUATE = """
async (script, argument) => {
  const value = (0, eval)(script)
  return JSON.stringify(await (typeof value == "function" ? value(JSON.parse(argument)) : value))
}
"""


class Firefox:
    """A window of a Firefox without a screen, with a new profile in a folder.

    ``folder``: path of an empty folder
    ``is_dark``: whether its user prefers a dark color scheme
    """

    def __init__(self, folder, is_dark=False):
        self.folder, self.is_dark = Path(folder), is_dark
        self.messages = []  # warnings, errors and uncaught exceptions of pages, as texts
        self._numbers = count(1)

    def __enter__(self):
        scheme = {"layout.css.prefers-color-scheme.content-override": 0 if self.is_dark else 1}
        lines = [
            f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in (PREFERENCES | scheme).items()
        ]
        (self.folder / "user.js").write_text("\n".join(lines), encoding="utf-8")
        command = [FIREFOX, "--headless", "--no-remote", "--remote-debugging-port=0", "--profile", self.folder]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        url = next(match[1] for line in self._process.stderr if (match := LISTENS.search(line)))
        self._socket = create_connection(f"{url}/session", timeout=WITHIN_S, suppress_origin=True)
        self._call("session.new", capabilities={})
        self._call("session.subscribe", events=["log.entryAdded"])
        self._context = self._call("browsingContext.getTree")["contexts"][0]["context"]
        return self

    def __exit__(self, *exception):
        self._socket.close()
        self._process.kill()
        self._process.wait()
        self._process.stderr.close()

    def resize(self, width, height):
        """Set the size of the window's page, in CSS pixels."""
        self._call("browsingContext.setViewport", context=self._context, viewport={"width": width, "height": height})

    def open(self, url):
        """Open a page, and wait until it is loaded."""
        self._call("browsingContext.navigate", context=self._context, url=url, wait="complete")

    def evaluate(self, script, argument=None):
        """Return the value of a script; if the value is a function, call it, and if it is a promise, await it."""
        strings = [{"type": "string", "value": text} for text in (script, json.dumps(argument))]
        target = {"context": self._context}
        answer = self._call(
            "script.callFunction", functionDeclaration=EVALUATE, arguments=strings, awaitPromise=True, target=target
        )
        if answer["type"] == "exception":
            raise AssertionError(answer["exceptionDetails"]["text"])
        return json.loads(answer["result"].get("value", "null"))

    def _call(self, method, **params):
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv())
            if message["type"] == "event" and message["params"]["level"] in ("warn", "error"):
                self.messages.append(message["params"]["text"])
            elif message.get("id") == number:
                if message["type"] == "error":
                    raise AssertionError(f"{method}: {message['message']}")
                return message["result"]
