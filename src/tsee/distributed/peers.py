"""The peers of this process, and the watch over them."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import timedelta
from types import FrameType
from typing import Any

import torch.distributed as dist

from tsee.exceptions import PeerError

__all__ = ["ADVICE", "finish", "first_line", "pressed", "rank", "watched_peers", "world_size"]

# Seconds without a sign of life after which a peer counts as lost, unless TSEE_TIMEOUT is set; and signs in that time.
TIMEOUT, SIGNS = 60.0, 12
ADVICE = (
    "Start all processes again; a fit with a checkpoint continues from its last state (on the command line: "
    "--checkpoint, and --resume)."
)


def world_size() -> int:
    """The number of processes."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """The number of this process, from 0."""
    return dist.get_rank() if world_size() > 1 else 0


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


def pressed(*, reset: bool = False) -> int:
    """How often Ctrl-C was pressed in this process while its peers were watched, since the last reset."""
    global _pressed
    if reset:
        _pressed = 0
    return _pressed


def finish(start: Callable[..., Any], *given: Any) -> None:
    """Start a collective and wait for it, as long as the peers show signs of life."""
    if _watch is None or dist.get_backend() in ("nccl", "mpi"):  # they end a fit by their own rules
        start(*given)
    else:
        _await(start(*given, async_op=True), _watch)


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
    if _pressed:  # after training, where nobody asked for it
        raise KeyboardInterrupt


def _timeout() -> float:
    given = os.environ.get("TSEE_TIMEOUT", "")
    try:
        seconds = float(given or TIMEOUT)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ValueError(f"TSEE_TIMEOUT must be a number of seconds above 0. Got {given!r} instead.")
    return seconds


def first_line(error: Exception) -> str:
    """What an error of torch says, without the line of C++ that it comes from."""
    line = (str(error).splitlines() or [type(error).__name__])[0]
    return re.sub(r"^\[\S+:\d+\] ", "", line).rstrip(". ")
