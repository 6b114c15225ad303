"""Joining the processes that torchrun, or anything else, has started."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch.distributed as dist

from tsee.distributed.collectives import all_sum
from tsee.distributed.peers import first_line, watched_peers
from tsee.exceptions import PeerError

__all__ = ["joined_peers"]

# Seconds in which all processes must have been started.
JOINING = 600.0


@contextmanager
def joined_peers() -> Iterator[None]:
    """Join the peers, if any, started by torchrun or anything else that sets ``RANK`` and ``WORLD_SIZE``."""
    n_wanted = _environment("WORLD_SIZE", "1")
    several = n_wanted > 1 and "RANK" in os.environ
    if several and not 0 <= _environment("RANK", "0") < n_wanted:
        raise PeerError(f"RANK is {os.environ['RANK']}, but with WORLD_SIZE {n_wanted} it must be 0 to {n_wanted - 1}.")
    if not several or not dist.is_available() or dist.is_initialized():
        yield
        return
    try:
        # torch does not declare these two as parts of its public module, though it documents them.
        rendezvous = dist.rendezvous("env://", timeout=timedelta(seconds=JOINING))  # type: ignore[attr-defined]
        store, own_rank, n_processes = next(rendezvous)
        # After a restart the store still holds addresses from the previous attempt, where nobody answers.
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        store = dist.PrefixStore(f"tsee/{attempt}", store)  # type: ignore[attr-defined]
        # The peers are watched instead of timed: a collective may take as long as the slowest of them needs.
        dist.init_process_group(store=store, rank=own_rank, world_size=n_processes, timeout=timedelta(days=30))
    except (RuntimeError, ValueError) as error:
        raise PeerError(
            f"Process {os.environ['RANK']} cannot join the {os.environ['WORLD_SIZE']} processes of the fit at "
            f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')} ({first_line(error)}): check RANK, "
            f"WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and start all processes within {JOINING / 60:g} minutes."
        ) from error
    try:
        with watched_peers():
            yield
            all_sum(0)  # all leave together: one that leaves early can break the others' connections
    finally:
        dist.destroy_process_group()


def _environment(name: str, default: str) -> int:
    try:
        return int(os.environ.get(name, default))
    except ValueError:
        raise PeerError(f"{name} must be a number. Got {os.environ[name]!r} instead: unset it, or set it.") from None
