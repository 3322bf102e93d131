"""A process in a session of its own that does not outlive us."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

_TETHER = Path(__file__).with_name("tether.py")


def spawn(
    command: Sequence[str], output: Path, keep_open: int | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Starts `command`, its output appended to a file, and returns at once.

    In a session of its own, so that a terminal's Ctrl-C reaches us only and we stop it in order. Killed by the system
    when our process ends, however that happens (Linux). The descriptor `keep_open` stays open in it until it ends.
    `environment` is the process's; None: ours.
    """
    started: Future[subprocess.Popen[bytes]] = Future()

    def own() -> None:
        try:
            with output.open("ab") as file:
                process = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(_TETHER), str(os.getpid()), *command],
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    pass_fds=[] if keep_open is None else [keep_open],
                    env=environment,
                )
        except BaseException as error:
            started.set_exception(error)
        else:
            started.set_result(process)
            process.wait()

    # What the system ties the child to is the thread that started it: this one lives exactly as long as the child does,
    # while the caller's may be a short one.
    threading.Thread(target=own, daemon=True, name=f"owner of {command[0]}").start()
    return started.result()


def stop(process: subprocess.Popen[bytes], timeout: float) -> None:
    """Asks it to end, and kills it after `timeout` seconds, or at once where this is interrupted. It is gone then."""
    process.terminate()
    try:
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        pass
    finally:
        kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Ends it with SIGKILL, as a crash would. It is gone then."""
    process.kill()
    process.wait()
