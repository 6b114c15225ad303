"""What training keeps for each row, in memory or on disk, and the random batches in which it is read."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tsee.files.scratch import Scratch, writing

__all__ = [
    "MEMORY",
    "Batch",
    "DiskStore",
    "MemoryStore",
    "Store",
    "new_store",
    "seed_of",
    "smallest_batch",
    "steps_per_epoch",
]

# Rows that are shuffled together: a store on disk holds this many in memory.
BUCKET_ROWS = 2**16
# Rows that a store on disk collects before it deals them out, so that each bucket takes many at a time.
PENDING_ROWS = 2**15
# Up to this many bytes, data that came from disk are kept in memory.
MEMORY = 2**26

Columns = dict[str, Tensor]


@dataclass(frozen=True)
class Batch:
    """Rows of a store: ``batch[name]`` is one of their columns. ``epoch`` counts the passes over the store, from 0."""

    columns: Columns
    epoch: int

    def __getitem__(self, name: str) -> Tensor:
        return self.columns[name]

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


def steps_per_epoch(n_rows: int, batch_size: int) -> int:
    """The number of batches. None has a single row, which would have no pairs, or more rows than a bucket."""
    return max(1, min(math.ceil(n_rows / min(batch_size, BUCKET_ROWS)), n_rows // 2))


def smallest_batch(n_rows: int, n_steps: int) -> int:
    """The rows of the smallest batch when a store of ``n_rows`` is read in ``n_steps`` batches."""
    n_buckets = math.ceil(n_rows / BUCKET_ROWS)
    return (n_rows // n_buckets) // math.ceil(n_steps / n_buckets)


def seed_of(*numbers: int) -> int:
    """A seed made of several numbers; nearby numbers give unrelated seeds."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)


def new_store(n_rows: int, columns: Columns, seed: int, *, on_disk: bool) -> Store:
    """A store for rows with such columns: on disk if ``on_disk`` allows it and memory would hold too much."""
    width = sum(values[0].numel() * values.element_size() for values in columns.values())
    kind = DiskStore if on_disk and n_rows * width > MEMORY else MemoryStore
    return kind(n_rows, seed)


class Store(ABC):
    """Columns of numbers, appended in the order of the rows, and read in random batches.

    Many rows are dealt into several buckets, in rounds that give every bucket one row. So a bucket is a fair sample of
    the data, however they are sorted. An epoch takes the buckets in a random order, and the rows of each in a random
    order. Buckets and batches are the same in memory and on disk.

    Parameters
    ----------
    n_rows : int
        How many rows there will be.
    seed : int
        Decides the buckets and the orders.
    """

    def __init__(self, n_rows: int, seed: int) -> None:
        self.n_rows, self.seed = n_rows, seed
        self.n_buckets = math.ceil(n_rows / BUCKET_ROWS)
        self._filled = 0
        self._dealer = torch.Generator().manual_seed(seed)
        self._left = torch.empty(0, dtype=torch.int64)  # buckets of the last round that are not dealt yet

    def append(self, columns: Mapping[str, Tensor]) -> None:
        """Add rows: the same columns each time, each of one type and width."""
        n = len(next(iter(columns.values())))
        self._put(dict(columns), self._deal(n), self._filled)
        self._filled += n

    def batches(self, n_steps: int, epoch: int, skip: int = 0) -> Iterator[Batch]:
        """All rows, in a random order that depends only on the epoch, in ``n_steps`` batches of even size.

        Batches are even, instead of full with a small remainder: a step on the few rows of a remainder would be as
        large as any other. The first ``skip`` batches are left out.
        """
        sizes = self._sizes()
        generator = torch.Generator().manual_seed(seed_of(self.seed, epoch))
        done = 0
        for i, bucket in enumerate(torch.randperm(self.n_buckets, generator=generator).tolist()):
            steps = (i + 1) * n_steps // self.n_buckets - i * n_steps // self.n_buckets
            order = torch.randperm(sizes[bucket], generator=generator)
            wanted = order.tensor_split(steps)[max(0, skip - done) :]
            done += steps
            if wanted:
                take = self._open(bucket)
                for rows in wanted:
                    yield Batch(take(rows), epoch)

    def close(self) -> None:  # noqa: B027 - memory needs none
        """Release the stored rows."""

    @abstractmethod
    def _put(self, columns: Columns, buckets: Tensor, start: int) -> None:
        """Store the next rows, of which ``start`` is the first, in their buckets."""

    @abstractmethod
    def _open(self, bucket: int) -> Callable[[Tensor], Columns]:
        """A function that takes rows from a bucket by their numbers in it."""

    def _deal(self, n: int) -> Tensor:
        """The buckets of the next n rows."""
        if self.n_buckets == 1:
            return torch.zeros(n, dtype=torch.int64)
        shares = math.ceil(max(0, n - len(self._left)) / self.n_buckets)
        drawn = torch.rand(shares, self.n_buckets, generator=self._dealer).argsort(1)
        dealt, self._left = torch.cat([self._left, drawn.flatten()]).tensor_split([n])
        return dealt

    @abstractmethod
    def _sizes(self) -> list[int]:
        """How many rows each bucket has."""


class MemoryStore(Store):
    """A store in memory; its columns are in the order of the rows."""

    def __init__(self, n_rows: int, seed: int) -> None:
        super().__init__(n_rows, seed)
        self.columns: Columns = {}
        # Columns that are not kept but computed from row numbers when they are read.
        self.computed: dict[str, Callable[[Tensor], Tensor]] = {}
        self._buckets = torch.zeros(n_rows if self.n_buckets > 1 else 0, dtype=torch.int32)
        self._members: tuple[Tensor, ...] | None = None

    def _put(self, columns: Columns, buckets: Tensor, start: int) -> None:
        for name, values in columns.items():
            if name in self.computed:
                continue
            if name not in self.columns:
                self.columns[name] = torch.empty((self.n_rows, *values.shape[1:]), dtype=values.dtype)
            self.columns[name][start : start + len(values)] = values
        if self.n_buckets > 1:
            self._buckets[start : start + len(buckets)] = buckets

    def _sizes(self) -> list[int]:
        if self.n_buckets == 1:
            return [self.n_rows]
        if self._members is None:
            counts = torch.bincount(self._buckets, minlength=self.n_buckets)
            self._members = self._buckets.argsort(stable=True).split(counts.tolist())
        return [len(rows) for rows in self._members]

    def _open(self, bucket: int) -> Callable[[Tensor], Columns]:
        members = None if self._members is None else self._members[bucket]

        def take(positions: Tensor) -> Columns:
            rows = positions if members is None else members[positions]
            computed = {name: compute(rows) for name, compute in self.computed.items()}
            return computed | {name: values[rows] for name, values in self.columns.items()}

        return take


class DiskStore(Store):
    """A store in a temporary file with a stretch for each bucket: memory holds one bucket at a time."""

    def __init__(self, n_rows: int, seed: int) -> None:
        super().__init__(n_rows, seed)
        self._scratch = Scratch()
        self._path = self._scratch.path("rows")
        self._room = math.ceil(n_rows / self.n_buckets)
        self._counts = torch.zeros(self.n_buckets, dtype=torch.int64)
        self._pending: list[tuple[np.ndarray, Tensor]] = []
        self._record = np.dtype([])

    def _put(self, columns: Columns, buckets: Tensor, start: int) -> None:
        if start == 0:
            self._record = np.dtype(
                [(name, values.numpy().dtype, tuple(values.shape[1:])) for name, values in columns.items()]
            )
        records = np.empty(len(buckets), dtype=self._record)
        for name, values in columns.items():
            records[name] = values.numpy()
        self._pending.append((records, buckets))
        if sum(len(part) for part, _ in self._pending) >= PENDING_ROWS:
            self._write()

    def _write(self) -> None:
        """Write the rows that are waiting to their buckets."""
        if not self._pending:
            return
        buckets = torch.cat([part for _, part in self._pending])
        records = np.concatenate([part for part, _ in self._pending])[buckets.argsort(stable=True).numpy()]
        self._pending = []
        counts = torch.bincount(buckets, minlength=self.n_buckets)
        size, done = self._record.itemsize, 0
        with writing(self._path), open(self._path, "r+b" if self._path.exists() else "w+b") as file:
            for bucket in torch.nonzero(counts).squeeze(1).tolist():
                n = int(counts[bucket])
                file.seek((bucket * self._room + int(self._counts[bucket])) * size)
                file.write(records[done : done + n].tobytes())
                done += n
        self._counts += counts

    def _sizes(self) -> list[int]:
        self._write()
        return self._counts.tolist()

    def _open(self, bucket: int) -> Callable[[Tensor], Columns]:
        n, size = int(self._counts[bucket]), self._record.itemsize
        content = np.fromfile(self._path, dtype=np.uint8, count=n * size, offset=bucket * self._room * size)
        records = content.view(self._record)
        columns = {name: torch.from_numpy(np.ascontiguousarray(records[name])) for name in self._record.names or ()}
        return lambda positions: {name: values[positions] for name, values in columns.items()}

    def close(self) -> None:
        """Remove the file."""
        self._scratch.close()
