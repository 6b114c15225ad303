"""Where training may compute with fewer digits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from tsee.networks import Network

__all__ = ["bfloat16_layers", "has_bfloat16"]


@contextmanager
def bfloat16_layers(network: nn.Module, device: torch.device | None) -> Iterator[None]:
    """Train the hidden layers of tsee's networks in bfloat16, if the processor is faster with it.

    The random draws of a step add far more noise than its rounding.
    """
    ours = [part for part in network.modules() if isinstance(part, Network)]
    faster = device is not None and has_bfloat16(device)
    try:
        for part in ours:
            part.quick = faster
        yield
    finally:
        for part in ours:
            part.quick = False


def has_bfloat16(device: torch.device) -> bool:
    """Whether products in bfloat16 are known to be at least about twice as fast as in float32."""
    if device.type == "cuda":
        with torch.cuda.device(device):
            return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()  # not in every torch
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))
