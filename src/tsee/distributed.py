"""This process among its peers. Every function named ``all_...``, and `broadcast`, is a collective.

A collective must be called by every process, at the same points and in the same order: one that is skipped on one
process leaves the others waiting. Without peers each collective returns what it was given.

The peers are the processes of `torch.distributed`, however they were started: torchrun, Slurm, Ray Train, Accelerate or
Spark's TorchDistributor.

A process may wait for a slow peer as long as it takes: the first process saves a model, or a share of the rows lies on
a slow disk. So there is no limit on the time of a collective. Instead every process has a thread that counts up a
number in the store of the group, and watches the number of the next process: a peer whose number stands still is frozen
or cut off, and everyone who waits for it gets a `PeerError`. A peer that has ended is noticed by its closed connection.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import re
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from datetime import timedelta
from importlib import import_module
from types import FrameType
from typing import Any, overload

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from tsee.exceptions import PeerError

__all__ = [
    "all_agree",
    "all_gather",
    "all_interrupted",
    "all_max",
    "all_offset",
    "all_sum",
    "all_sum_with_gradient",
    "broadcast",
    "joined_peers",
    "rank",
    "watched_peers",
    "world_size",
]

# Seconds without a sign of life after which a peer counts as lost, unless TSEE_TIMEOUT is set; and signs in that time.
TIMEOUT, SIGNS = 60.0, 12
# Seconds in which all processes must have been started.
JOINING = 600.0
ADVICE = (
    "Start all processes again; a fit with a checkpoint continues from its last state (on the command line: "
    "--checkpoint, and --resume)."
)


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
    # This module keeps the process group that exists when it is imported as a default argument, and with it the group's
    # threads until exit, which Python does not always survive. Adam imports it: import it before there is a group.
    import_module("torch.distributed.nn.functional")
    try:
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
            f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')} ({_first_line(error)}): check RANK, "
            f"WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and start all processes within {JOINING / 60:g} minutes."
        ) from error
    try:
        with watched_peers():
            yield
            all_sum(0)  # all leave together: one that leaves early can break the others' connections
    finally:
        dist.destroy_process_group()


@contextmanager
def watched_peers() -> Iterator[None]:
    """Show the peers that this process is alive, and notice if one of them is not. Does nothing without peers."""
    global _watch
    if world_size() == 1 or _watch is not None:
        yield
        return
    _watch = _Watch(dist.distributed_c10d._get_default_store(), rank(), world_size(), _timeout())
    try:
        with _interrupts_together():
            yield
    finally:
        watch, _watch = _watch, None
        watch.stop()


def world_size() -> int:
    """The number of processes."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """The number of this process, from 0."""
    return dist.get_rank() if world_size() > 1 else 0


@overload
def all_sum(values: int) -> int: ...
@overload
def all_sum(values: Tensor) -> Tensor: ...
def all_sum(values: int | Tensor) -> int | Tensor:
    """The sum over all processes of an integer or a tensor; no gradient passes."""
    if world_size() == 1:
        return values
    if isinstance(values, Tensor):
        return _reduced(values, dist.ReduceOp.SUM)
    return int(_reduced(torch.tensor(values), dist.ReduceOp.SUM))


def all_max(value: float) -> float:
    """The largest value over all processes."""
    if world_size() == 1:
        return value
    return float(_reduced(torch.tensor(value, dtype=torch.float64), dist.ReduceOp.MAX))


def all_interrupted() -> bool:
    """Whether Ctrl-C was pressed in any process since the last call; without peers it raises at once instead.

    One process that stopped at its own Ctrl-C would leave the others with a collective that it never enters.
    """
    global _pressed
    if world_size() == 1 or not all_max(_pressed):
        return False
    _pressed = 0
    return True


def all_offset(n: int) -> tuple[int, int]:
    """The number of this process's first row, counted over all processes in rank order, and the number of all rows."""
    if world_size() == 1:
        return 0, n
    counts = torch.zeros(world_size(), dtype=torch.int64)
    counts[rank()] = n
    counts = all_sum(counts)
    return int(counts[: rank()].sum()), int(counts.sum())


def broadcast(values: Tensor) -> Tensor:
    """The values of process 0. The others pass a tensor of the same shape and type, which is ignored."""
    return values if world_size() == 1 else all_sum(values if rank() == 0 else torch.zeros_like(values))


def all_agree(facts: Mapping[str, Any]) -> None:
    """Raise the same ValueError on all processes if one of the ``facts`` is not the same everywhere.

    Collectives of different sizes, or in a different order, would end the processes without a word.

    Parameters
    ----------
    facts : mapping from str
        What must be the same, by names that can stand in a sentence; values are compared by their text.
    """
    if world_size() == 1:
        return
    text = json.dumps({name: str(value) for name, value in facts.items()}).encode()
    digests = _table(np.frombuffer(hashlib.sha256(text).digest(), dtype=np.int64))
    if bool((digests == digests[0]).all()):
        return
    lengths = _table(np.array([len(text)]))[:, 0]
    texts = _table(np.frombuffer(text.ljust(int(lengths.max())), dtype=np.uint8))
    known = [json.loads(row.numpy().tobytes()) for row in texts]
    for name in dict.fromkeys(name for one in known for name in one):
        for other, one in enumerate(known):
            if one.get(name) != known[0].get(name):
                raise ValueError(
                    f"The processes of the fit differ: {name} is {_shown(known[0].get(name))} in process 0, and "
                    f"{_shown(one.get(name))} in process {other}. Start all of them with the same parameters, columns "
                    "and versions."
                )


def all_sum_with_gradient(values: Tensor) -> Tensor:
    """The sum over all processes, with gradients passed on unchanged.

    A loss made of such sums is the same on every process, and its gradient is the sum over the processes of the
    gradients that each one computes.
    """
    if world_size() == 1:
        return values
    found: Tensor = _Sum.apply(values)
    return found


def all_gather(rows: Tensor) -> Tensor:
    """The rows of all processes in rank order; gradients return to the process that owns the rows."""
    if world_size() == 1:
        return rows
    found: Tensor = _Gather.apply(rows)
    return found


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        return all_sum(values)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        start, n = all_offset(len(rows))
        ctx.mine = slice(start, start + len(rows))
        everyone = rows.new_zeros((n, *rows.shape[1:]))
        everyone[ctx.mine] = rows
        return all_sum(everyone)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return all_sum(gradient)[ctx.mine]


def _table(own: np.ndarray) -> Tensor:
    """One row of numbers from each process."""
    table = torch.zeros(world_size(), len(own), dtype=torch.from_numpy(own.copy()).dtype)
    table[rank()] = torch.from_numpy(own.copy())
    return all_sum(table)


def _shown(value: str | None) -> str:
    text = "not given" if value is None else value
    return text if len(text) <= 60 else f"{text[:57]}..."


def _reduced(values: Tensor, operation: Any) -> Tensor:
    # NCCL only accepts tensors on its own device.
    on = torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else torch.device("cpu")
    moved = values.detach().to(on, copy=True).contiguous()
    try:
        if _watch is None or dist.get_backend() in ("nccl", "mpi"):  # they end a fit by their own rules
            dist.all_reduce(moved, operation)
        else:
            _await(dist.all_reduce(moved, operation, async_op=True), _watch)
    except RuntimeError as error:
        raise PeerError(
            f"Another process of the fit has ended or cannot be reached (noticed by process {rank()}: "
            f"{_first_line(error)}): its own message says why, if it had time for one. {ADVICE}"
        ) from error
    return moved.to(values.device)


def _await(work: Any, watch: _Watch) -> None:
    """Wait for a collective as long as the peers show signs of life."""
    interrupt: KeyboardInterrupt | None = None
    while not work.is_completed():
        try:
            with suppress(RuntimeError):  # it took longer; an error of the collective itself is raised below
                work.wait(timedelta(seconds=watch.interval))
            if not work.is_completed():
                watch.check()
        except KeyboardInterrupt as error:
            interrupt = error  # only between collectives: the peers would take the next one for this one
        except PeerError:
            # Its thread will wait for the lost peer as long as the group allows, and the end of Python for the thread,
            # unless the group is never released.
            for kept in (work, dist.group.WORLD):
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
            raise
    work.wait()
    if interrupt is not None:
        raise interrupt


class _Watch:
    """A thread that shows the peers that this process is alive, and watches the next one.

    The store holds a number for each process, which grows by 2: odd while the process takes part, even while it does
    something else. Time is counted in the thread's own rounds, so that processes that are suspended and resumed
    together do not take each other for lost.

    Parameters
    ----------
    store : torch.distributed.Store
    own, n_processes : int
        The number of this process, and of all processes.
    timeout : float
        Seconds without a sign of life after which a peer is lost.
    """

    def __init__(self, store: Any, own: int, n_processes: int, timeout: float) -> None:
        self.timeout, self.interval = timeout, timeout / SIGNS
        self._store = dist.PrefixStore("tsee/alive", store)  # type: ignore[attr-defined]
        self._own, self._next = own, (own + 1) % n_processes
        self._lost: int | None = None  # a peer that is lost
        self._rounds = self._seen_rounds = self._checks = 0
        self._ended = threading.Event()
        self._store.add(f"process {own}", 1)
        self._thread = threading.Thread(target=self._run, name="tsee-watch", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise `PeerError` if a peer is lost. For a thread that has waited for one more interval."""
        self._checks = self._checks + 1 if self._rounds == self._seen_rounds else 0
        self._seen_rounds = self._rounds
        if self._lost is not None:
            who = f"Process {self._lost} of the fit does"
        elif self._checks > SIGNS:  # the store itself does not answer: most often, process 0 holds it
            who = "The process that connects all processes of the fit (without torchrun, process 0) does"
        else:
            return
        raise PeerError(
            f"{who} not answer (noticed by process {self._own}, after {self.timeout:g} seconds): it is stopped, or its "
            f"machine or network is down; a longer limit can be set as TSEE_TIMEOUT. {ADVICE}"
        )

    def stop(self) -> None:
        """This process takes part no longer."""
        self._ended.set()
        self._thread.join(self.interval + 1)  # it hangs if the store does
        if not self._thread.is_alive():
            with suppress(RuntimeError):  # the store ends with the process that holds it
                self._store.add(f"process {self._own}", 1)

    def _run(self) -> None:
        last, since = -1, 0
        with suppress(RuntimeError):
            while not self._ended.wait(self.interval):
                self._store.add(f"process {self._own}", 2)
                seen = self._store.add(f"process {self._next}", 0)
                since = since + 1 if seen == last and seen % 2 else 0
                last = seen
                if since >= SIGNS:
                    self._store.set("lost", str(self._next))
                if self._store.check(["lost"]):
                    self._lost = int(self._store.get("lost"))
                self._rounds += 1


_watch: _Watch | None = None
_pressed = 0


@contextmanager
def _interrupts_together() -> Iterator[None]:
    """Leave the first Ctrl-C to `all_interrupted`; the second one raises at once."""
    global _pressed
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    _pressed = 0

    def handle(number: int, frame: FrameType | None) -> None:
        global _pressed
        _pressed += 1
        with suppress(KeyboardInterrupt) if _pressed == 1 else nullcontext():
            before(number, frame)

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _environment(name: str, default: str) -> int:
    try:
        return int(os.environ.get(name, default))
    except ValueError:
        raise PeerError(f"{name} must be a number. Got {os.environ[name]!r} instead: unset it, or set it.") from None


def _timeout() -> float:
    given = os.environ.get("TSEE_TIMEOUT", "")
    try:
        seconds = float(given or TIMEOUT)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ValueError(f"TSEE_TIMEOUT must be a number of seconds above 0. Got {given!r} instead.")
    return seconds


def _first_line(error: Exception) -> str:
    line = (str(error).splitlines() or [type(error).__name__])[0]
    return re.sub(r"^\[\S+:\d+\] ", "", line).rstrip(". ")  # without the line of C++ that it comes from
