"""A real headless Chromium, driven over a pipe by its DevTools protocol: no package stands between it and the tests."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

HANG_S: Final = 60

HOW_TO_GET_IT: Final = (
    "no Chromium here, so the tests of the live page in a browser are left out; install it"
    " (Debian, Ubuntu: `apt-get install chromium`) and run again"
)

_PIPES: Final = (
    "import os, sys; reads, writes = int(sys.argv[1]), int(sys.argv[2]); os.dup2(reads, 3); os.dup2(writes, 4);"
    "os.execv(sys.argv[3], sys.argv[3:])"
)
"""Chromium takes its orders from descriptor 3, and answers on 4."""


def chromium() -> str | None:
    """The Chromium of this machine."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """A running Chromium."""

    def __init__(self, orders: int, answers: int) -> None:
        self._orders = orders
        self._answers = answers
        self._read = b""
        self._calls = 0
        self._events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **params: Any) -> Any:
        """Give an order and return its answer."""
        self._calls += 1
        message = {"id": self._calls, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self._orders, json.dumps(message).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self._calls:
                assert "error" not in told, (method, told)
                return told["result"]
            self._events.append(told)

    def events(self, session: str, *methods: str) -> list[dict[str, Any]]:
        """What a page told of itself so far."""
        return [each for each in self._events if each.get("sessionId") == session and each["method"] in methods]

    def _next(self) -> Any:
        while b"\0" not in self._read:
            assert select.select([self._answers], [], [], HANG_S)[0], "Chromium says nothing"
            part = os.read(self._answers, 1 << 20)
            assert part, "Chromium has ended"
            self._read += part
        told, _, self._read = self._read.partition(b"\0")
        return json.loads(told)

    def open(self, url: str, *, width: int = 1280, dark: bool = False, script: bool = True) -> Page:
        """Open a page."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log"):
            page.call(f"{domain}.enable")
        page.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.call("Emulation.setEmulatedMedia", features=[scheme])
        page.call("Emulation.setScriptExecutionDisabled", value=not script)
        page.call("Page.navigate", url=url)
        page.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'")
        return page


class Page:
    """A page in it."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session

    def call(self, method: str, **params: Any) -> Any:
        """Give an order to this page."""
        return self._browser.call(method, self._session, **params)

    def value(self, expression: str) -> Any:
        """Return what an expression comes to in the page. (DevTools' own: also where the page's scripts are off.)"""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def text(self, selector: str = "body") -> str:
        """Return what a reader sees of an element."""
        return str(self.value(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def wait_for(self, expression: str) -> None:
        """Wait until an expression holds."""
        deadline = time.monotonic() + HANG_S
        while not self.value(expression):
            assert time.monotonic() < deadline, (expression, self.text())
            time.sleep(0.05)

    def problems(self) -> list[str]:
        """What went wrong in it: exceptions, refused resources, violations of its content security policy."""
        told = self._browser.events(self._session, "Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(each["params"]) for each in told]

    def picture(self, file: Path) -> None:
        """Write what it looks like, for people."""
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]))


@contextmanager
def running(program: str, profile: Path) -> Iterator[Browser]:
    """A Chromium, ended at the end."""
    (orders_out, orders), (answers, answers_in) = os.pipe(), os.pipe()
    # Beyond the two that Chromium wants: none of them may stand in the other's place.
    passed = [fcntl.fcntl(each, fcntl.F_DUPFD, 10) for each in (orders_out, answers_in)]
    # As root, in containers, Chromium starts only without its sandbox.
    sandbox = () if os.geteuid() else ("--no-sandbox",)
    arguments = ("--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run", *sandbox)
    process = subprocess.Popen(
        [sys.executable, "-c", _PIPES, *map(str, passed), program, *arguments, f"--user-data-dir={profile}"],
        pass_fds=passed,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for each in (orders_out, answers_in, *passed):
        os.close(each)
    browser = Browser(orders, answers)
    try:
        yield browser
    finally:
        try:
            browser.call("Browser.close")
            process.wait(HANG_S)
        finally:
            process.kill()
            process.wait()
            os.close(orders)
            os.close(answers)
