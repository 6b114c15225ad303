"""Values in JSON: what can be written, and whether what was read is what it must be."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

__all__ = ["is_count", "is_list_of", "is_number", "is_text", "need", "plain"]


def plain(value: Any) -> Any:
    """A parameter as JSON can hold it; None for anything else (a network, a generator)."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, torch.device):
        return str(value)
    return value if isinstance(value, bool | int | float | str) else None


def need(condition: bool, reason: str) -> None:
    """Raise ValueError with a reason unless a condition holds."""
    if not condition:
        raise ValueError(reason)


def is_count(value: Any, least: int = 1) -> bool:
    """Whether a value is an integer of at least ``least``, and of a size that can count something."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**53


def is_number(value: Any) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def is_text(value: Any) -> bool:
    """Whether a value is text that can be written as UTF-8 and printed in one line."""
    return isinstance(value, str) and value.isprintable()


def is_list_of(value: Any, kind: type) -> bool:
    """Whether a value is a list of values of one type."""
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)
