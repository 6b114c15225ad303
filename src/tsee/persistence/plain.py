"""Values as JSON can hold them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

__all__ = ["plain"]


def plain(value: Any) -> Any:
    """A parameter as JSON can hold it; None for anything else (a network, a generator)."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, torch.device):
        return str(value)
    return value if isinstance(value, bool | int | float | str) else None
