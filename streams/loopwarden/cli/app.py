"""All commands by their names. A new one is a file beside this and a line below.

What a command needs beyond typer it imports when it runs: `loopwarden --help` must not wait for Kafka's clients.
"""

from __future__ import annotations

from typing import Annotated, Final

import typer

from loopwarden.cli.dead_list import dead_list
from loopwarden.cli.dead_replay import dead_replay
from loopwarden.cli.dead_show import dead_show
from loopwarden.cli.demo import demo
from loopwarden.cli.export import export
from loopwarden.cli.history import history
from loopwarden.cli.import_sessions import import_sessions
from loopwarden.cli.import_trajectories import import_trajectories
from loopwarden.cli.judge import judge
from loopwarden.cli.override import override
from loopwarden.cli.policy_apply import policy_apply
from loopwarden.cli.policy_check import policy_check
from loopwarden.cli.policy_show import policy_show
from loopwarden.cli.policy_status import policy_status
from loopwarden.cli.publish import publish
from loopwarden.cli.replay import replay
from loopwarden.cli.report import report
from loopwarden.cli.selftest import selftest
from loopwarden.cli.serve import serve
from loopwarden.cli.sidecar import sidecar
from loopwarden.cli.topics_acls import topics_acls
from loopwarden.cli.topics_apply import topics_apply
from loopwarden.cli.topics_check import topics_check
from loopwarden.cli.topics_plan import topics_plan
from loopwarden.cli.tune import tune
from loopwarden.cli.up import up
from loopwarden.cli.version import version
from loopwarden.cli.watch import watch
from loopwarden.cli.watch_sessions import watch_sessions
from loopwarden.cli.what_if import what_if
from loopwarden.cli.worker import worker

_EXIT_CODES: Final = (
    "Exit codes: 0 all is well; 1 there are findings or problems, as each command says; "
    "2 wrong usage, or something cannot be read or reached; 70 a bug of ours."
)


def _group(help_text: str) -> typer.Typer:
    return typer.Typer(
        help=help_text,
        epilog=_EXIT_CODES,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
    )


app = _group(
    "Watches fleets of AI agents from outside: judges their tool calls from an event log, and publishes verdicts "
    "that warn about, block or abort a run that loops."
)


def _version(asked: bool) -> None:
    if asked:
        version()
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error. It may stand anywhere on the line.")
    ] = False,
    show_version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Print the version and exit.")
    ] = False,
) -> None:
    # Taken off the line by `main`, before typer sees it, or done by its callback; declared here for --help.
    del debug, show_version


app.command("up")(up)
app.command("demo")(demo)
app.command("worker")(worker)
app.command("publish")(publish)
app.command("watch")(watch)
app.command("watch-sessions")(watch_sessions)
app.command("judge")(judge)
app.command("history")(history)
app.command("report")(report)
app.command("replay")(replay)
app.command("export")(export)
app.command("what-if")(what_if)
app.command("tune")(tune)
app.command("override")(override)
app.command("selftest")(selftest)
app.command("sidecar")(sidecar)
app.command("serve")(serve)
app.command("version")(version)

importing = _group("Turn other people's run files into events: JSON lines, as `publish`, `demo` and `judge` read them.")
app.add_typer(importing, name="import")
importing.command("trajectories")(import_trajectories)
importing.command("sessions")(import_sessions)

policy = _group("Look at policies and apply them.")
app.add_typer(policy, name="policy")
policy.command("check")(policy_check)
policy.command("apply")(policy_apply)
policy.command("status")(policy_status)
policy.command("show")(policy_show)

topics = _group("Look at the topics of a cluster, and make them what they are declared to be.")
app.add_typer(topics, name="topics")
topics.command("plan")(topics_plan)
topics.command("apply")(topics_apply)
topics.command("check")(topics_check)
topics.command("acls")(topics_acls)

dead = _group("Look at the events that could not be read or judged, and send them again once the cause is mended.")
app.add_typer(dead, name="dead")
dead.command("list")(dead_list)
dead.command("show")(dead_show)
dead.command("replay")(dead_replay)
