"""Threads after a fork: importing this module makes forked processes safe."""

from __future__ import annotations

import os

import torch

__all__: list[str] = []


def _compute_alone() -> None:
    """Let torch compute with one thread.

    The threads that torch started in the parent do not exist in the child, which would wait for them forever.
    """
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(after_in_child=_compute_alone)
