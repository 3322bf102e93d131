from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import typer

from loopwarden.cli.app import app
from loopwarden.recordings import recordings

from .conftest import Ran

RECOMMENDED = Path(__file__).parents[2] / "infra" / "policies" / "recommended.json5"
HEAVY = ("faust", "aiokafka", "kafka", "jgo", "pydantic", "loopwarden.judge", "loopwarden.worker", "loopwarden.broker")


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys\nfrom loopwarden.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "command", [(), ("judge",), ("import",), ("import", "sessions"), ("import", "trajectories"), ("policy", "check")]
)
def test_help_tells_the_exit_codes(command: tuple[str, ...], run: Callable[..., Ran]) -> None:
    code, out, _ = run(*command, "--help")

    assert code == 0
    assert "xit code" in out


def _commands(app: typer.Typer, *path: str) -> Iterator[tuple[str, ...]]:
    for command in app.registered_commands:
        yield (*path, command.name or "")
    for group in app.registered_groups:
        assert group.typer_instance is not None
        yield from _commands(group.typer_instance, *path, group.name or "")


@pytest.mark.parametrize("command", list(_commands(app)), ids=" ".join)
def test_help_cuts_no_name_short_in_a_usual_terminal(command: tuple[str, ...], run: Callable[..., Ran]) -> None:
    # Rich cuts a word that is wider than its column: a long type or range beside it takes the place.
    _, out, _ = run(*command, "--help", columns=80)

    assert [line for line in out.splitlines() if "…" in line] == []


def test_version_names_the_rules(run: Callable[..., Ran]) -> None:
    code, out, _ = run("version")

    assert code == 0
    assert out.startswith("loopwarden 0.")
    assert "rules 1" in out


def test_a_mistake_shows_no_traceback(run: Callable[..., Ran]) -> None:
    assert run("judge", "nowhere.jsonl") == (2, "", "loopwarden: nowhere.jsonl: there is no such file\n")


@pytest.mark.parametrize("arguments", [("--debug", "judge", "nowhere.jsonl"), ("judge", "nowhere.jsonl", "--debug")])
def test_debug_shows_it_wherever_it_stands(arguments: tuple[str, ...], run: Callable[..., Ran]) -> None:
    code, _, err = run(*arguments)

    assert code == 2
    assert "Traceback" in err
    assert err.endswith("loopwarden: nowhere.jsonl: there is no such file\n")


def test_what_follows_two_dashes_is_no_option(run: Callable[..., Ran]) -> None:
    code, _, err = run("judge", "--", "--debug")

    assert (code, err) == (2, "loopwarden: --debug: there is no such file\n")


def test_wrong_usage_is_exit_code_2(run: Callable[..., Ran]) -> None:
    for arguments in (("judge",), ("nonsense",), ("judge", "a", "--nonsense")):
        code, out, err = run(*arguments)
        assert (code, out) == (2, "")
        assert "Usage:" in err


def test_an_error_of_ours_says_so_and_how_to_see_it(
    run: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import loopwarden.cli.judging

    def broken(*_: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr(loopwarden.cli.judging, "judge_files", broken)

    assert run("judge", tmp_path) == (70, "", "loopwarden: a bug of ours: KeyError: 'lost' (--debug shows where)\n")


def test_a_reader_that_goes_away_is_told_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    trajectory = '{"run":"%d","events":[{"tool":"t","args":{},"result":"x"}]}\n'
    file.write_text("".join(trajectory % number for number in range(20_000)))
    command = [sys.executable, "-m", "loopwarden.cli", "import", "trajectories", str(file)]

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"{")
        process.stdout.close()
        assert process.stderr.read() == b"loopwarden: standard output: cannot be written: Broken pipe\n"
        assert process.wait(timeout=60) == 2


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "command",
    ["version", "--help", "policy check recommended.json5", "judge poll.jsonl", "import sessions poll.jsonl"],
)
@pytest.mark.parametrize(
    ("redirected", "error"), [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")]
)
def test_an_output_that_takes_nothing_is_named(command: str, redirected: str, error: str, unbuffered: str) -> None:
    file = {"recommended.json5": RECOMMENDED, "poll.jsonl": recordings()["openclaw-poll"]}
    line = " ".join(str(file.get(word, word)) for word in command.split())
    done = subprocess.run(
        ["/bin/sh", "-c", f"{sys.executable} -m loopwarden.cli {line} {redirected}"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        timeout=60,
    )

    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == f"loopwarden: standard output: cannot be written: {error}"
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_where_standard_error_takes_nothing_the_exit_code_still_speaks() -> None:
    for closed in ("2>/dev/full", "2>&-"):
        line = f"{sys.executable} -m loopwarden.cli judge nowhere.jsonl {closed}"
        done = subprocess.run(["/bin/sh", "-c", line], stdout=subprocess.PIPE, timeout=60)
        assert (done.returncode, done.stdout) == (2, b"")


SLOW_IMPORT = """
import sys, time
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            print("importing", flush=True)
            time.sleep(60)
sys.meta_path.insert(0, Slow())
from loopwarden.cli import main
main(["policy", "status"])
"""


@pytest.mark.parametrize("module", ["typer", "loopwarden.cli.app", "kafka"])
def test_ctrl_c_while_modules_are_imported_ends_quietly(module: str) -> None:
    command = [sys.executable, "-c", SLOW_IMPORT, module]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"importing\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        assert process.stderr.read() == b""
