"""What all commands share: errors and warnings in one line each, and exit codes."""

from __future__ import annotations

import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from tsee.cli.streams import with_spoken_names

__all__ = ["INTERRUPTED", "Commands", "noticing_interrupts"]

INTERRUPTED = 130  # the exit code of a program that Ctrl-C ended, by the convention of shells


class Commands(click.Group):
    """The group of all commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # The epilog names the options, so that the help fits on a screen.
        self.format_commands(ctx, formatter)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _warnings_in_lines(lambda text: self._in_options(ctx, text)):
                return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(INTERRUPTED)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if ctx.params["debug"]:
                raise
            raise click.ClickException(self._in_options(ctx, _sentence(error))) from error

    def _in_options(self, ctx: click.Context, text: str) -> str:
        """A message of the library for users of the command: "the 'batch_size' parameter" becomes "--batch-size"."""

        def option(match: re.Match[str]) -> str:
            command = self.commands.get(ctx.invoked_subcommand or "")
            parameters = [] if command is None else command.get_params(ctx)
            names = {parameter.name: max(parameter.opts, key=len) for parameter in parameters}
            return names.get(match[1], match[0])

        return re.sub(r"\b[Tt]he '(\w+)' parameter(?: of \w+(?= must be))?", option, with_spoken_names(text, ctx))


@contextmanager
def noticing_interrupts() -> Iterator[list[int]]:
    """Record that Ctrl-C was pressed, besides its usual effect: a fit ends its training then, and returns."""
    pressed: list[int] = []
    before = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: Any) -> None:
        pressed.append(number)
        (before if callable(before) else signal.default_int_handler)(number, frame)

    main = threading.current_thread() is threading.main_thread()  # others cannot be interrupted
    if not main or before is signal.SIG_IGN:  # nor can a background job of a shell
        yield pressed
        return
    signal.signal(signal.SIGINT, handle)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _warnings_in_lines(translate: Callable[[str], str]) -> Iterator[None]:
    """Print each warning as one line, with its text translated."""

    def show(message: Warning | str, *rest: Any, **named: Any) -> None:
        import tqdm

        # Above a progress bar instead of in the middle of it.
        tqdm.tqdm.write(f"Warning: {translate(_line(message))}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)  # so are all warnings of tsee.exceptions
        warnings.showwarning = show
        yield


def _sentence(error: Exception) -> str:
    """An error in one line; an error that tsee does not raise on purpose is called unexpected."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename!r}." if error.filename else f"{error.strerror}."
    if isinstance(error, MemoryError):
        return f"There is not enough memory for this ({_line(error) or 'it ran out'})."
    if isinstance(error, (ValueError, ImportError, OSError)):
        return _line(error)
    name = type(error).__name__
    return f"{name}: {_line(error).rstrip('.')}. This is unexpected: `tsee --debug ...` shows where it happened."


def _line(message: object) -> str:
    return " ".join(str(message).split())
