"""NumPy, HDF5 and Zarr: files that their own libraries wrote are read as the same numbers; bad files are refused."""

import os

import h5py
import numpy as np
import pytest
import scipy.sparse
import zarr

from tsee.files import open_table


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "u1", "i8", "?", ">f4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy(tmp_path, numbers, dtype, order, check_slices):
    array = np.asarray(numbers * 100, dtype=dtype, order=order)
    np.save(tmp_path / "a.npy", array)
    table = open_table(tmp_path / "a.npy")
    check_slices(table.rows, array.astype(array.dtype.newbyteorder("=")))
    assert table.feature_names is None
    assert table.label is None
    assert dict(table.other_columns) == {}
    assert table.notes == []


def test_images_are_flattened(tmp_path, numbers, check_slices):
    np.save(tmp_path / "a.npy", numbers.reshape(500, 2, 3))
    table = open_table(tmp_path / "a.npy")
    check_slices(table.rows, numbers)
    assert table.notes == ["Each row, of shape 2 x 3, becomes 6 features."]


def test_npy_folder_in_order_of_numbers(tmp_path, numbers, check_slices, refused):
    for part in range(11):
        np.save(tmp_path / f"part-{part}.npy", numbers[part * 40 : (part + 1) * 40])
    check_slices(open_table(tmp_path).rows, numbers[:440])
    np.save(tmp_path / "part-11.npy", numbers[:, :5])
    refused(tmp_path, "part-11.npy' has 5 columns, but")


class RowsOf(np.ndarray):
    """An array that looks like rows to the check of slices."""

    sparse = False


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path, numbers, save, check_slices, refused):
    y = np.arange(500) % 3
    path = tmp_path / "a.npz"
    save(path, x_train=numbers, y_train=y, x_test=numbers[:9, ::-1])
    table = open_table(path, key="x_train", label="y_train")
    check_slices(table.rows, numbers)
    np.testing.assert_array_equal(table.label, y)
    check_slices(open_table(path, key="x_test").rows[:].view(RowsOf), numbers[:9, ::-1])
    refused(path, "several arrays ('x_train', 'x_test'): name one by its key")
    refused(path, "no array 'x_trian': did you mean 'x_train'", key="x_trian")
    refused(path, "has shape (500,), but the data has 9 rows", key="x_test", label="y_train")
    save(path, numbers)
    check_slices(open_table(path).rows, numbers)


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_sparse_npz(tmp_path, compressed, form, check_slices):
    matrix = scipy.sparse.random(300, 40, 0.1, format=form, dtype=np.float32, random_state=0)
    path = tmp_path / "a.npz"
    scipy.sparse.save_npz(path, matrix, compressed=compressed)
    table = open_table(path)
    check_slices(table.rows, matrix.toarray())
    assert len(table.notes) == (form != "csr")


def test_hdf5(tmp_path, numbers, check_slices, refused):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("group/x", data=numbers, chunks=(64, 6), compression="gzip")
        file["group/y"] = np.array(["a", "b"] * 250, dtype=object)
    with open_table(path, label="group/y") as table:
        check_slices(table.rows, numbers)
        assert table.rows.span == 64
        assert table.label[:3].tolist() == ["a", "b", "a"]
    refused(path, "no array 'group/z'", key="group/z")
    with h5py.File(path, "a") as file:
        file["z"] = numbers
    refused(path, "several arrays ('group/x', 'z')")
    check_slices(open_table(path, key="/group/x").rows, numbers)


def test_zarr(tmp_path, numbers, check_slices, refused):
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    group.create_array("deep/x", shape=numbers.shape, chunks=(64, 6), dtype="f4")[:] = numbers
    group.create_array("y", shape=(500,), dtype="i8")[:] = np.arange(500)
    table = open_table(tmp_path / "a.zarr", label="y")
    check_slices(table.rows, numbers)
    assert table.label[-1] == 499
    check_slices(open_table(tmp_path / "a.zarr", key="deep/x").rows, numbers)
    zarr.create_array(str(tmp_path / "b.zarr"), data=numbers)
    check_slices(open_table(tmp_path / "b.zarr").rows, numbers)
    refused(tmp_path / "b.zarr", "leave the key out", key="x")
    chunk = next(path for path in (tmp_path / "b.zarr").rglob("*") if path.is_file() and path.name != "zarr.json")
    chunk.write_bytes(chunk.read_bytes()[:20])
    refused(tmp_path / "b.zarr", "damaged, cut off")


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.h5"])
def test_bad_arrays(tmp_path, numbers, name, refused):
    path = tmp_path / name

    def write(array, folder=tmp_path):
        if name == "a.npy":
            np.save(folder / name, array)
        elif name == "a.npz":
            np.savez(folder / name, array)
        else:
            with h5py.File(folder / name, "w") as file:
                file["x"] = array

    holed = numbers.copy()
    holed[70, 3] = np.nan
    write(holed)
    refused(path, "NaN in row 70, column 3: fill it in")
    holed[70, 3] = -np.inf
    write(holed)
    refused(path, "infinity in row 70, column 3: replace it with a finite number, remove that row, or drop the column.")
    write(numbers[:, 0])
    refused(path, "shape (500,), but rows and columns are needed")
    write(numbers[:0])
    refused(path, "no rows")
    write(np.array([[b"a", b"b"]]))
    refused(path, "not numbers")
    write(numbers)
    refused(path, "has no named columns", columns=["a"])
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refused(path, "damaged")
    path.write_bytes(b"what?" + whole)
    refused(path, "does not begin like")
    path.write_bytes(b"")
    refused(path, "is empty")
    write(np.finfo(np.float32).max * np.ones((9, 9), np.float32))  # finite, but their sum is not
    _ = open_table(path).rows[:]


class Evil:
    def __reduce__(self):
        return os.mkdir, (os.environ["TSEE_TEST_EVIL"],)


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_no_pickle_is_read(tmp_path, monkeypatch, name, refused):
    monkeypatch.setenv("TSEE_TEST_EVIL", str(tmp_path / "evil"))
    array = np.array([[Evil(), 1]], dtype=object)
    (np.save if name == "a.npy" else np.savez)(tmp_path / name, array)
    refused(tmp_path / name, "Python objects, which are not read")
    assert not (tmp_path / "evil").exists()


def test_damaged_sparse_matrix(tmp_path, refused):
    matrix = scipy.sparse.random(300, 40, 0.1, format="csr", dtype=np.float32, random_state=0)
    matrix.indices[50] = 4000
    scipy.sparse.save_npz(tmp_path / "a.npz", matrix)
    refused(tmp_path / "a.npz", "damaged sparse matrix (rows 0 to 63)")
    matrix.indices[50] = 4
    matrix.data[50] = np.nan
    row = int(np.searchsorted(matrix.indptr, 50, side="right"))
    scipy.sparse.save_npz(tmp_path / "a.npz", matrix)
    refused(tmp_path / "a.npz", f"NaN in row {row - 1}, column 4")


def test_a_store_too_wide_for_the_memory(tmp_path, refused):
    zarr.create_array(str(tmp_path / "a.zarr"), shape=(100, 2**40), chunks=(10, 10), dtype="f8")
    refused(tmp_path / "a.zarr", "not enough memory to read")
