"""Every command and every program in README.md, run as a newcomer would, beside the command of `make run`."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest

from .newcomer import ROOT, Newcomer
from .pages import blocks, commands_in, files

README = (ROOT / "README.md").read_text(encoding="utf-8")
PROGRAMS = files(README, "python")

NOT_RUN_HERE = {
    "make run": "the fixture runs its command",
    "make test": ".ci/run calls it",
    ". .venv/bin/activate": "tests run in an environment already",
}
FOLLOWING = {"loopwarden watch", "loopwarden serve", "loopwarden watch-sessions streams/loopwarden/recordings"}
DEMO_DONE = "Loopwarden stays up"


def commands() -> list[str]:
    shown = [command for block in blocks(README, "sh") for command in commands_in(block)]
    return [command for command in shown if command not in NOT_RUN_HERE]


def of_make_run() -> list[str]:
    """Return the arguments of `make run`'s command. What else it says and does only sets up .venv."""
    told = subprocess.run(["make", "--dry-run", "run"], cwd=ROOT, capture_output=True, text=True, check=True)
    (command,) = (line.split() for line in told.stdout.splitlines() if line.startswith(".venv/bin/loopwarden up"))
    return command[1:]


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    newcomer = Newcomer(tmp_path_factory.mktemp("newcomer"), of_make_run())
    try:
        servers = newcomer.wait_for(r"(?:127\.0\.0\.1|localhost):\d+")
        newcomer.environment["LOOPWARDEN_BOOTSTRAP_SERVERS"] = servers
        newcomer.wait_for(DEMO_DONE)
        yield newcomer
        assert newcomer.stop() == 0, newcomer.log.read_text(encoding="utf-8")
    finally:
        newcomer.kill()


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
    (newcomer.folder / name).write_text(PROGRAMS[name].replace("localhost:9092", servers), encoding="utf-8")
    done = newcomer.run(f"python {name}")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    shown = [line.split()[0] for line in done.stdout.splitlines() if line]
    if name == "runner.py":
        assert shown.count("block") == 2 and "warn" not in shown[:3], done.stdout
    else:
        assert "acknowledged=0" not in done.stdout and "failed=0" in done.stdout, done.stdout


def test_what_is_not_run_here_is_run_elsewhere() -> None:
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert set(NOT_RUN_HERE) <= {command for block in blocks(README, "sh") for command in commands_in(block)}


def test_the_files_it_links_to_are_there() -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / link).exists(), link
