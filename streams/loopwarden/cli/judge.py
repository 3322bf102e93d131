"""`loopwarden judge FILE`: the main job without a broker."""

from __future__ import annotations

from typing import Annotated

import typer

from loopwarden.cli.options import Follow, Verbose


def judge(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Sessions of Claude Code, Codex, opencode, Gemini, OpenClaw or pi; events as JSON lines, or "
            "trajectories; .gz too; a folder of them; - is stdin.",
        ),
    ],
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="FILE",
            help="The fleet's policy until a policy.applied in the file (JSON5); `recommended` is the recommended one.",
        ),
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="ID", help="The agent of events that name none.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdicts as JSON lines.")] = False,
    decisions: Annotated[
        bool,
        typer.Option(
            "--decisions",
            help="Print one JSON line for each decision that is not allow, before warnings are de-duplicated: "
            "event_id, run_id, action, detector, count.",
        ),
    ] = False,
    follow: Follow = False,
    verbose: Verbose = False,
) -> None:
    """Judge the runs in files, as a worker would judge them, and print the verdicts.

    Begin with the sessions of your own agent:

        loopwarden judge ~/.claude/projects --policy recommended

    Where an event has no event_id or ts, its line number stands in. The time that counts (an idle run begins anew) is
    ts. Without a policy the defaults hold, and they leave the detectors off: only the post-compaction guard runs.

    Exit code 1 where some lines could not be read; verdicts alone leave it at 0.
    """
    if as_json and decisions:
        raise typer.BadParameter(
            "must not be given with --json: each prints lines of its own", param_hint="--decisions"
        )
    if follow and len(files) > 1:
        raise typer.BadParameter("takes one file; `loopwarden watch-sessions DIR` follows many", param_hint="--follow")
    from loopwarden.cli.judging import Shown, judge_files

    shown: Shown = "decisions" if decisions else "verdicts" if as_json else "table"
    raise typer.Exit(judge_files(files, policy, agent, shown, verbose, follow))
