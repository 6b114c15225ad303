"""What holds for every command: errors and warnings in one line, and exit codes that mean something."""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

__all__ = ["INTERRUPTED", "Commands", "noticing_interrupts"]

INTERRUPTED = 130  # what a shell makes of a program that Ctrl-C ended


class Commands(click.Group):
    """The group of all commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # The options are told in the epilog: the help is to fit on a screen.
        self.format_commands(ctx, formatter)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _warnings_in_lines():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(INTERRUPTED)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if ctx.params["debug"]:
                raise
            raise click.ClickException(_sentence(error)) from error


@contextmanager
def noticing_interrupts() -> Iterator[list[int]]:
    """Let Ctrl-C do what it does, and collect that it was pressed: a fit ends by it and returns."""
    pressed: list[int] = []

    def handle(number: int, frame: Any) -> None:
        pressed.append(number)
        signal.default_int_handler(number, frame)

    main = threading.current_thread() is threading.main_thread()  # others cannot be interrupted
    if not main or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # nor can a shell's background job
        yield pressed
        return
    before = signal.signal(signal.SIGINT, handle)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _warnings_in_lines() -> Iterator[None]:
    def show(message: Warning | str, *rest: Any, **named: Any) -> None:
        import tqdm

        # Above a progress bar, not in the midst of it.
        tqdm.tqdm.write(f"Warning: {_line(message)}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)  # which those of tsee.exceptions are
        warnings.showwarning = show
        yield


def _sentence(error: Exception) -> str:
    """What is wrong, in one line: an error of the user's making explains itself, another is a mistake in tsee."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename!r}." if error.filename else f"{error.strerror}."
    if isinstance(error, MemoryError):
        return f"There is not enough memory for this ({_line(error) or 'it ran out'})."
    if isinstance(error, (ValueError, ImportError, OSError)):
        return _line(error)
    name = type(error).__name__
    return f"{name}: {_line(error).rstrip('.')}. This was not foreseen: `tsee --debug ...` shows where it happened."


def _line(message: object) -> str:
    return " ".join(str(message).split())
