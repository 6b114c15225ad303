"""Rows are read by slice, and memory holds only the slice."""

import numpy as np
import pytest

from tsee.files import open_table
from tsee.files.rows import Rows


def test_rows_are_read_by_slice_only(tmp_path, numbers):
    np.save(tmp_path / "a.npy", numbers)
    rows = open_table(tmp_path / "a.npy").rows
    with pytest.raises(TypeError, match="by slice"):
        _ = rows[3]
    with pytest.raises(ValueError, match="without a step"):
        _ = rows[::2]
    np.testing.assert_array_equal(np.asarray(rows), numbers)
    assert len(rows) == 500
    assert isinstance(rows, Rows)


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "sparse.npz", "whole.parquet", "a.parquet", "a.csv", "a.h5"])
def test_memory_does_not_grow_with_the_file(tmp_path, name, run, write_numbers):
    """The most that numpy and pyarrow hold while all rows are read is the same for a file four times as long."""
    numbers = np.tile(np.arange(100, dtype=np.float32), (100_000, 1))
    peaks = []
    for n in (25_000, 100_000):  # 10 and 40 MB
        path = tmp_path / f"{n}{name}"
        write_numbers(path, numbers[:n])
        code = f"""
            import tracemalloc
            import h5py, pandas, pyarrow.csv, pyarrow.parquet
            from tsee.files import open_table, parquet, text
            parquet.GROUP_BYTES = parquet.CACHE_BYTES = 2**22
            text.FIRST_FIELDS, text.ARROW_BLOCK = 2**14, 2**16
            tracemalloc.start()
            total = 0.0
            table = open_table({str(path)!r})
            for start in range(0, {n}, 1000):
                total += float(table.rows[start : start + 1000].sum(dtype="f8"))
            print(total, tracemalloc.get_traced_memory()[1] + pyarrow.default_memory_pool().max_memory())
        """
        total, peak = run(code).split()
        assert float(total) == 4950 * n
        peaks.append(float(peak))
    assert peaks[1] < 1.1 * peaks[0] + 2**20  # the index of a Parquet file grows a little
    assert peaks[1] < 0.25 * numbers.nbytes
