"""The Markdown form."""

from __future__ import annotations

from collections.abc import Callable

from loopwarden.report import Timeline
from loopwarden.report.markdown import to_markdown

from .conftest import Log

SMALL = """# Run r

**calls blocked**, finished. The run called “read” (A) over and over with the same arguments. Warned at call 5, \
blocked from call 9. The runner refused 1 call. Of 9 executed calls, 7 brought nothing new.

- 1970-01-01 00:00:01 UTC, 21 s from first to last event
- 10 calls of 2 signatures, 7 brought nothing new, 1 refused, 1 failed
- 1 warning, 1 block, 0 aborts; 0 calls made although blocked

## Timeline

One letter for each signature (tool and arguments). `A` new result, `A=` the same as before, `A!` error, `Ax` refused, \
`A?` no outcome, `A-` nothing returned; beneath: `w` warning, `b` block, `a` abort, `c` block lifted.

```text
     1  A   A=  A=  A=  A=  A=  A=  A=  Ax  B!
                        w           b   b
```

## Step by step

| calls | what happened | verdicts |
|---|---|---|
|  | Run started: test |  |
| calls 1-8 | **A** read, 8 times in a row: the same result each time | warn generic_repeat 4 of 4 at call 5, block \
generic_repeat 8 of 8 at call 8 |
| calls 9-10 | **A B** 2 calls without a pattern, 2 of them different | \
blocked attempt generic_repeat 8 of 8 at call 9 |
|  | Run finished: gave up |  |

## Signatures

|  | tool | calls | refused | errors | different outcomes | longest streak | arguments |
|---|---|---|---|---|---|---|---|
| A | read | 9 | 1 | 0 | 1 | 8 | `x` |
| B | write | 1 | 0 | 1 | 1 | 1 | `{ "to": "a\\|b" }` |

## Verdicts

| at | verdict | why | about | fate | message to the model |
|---|---|---|---|---|---|
"""


def test_a_small_run_as_markdown(log: Log) -> None:
    log.tell("run.started", cause="test")
    log.loop()
    log.started("r")
    log.blocked("r")
    log.call("w", tool="write", args={"to": "a|b"}, error="no")
    log.tell("run.finished", reason="gave up")
    assert to_markdown(log.drawn()).startswith(SMALL)


def test_nothing_that_events_carry_acts_as_markdown_or_html(log: Log) -> None:
    nasty = "a|b\n# c <img src=x> [l](u) `d` *e* ![i](j)"
    log.tell("run.started", cause=nasty)
    log.call("a", tool="t`|<b>", args="``|\n<b>", result=nasty)
    text = to_markdown(log.drawn())
    lines = text.splitlines()
    assert [line for line in lines if line.startswith("# ")] == ["# Run r"]
    [started] = [line for line in lines if "Run started" in line]
    assert started == (r"|  | Run started: a\|b # c \<img src=x\> \[l\](u) \`d\` \*e\* !\[i\](j) |  |")
    [signature] = [line for line in lines if line.startswith("| A |")]
    assert signature == r"| A | t\`\|\<b\> | 1 | 0 | 0 | 1 | 1 | ``` ``\| <b> ``` |"


def test_a_long_run_is_told_in_steps_not_drawn(log: Log) -> None:
    for number in range(1_001):
        log.call(f"c{number}", args=number)
    text = to_markdown(log.drawn())
    assert "1,001 calls are too many to draw here" in text
    assert "calls 1-1,001" in text
    assert "The first 100 of 1,001." in text


def test_recordings_say_their_loop_in_the_first_lines(recorded: Callable[[str], Timeline]) -> None:
    head = to_markdown(recorded("loop-across-compaction"))[:600]
    assert "went on with the same call of “read” (A) after its context was compacted" in head
    assert "31 calls came after the abort" in head
