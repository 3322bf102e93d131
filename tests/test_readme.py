"""Every command and every program in README.md, run as a newcomer would, beside the command of `make run`."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
HANG_S = 120

NOT_RUN_HERE = {
    "make run": "the fixture runs its command",
    "make test": ".ci/run calls it",
    ". .venv/bin/activate": "tests run in an environment already",
}
FOLLOWING = {"loopwarden watch"}
DEMO_DONE = "Loopwarden stays up"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    lines = [re.split(r"\s{2,}#", line)[0].strip() for block in blocks("sh") for line in block.splitlines()]
    return [line for line in lines if line and line not in NOT_RUN_HERE]


def program(name: str) -> str:
    (text,) = (block for block in blocks("python") if block.startswith(f"# {name}\n"))
    return text


class Newcomer:
    """A folder that looks like a clone, an environment of its own, and everything up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("streams", "infra", ".venv", "schemas"):
            (folder / name).symlink_to(ROOT / name)
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("LOOPWARDEN_", "KAFKA_"))},
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "XDG_DATA_HOME": str(folder / "data"),
            "COLUMNS": "160",
        }
        self.log = folder / "up.log"
        # What else `make run` says and does, under another make for instance, only sets up .venv.
        told = subprocess.run(["make", "--dry-run", "run"], cwd=ROOT, capture_output=True, text=True, check=True)
        (command,) = (line.split() for line in told.stdout.splitlines() if line.startswith(".venv/bin/loopwarden up"))
        with self.log.open("wb") as log:
            self.up = subprocess.Popen(
                [sys.executable, "-m", "loopwarden.cli", *command[1:]],
                cwd=folder,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_for(self, text: str) -> str:
        """Wait until the output of `up` has this pattern; return what it matched."""
        deadline = time.monotonic() + HANG_S
        while True:
            shown = self.log.read_text(encoding="utf-8", errors="replace")
            found = re.search(text, shown)
            if found is not None:
                return found[0]
            assert self.up.poll() is None and time.monotonic() < deadline, shown
            time.sleep(0.2)

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )

    def follow(self, command: str) -> int:
        """Run a command that follows, and end it as a person would."""
        with subprocess.Popen(
            command.split(), cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as following:
            assert following.stderr is not None
            hung = threading.Timer(HANG_S, following.kill)
            hung.start()
            # A person ends it once it says that it is there.
            told = next((line for line in following.stderr if re.search(b"Ctrl-C ends|listening on", line)), None)
            hung.cancel()
            assert told is not None, command
            following.send_signal(signal.SIGINT)
            following.communicate(timeout=HANG_S)
            return following.returncode


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    newcomer = Newcomer(tmp_path_factory.mktemp("newcomer"))
    try:
        servers = newcomer.wait_for(r"(?:127\.0\.0\.1|localhost):\d+")
        newcomer.environment["LOOPWARDEN_BOOTSTRAP_SERVERS"] = servers
        newcomer.wait_for(DEMO_DONE)
        yield newcomer
        newcomer.up.send_signal(signal.SIGINT)
        assert newcomer.up.wait(HANG_S) == 0, newcomer.log.read_text(encoding="utf-8")
    finally:
        newcomer.up.kill()
        newcomer.up.wait(HANG_S)


def test_every_command_does_what_it_is_shown_for(newcomer: Newcomer) -> None:
    assert len(commands()) > 10
    for command in commands():
        if command in FOLLOWING:
            assert newcomer.follow(command) == 0, command
        else:
            done = newcomer.run(command)
            assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("name", ["gateway.py", "runner.py"])
def test_a_program_does_what_it_is_shown_for(newcomer: Newcomer, name: str) -> None:
    servers = newcomer.environment["LOOPWARDEN_BOOTSTRAP_SERVERS"]
    (newcomer.folder / name).write_text(program(name).replace("localhost:9092", servers), encoding="utf-8")
    done = newcomer.run(f"python {name}")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    shown = [line.split()[0] for line in done.stdout.splitlines() if line]
    if name == "runner.py":
        assert shown.count("block") == 2 and "warn" not in shown[:3], done.stdout
    else:
        assert "acknowledged=0" not in done.stdout and "failed=0" in done.stdout, done.stdout


def test_what_is_not_run_here_is_run_elsewhere() -> None:
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert set(NOT_RUN_HERE) <= {re.split(r"\s{2,}#", line)[0].strip() for b in blocks("sh") for line in b.splitlines()}


def test_the_files_it_links_to_are_there() -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / link).exists(), link
