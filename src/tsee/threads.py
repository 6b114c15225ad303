"""Threads after a fork."""

from __future__ import annotations

import os

import torch

__all__ = ["survive_fork"]

_process = os.getpid()


def survive_fork() -> None:
    """In a process that was forked after tsee was imported, let torch compute with one thread.

    The threads that torch started in the parent do not exist in the child, which would wait for them forever.
    """
    global _process
    if os.getpid() != _process:
        torch.set_num_threads(1)
        _process = os.getpid()
