"""Pipes and devices are refused, and so is a file that changes while it is read."""

import os
import socket
import subprocess
import sys

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import zarr

from tsee.exceptions import DataFileError
from tsee.files import open_table
from tsee.files.opening import data_files

NAMES = ["a.csv", "a.csv.gz", "a.npy", "a.npz", "a.parquet", "a.h5", "a.h5ad", "a"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.timeout(20)
def test_no_pipe_is_waited_for(tmp_path, name, refused):
    os.mkfifo(tmp_path / name)
    refused(tmp_path / name, "is a named pipe, which cannot be read in parts: write the data to a plain file.")


@pytest.mark.timeout(20)
def test_no_socket_and_no_device_is_read(tmp_path, refused):
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    refused(tmp_path / "zero.csv", "is a device")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s.csv"))
        refused(tmp_path / "s.csv", "is a socket")


@pytest.mark.timeout(20)
def test_no_pipe_in_a_folder_is_waited_for_or_left_out(tmp_path, numbers):
    np.save(tmp_path / "a.npy", numbers)
    os.mkfifo(tmp_path / "b.npy")
    for read in (open_table, data_files):
        with pytest.raises(DataFileError, match="b.npy' is a named pipe"):
            read(tmp_path)
    store = tmp_path / "a.zarr"
    zarr.create_array(str(store), data=numbers)
    chunk = next(path for path in store.rglob("*") if path.is_file() and path.name != "zarr.json")
    chunk.unlink()
    os.mkfifo(chunk)
    with pytest.raises(DataFileError, match="is a named pipe"):
        open_table(store)


def write(path, numbers):
    """Files of 500 rows that are read in several parts."""
    if path.name == "f.npy":
        np.save(path, np.asfortranarray(numbers))
    elif path.suffix == ".npy":
        np.save(path, numbers)
    elif path.name == "sparse.npz":
        scipy.sparse.save_npz(path, scipy.sparse.csr_matrix(numbers), compressed=False)
    elif path.suffix == ".npz":
        (np.savez if path.stem == "stored" else np.savez_compressed)(path, x=numbers, y=numbers[:, 0])
    elif path.suffix == ".parquet":
        pd.DataFrame(numbers, columns=list("abcdef")).to_parquet(path, row_group_size=50)
    elif path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=numbers, chunks=(50, 6))
    else:
        zarr.create_array(str(path), data=numbers, chunks=(50, 6), overwrite=True)


KINDS = ["c.npy", "f.npy", "stored.npz", "packed.npz", "sparse.npz", "a.parquet", "a.h5", "a.zarr"]


@pytest.mark.parametrize("change", ["truncated", "rewritten", "replaced"])
@pytest.mark.parametrize("name", KINDS)
def test_a_file_that_changes_while_it_is_read(tmp_path, numbers, name, change):
    path = tmp_path / name
    write(path, np.tile(numbers, (1 if name == "a.zarr" else 40, 1)))
    table = open_table(path)
    if name != "packed.npz":  # which is unpacked at the first read
        _ = table.rows[0:100]
    target = path / "zarr.json" if name == "a.zarr" else path
    whole = target.read_bytes()
    if change == "truncated":
        os.truncate(target, len(whole) // 2)
    elif change == "rewritten":
        target.write_bytes(whole[: len(whole) // 2] + bytes(100) + whole[len(whole) // 2 + 100 :])
    else:
        (tmp_path / "new").write_bytes(whole)
        os.replace(tmp_path / "new", target)

    def read():
        for start in range(0, len(table), 100):
            _ = table.rows[start : start + 100]

    if name == "a.h5" and change == "replaced":
        read()  # the file that was opened is still there
    else:
        with pytest.raises(DataFileError, match="changed while it was being read: wait until it is written completely"):
            read()


def test_a_memory_map_that_shrinks(tmp_path, numbers):
    np.save(tmp_path / "a.npy", np.tile(numbers, (40, 1)))
    code = f"""
import os, numpy
from tsee.data.checks import SlicedArray
rows = SlicedArray(numpy.load({str(tmp_path / "a.npy")!r}, mmap_mode="r"))
rows[0:10]
os.truncate({str(tmp_path / "a.npy")!r}, 5000)
try:
    rows[15000:15010]
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "a.npy' was cut off while it was being read" in done.stdout, done.stderr


@pytest.mark.parametrize("name", ["rows.h5", "cells.h5ad"])
@pytest.mark.parametrize("how", ["storage", "link", "virtual"])
def test_an_hdf5_file_does_not_have_other_files_read(how, name, tmp_path):
    """Whoever opens a file that was sent must not hand out others."""
    secret = tmp_path / "secret.h5"
    with h5py.File(secret, "w") as file:
        file["X"] = np.ones((4, 3), dtype=np.float32)
    with h5py.File(tmp_path / name, "w") as file:
        if how == "storage":
            file.create_dataset("X", (4, 3), np.float32, external=[(str(secret), 0, 48)])
        elif how == "link":
            file["X"] = h5py.ExternalLink(str(secret), "X")
        else:
            layout = h5py.VirtualLayout((4, 3), np.float32)
            layout[:] = h5py.VirtualSource(str(secret), "X", (4, 3))
            file.create_virtual_dataset("X", layout)
        for part in ("obs", "var"):
            file.create_group(part)
    with pytest.raises(DataFileError, match="takes 'X' from other files: copy the data into it"):
        open_table(tmp_path / name)
