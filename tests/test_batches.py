"""What training reads: every row once per epoch, shuffled, the same from memory and from disk."""

import errno

import pytest
import torch

from tsee import batches as module
from tsee.batches import DiskStore, MemoryStore, new_store, smallest_batch, steps_per_epoch
from tsee.exceptions import DataFileError

KINDS = [MemoryStore, DiskStore]


def filled(kind, n, *, seed=0, block=37):
    store = kind(n, seed)
    rows = torch.arange(n)
    for part in rows.split(block):
        store.append(
            {"row": part, "inputs": part[:, None] * torch.ones(3), "drawn": torch.stack([part, -part], 1).int()}
        )
    return store


@pytest.fixture
def small_buckets(monkeypatch):
    monkeypatch.setattr(module, "BUCKET_ROWS", 50)
    monkeypatch.setattr(module, "PENDING_ROWS", 60)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "size"), [(10, 3), (100, 100), (100, 64), (3, 2), (2, 2), (7, 1000)])
def test_batches_hold_every_row_once_and_are_even(kind, n, size):
    store = filled(kind, n)
    n_steps = steps_per_epoch(n, size)
    parts = list(store.batches(n_steps, 0))
    assert len(parts) == n_steps
    assert sorted(torch.cat([part["row"] for part in parts]).tolist()) == list(range(n))
    lengths = [len(part) for part in parts]
    assert min(lengths) == smallest_batch(n, n_steps) >= 2
    assert max(lengths) - min(lengths) <= 1
    store.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [51, 149, 1000, 1001])
def test_rows_in_many_buckets_come_once_with_all_their_columns(kind, n, small_buckets):
    store = filled(kind, n)
    assert store.n_buckets > 1
    for epoch in (0, 1):
        n_steps = steps_per_epoch(n, 16)
        parts = list(store.batches(n_steps, epoch))
        assert len(parts) == n_steps
        assert min(len(part) for part in parts) >= smallest_batch(n, n_steps)
        assert all(part.epoch == epoch for part in parts)
        rows = torch.cat([part["row"] for part in parts])
        assert sorted(rows.tolist()) == list(range(n))
        assert torch.equal(torch.cat([part["inputs"] for part in parts]), rows[:, None] * torch.ones(3))
        assert torch.equal(torch.cat([part["drawn"] for part in parts]), torch.stack([rows, -rows], 1).int())
    store.close()


@pytest.mark.parametrize("n", [80, 333])
def test_memory_and_disk_give_the_same_batches(n, small_buckets):
    stores = [filled(kind, n, block=block) for kind, block in ((MemoryStore, 37), (DiskStore, 37))]
    for epoch in (0, 1):
        for one, other in zip(*(store.batches(40, epoch) for store in stores), strict=True):
            assert all(torch.equal(one[name], other[name]) for name in ("row", "inputs", "drawn"))


@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_reshuffled(kind, small_buckets):
    store = filled(kind, 200)
    first, second = (torch.cat([part["row"] for part in store.batches(20, epoch)]) for epoch in (0, 1))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("skip", [0, 1, 7, 19, 20])
def test_an_epoch_can_be_resumed_where_it_stopped(kind, skip, small_buckets):
    store = filled(kind, 200)
    whole, rest = ([part["row"].tolist() for part in store.batches(20, 3, skip=n)] for n in (0, skip))
    assert rest == whole[skip:]


def test_no_batch_is_larger_than_a_bucket(small_buckets):
    n_steps = steps_per_epoch(140, 100)
    assert max(len(part) for part in filled(MemoryStore, 140).batches(n_steps, 0)) <= 50


def test_a_batch_of_sorted_rows_is_a_fair_sample(small_buckets):
    """Rows sorted by class are the trap: every batch must still hold all of them in proportion."""
    n = 10_000
    store = filled(DiskStore, n)
    for part in store.batches(200, 0):
        assert abs(float(part["row"].double().mean()) - n / 2) < 5 * n / (12 * len(part)) ** 0.5


def test_what_lies_in_memory_stays_there_and_what_is_small_does_too(monkeypatch):
    columns = {"inputs": torch.zeros(4, 25), "drawn": torch.zeros(4, 10, dtype=torch.int32)}
    monkeypatch.setattr(module, "MEMORY", 140 * 1000)
    kinds = [type(new_store(n, columns, 0, on_disk=on_disk)) for n in (1000, 1001) for on_disk in (False, True)]
    assert kinds == [MemoryStore, MemoryStore, MemoryStore, DiskStore]


def test_the_file_is_removed_when_the_store_is_closed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = filled(DiskStore, 100)
    next(store.batches(10, 0))
    assert list(tmp_path.rglob("*rows"))
    store.close()
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_reported(monkeypatch):
    store = DiskStore(10, 0)

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("builtins.open", full)
    store.append({"row": torch.arange(10)})
    with pytest.raises(DataFileError, match="no room .* TMPDIR"):
        next(store.batches(5, 0))


def test_a_column_that_is_computed_when_it_is_read():
    kept, made = MemoryStore(50, 0), MemoryStore(50, 0)
    values = torch.arange(50.0)[:, None]
    made.computed["x"] = lambda rows: values[rows]
    for store in (kept, made):
        store.append({"x": values, "y": torch.arange(50)})
    assert list(made.columns) == ["y"]
    for a, b in zip(kept.batches(4, 1), made.batches(4, 1), strict=True):
        assert torch.equal(a["x"], b["x"])
        assert torch.equal(a["y"], b["y"])
