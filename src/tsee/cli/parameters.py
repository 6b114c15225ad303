"""Every parameter of the estimators as an option, made from their signatures and the table of their descriptions.

The table is read when these options are needed; the estimators, and torch with them, when a command runs.
"""

from __future__ import annotations

import functools
import re
from typing import Any

import click
from click.shell_completion import CompletionItem

from tsee.words import METHODS

__all__ = ["ParameterCommand", "make_estimator"]

# Not options: a network of the user's own is a Python object, --quiet sets "verbose", and --categorical, --numeric and
# --weight set "columns".
NOT_OPTIONS = ("network", "verbose", "columns")
# How the table describes values in Python, and how to say it on a command line.
PHRASES = {
    "a list or tuple of integers of at least 1": "integers of at least 1 separated by commas, such as 512,512",
    ", a numpy RandomState or None": " or none",
    "None": "none",
    "``": "",
}
METAVARS = {
    "an integer": "INTEGER",
    "a number": "NUMBER",
    "a list": "SIZES",
    "a torch device": "DEVICE",
    "a path": "FOLDER",
}
# In the context of a command: leave out the options for the parameters.
OWN_OPTIONS_ONLY = "tsee.cli.parameters.own_options_only"


class ParameterCommand(click.Command):
    """A command that takes the parameters of all estimators, in addition to its own options."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        *own, help_option = super().get_params(ctx)
        return [*own, *([] if ctx.meta.get(OWN_OPTIONS_ONLY) else _options()), help_option]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # Completing a path or one of the command's own options needs no parameters.
        own = {name for option in super().get_params(ctx) for name in option.opts}
        ctx.meta[OWN_OPTIONS_ONLY] = ctx.resilient_parsing and not any(
            arg.startswith("--") and arg.partition("=")[0] not in own for arg in args
        )
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        ctx.meta[OWN_OPTIONS_ONLY] = ctx.meta[OWN_OPTIONS_ONLY] and not incomplete.startswith("-")
        return super().shell_complete(ctx, incomplete)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if record is not None and isinstance(option, click.Option):
                sections.setdefault(getattr(option, "section", "Options"), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


class _ParameterOption(click.Option):
    """An option for a parameter; its value is text until the method is known."""

    def __init__(self, name: str, **given: Any) -> None:
        from tsee.estimators.parameters import PARAMETERS

        self.parameter = PARAMETERS[name]
        self.methods = {method: defaults[name] for method, defaults in _defaults().items() if name in defaults}
        everywhere = len(self.methods) == len(METHODS)
        self.section = "Parameters of every method" if everywhere else f"Parameters of {' and '.join(self.methods)}"
        first = re.split(r"[.:;]\s", _for_command_line(self.parameter.text))[0].rstrip(".")
        if self.parameter.must_be == "True or False":  # False by default; the option switches it on
            given |= {"is_flag": True, "flag_value": "true", "default": None}
            given["help"] = re.sub("^Whether to (.)", lambda found: found[1].upper(), f"{first}.")
        else:
            given |= {"metavar": self._metavar(), "help": f"{first}. [default: {self._default()}]"}
        super().__init__([f"--{name.replace('_', '-')}"], **given)

    @property
    def choices(self) -> list[str]:
        """The possible values, if there are only a few."""
        must_be = self.parameter.must_be
        if not must_be.startswith('"'):
            return []
        return [*re.findall(r'"([^"]+)"', must_be), *(["none"] if must_be.endswith("None") else [])]

    def _metavar(self) -> str:
        bar = " or " if any("|" in choice for choice in self.choices) else "|"
        kinds = (metavar for kind, metavar in METAVARS.items() if self.parameter.must_be.startswith(kind))
        return bar.join(self.choices) or next(kinds, "TEXT")

    def _default(self) -> str:
        defaults = {method: _as_text(value) for method, value in self.methods.items()}
        usual = next(iter(defaults.values()))
        others: dict[str, list[str]] = {}
        for method, value in defaults.items():
            if value != usual:
                others.setdefault(value, []).append(method)
        return "; ".join([usual, *(f"{' and '.join(methods)}: {value}" for value, methods in others.items())])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(choice) for choice in self.choices if choice.startswith(incomplete)]

    def value(self, text: str, method: str) -> Any:
        """Convert the text to a value of the parameter, and check it."""
        if method not in self.methods:
            raise click.UsageError(
                f"{self.opts[0]} is a parameter of {' and '.join(self.methods)}, not of {method}: leave it out, or "
                "choose another --method."
            )
        is_path = self.parameter.must_be.startswith("a path")  # a folder may be called 7
        value = text if is_path else _parse(text, several=isinstance(self.methods[method], tuple))
        if not self.parameter.accepts(value):
            must_be = _for_command_line(self.parameter.must_be)
            raise click.BadParameter(f"It must be {must_be}. Got {text!r} instead.", param=self)
        return value


def make_estimator(
    method: str, given: dict[str, str | None], *, fast: bool = False, paper: bool = False, **fixed: Any
) -> Any:
    """Make the estimator of a method, with the parameters whose options were given.

    Parameters
    ----------
    method : str
        One of `METHODS`.
    given : dict of str to str or None
        The text of each option, None if it was not given.
    fast : bool
        Use the method's settings for speed instead of the defaults.
    paper : bool
        Use the settings of the paper instead of the defaults.
    fixed : dict
        Parameters that have no option.
    """
    from tsee.estimators import METHODS as ESTIMATORS

    values = {
        option.name: option.value(text, method)
        for option in _options()
        if option.name is not None and (text := given[option.name]) is not None
    }
    estimator = ESTIMATORS[method]
    if fast and not hasattr(estimator, "fast"):
        raise click.UsageError(f"{method} has no settings for speed: leave out --fast, which dt-see and hot-see have.")
    if fast and paper:
        raise click.UsageError("--fast and --paper are different settings: leave out one of them.")
    make = estimator.fast if fast else estimator.paper if paper else estimator
    return make(**values, **fixed)


@functools.cache
def _defaults() -> dict[str, dict[str, Any]]:
    from tsee.estimators.signatures import defaults_of

    return {method: defaults_of(method) for method in METHODS}


@functools.cache
def _options() -> list[_ParameterOption]:
    """The options for all parameters: first those that every method has."""
    names = dict.fromkeys(name for defaults in _defaults().values() for name in defaults if name not in NOT_OPTIONS)
    options = [_ParameterOption(name) for name in names]
    return sorted(options, key=lambda option: -len(option.methods))


def _parse(text: str, *, several: bool = False) -> Any:
    if several:
        return tuple(_parse(part) for part in text.split(",") if part.strip())
    words = {"none": None, "true": True, "false": False}
    if (word := text.strip().lower()) in words:
        return words[word]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _as_text(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _for_command_line(text: str) -> str:
    for python, plain in PHRASES.items():
        text = text.replace(python, plain)
    return text
