"""The defaults of every method, read from its source: the command's help shows them without importing torch."""

from __future__ import annotations

import ast
import functools
from pathlib import Path
from typing import Any

from tsee.words import METHODS

__all__ = ["defaults_of"]


@functools.cache
def defaults_of(method: str) -> dict[str, Any]:
    """The parameters of a method and their defaults, in the order of its signature.

    Parameters
    ----------
    method : str
        One of `tsee.words.METHODS`.
    """
    name = METHODS[method]
    tree = ast.parse(Path(__file__).with_name(f"{name.lower()}.py").read_text(encoding="utf-8"))
    (cls,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    (start,) = (node for node in cls.body if isinstance(node, ast.FunctionDef) and node.name == "__init__")
    given = start.args
    positional = zip(reversed(given.args), reversed(given.defaults), strict=False)
    named = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    return {
        argument.arg: ast.literal_eval(default)
        for argument, default in [*reversed(list(positional)), *named]
        if default is not None
    }
