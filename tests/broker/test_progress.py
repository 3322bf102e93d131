import io

from rich.console import Console

from loopwarden.broker import progress_bar


def test_where_the_output_is_no_terminal_each_step_is_one_line() -> None:
    output = io.StringIO()
    with progress_bar(Console(file=output)) as progress:
        progress("Fetching", 0, 100)
        progress("Fetching", 50, 100)
        progress("Starting")
    assert output.getvalue() == "Fetching\nStarting\n"


def test_on_a_terminal_the_bytes_are_shown_and_nothing_is_left_on_the_screen() -> None:
    output = io.StringIO()
    with progress_bar(Console(file=output, force_terminal=True, width=120)) as progress:
        progress("Fetching", 0, 2_000_000)
        progress("Fetching", 1_000_000, 2_000_000)
        progress("Starting")
    assert "Fetching" in output.getvalue()
    assert "2.0 MB" in output.getvalue()
    erase_line = "\x1b[2K"
    assert output.getvalue().rstrip().endswith(erase_line)
