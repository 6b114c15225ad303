"""Sparse matrices whose parts do not fit are refused before compiled code follows them."""

import h5py
import numpy as np
import pytest
import scipy.sparse

from tsee.files.sparse import checked_csr

MATRIX = scipy.sparse.random(300, 40, 0.1, format="csr", dtype=np.float32, random_state=0)


def broken(form, part):
    """A matrix of a format with one bad number in one part."""
    matrix = MATRIX.asformat(form).copy()
    if part == "end":
        matrix.indptr[-1] = 10**6
    elif part == "order":
        matrix.indptr[1] = 1000
    elif part == "begin":
        matrix.indptr[0] = -4
    elif part == "short":
        matrix.data = matrix.data[:-5]
    elif part == "lil":
        matrix.rows[7] = [4000]
        matrix.data[7] = [1.0]
    elif part == "ragged":
        matrix.data[7] = [1.0] * 500
    elif part == "dok":
        matrix._dict[(4, 10**6)] = 1.0
    else:
        name, _, bad = part.partition(" ")
        getattr(matrix, name)[50] = int(bad)
    return matrix


BROKEN = [
    *((form, part) for form in ("csr", "csc") for part in ("indices 4000", "indices -1", "end", "order", "begin")),
    *((form, "short") for form in ("csr", "csc", "coo")),
    ("bsr", "indices 4000"),
    ("bsr", "end"),
    ("coo", "row 4000"),
    ("coo", "col -7"),
    ("lil", "lil"),
    ("lil", "ragged"),
    ("dok", "dok"),
]


@pytest.mark.parametrize("form, part", BROKEN)
def test_a_damaged_matrix_is_refused(form, part):
    with pytest.raises(ValueError, match=r"^X is a damaged sparse matrix \(.+\): build it again\.$"):
        checked_csr(broken(form, part), "X")


@pytest.mark.parametrize("form", ["csr", "csc", "bsr", "coo", "dia", "lil", "dok"])
def test_a_sound_matrix_keeps_its_values(form):
    for matrix in (MATRIX, MATRIX[:0], scipy.sparse.csr_array(MATRIX), scipy.sparse.csr_matrix((4, 5))):
        found = checked_csr(matrix.asformat(form), "X")
        assert found.format == "csr"
        np.testing.assert_array_equal(found.toarray(), matrix.toarray())


def test_a_csr_matrix_is_not_copied():
    assert checked_csr(MATRIX, "X") is MATRIX


@pytest.mark.parametrize("form, part", [("csc", "indices 4000"), ("csr", "indices -1"), ("csc", "end"), ("bsr", "end")])
def test_a_damaged_matrix_in_npz(tmp_path, refused, form, part):
    scipy.sparse.save_npz(tmp_path / "a.npz", broken(form, part))
    refused(tmp_path / "a.npz", "damaged")


def write_h5ad(path, make_h5ad, matrix, encoding):
    make_h5ad(path, matrix.shape[0], matrix.shape[1])
    with h5py.File(path, "a") as file:
        del file["X"]
        group = file.create_group("X")
        group.attrs.update({"encoding-type": encoding, "encoding-version": "0.1.0", "shape": matrix.shape})
        for part in ("data", "indices", "indptr"):
            group[part] = getattr(matrix, part)


@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("part", ["indices 4000", "indices -1", "order", "begin"])
def test_a_damaged_matrix_in_h5ad(tmp_path, refused, make_h5ad, form, part):
    write_h5ad(tmp_path / "a.h5ad", make_h5ad, broken(form, part), f"{form}_matrix")
    refused(tmp_path / "a.h5ad", "damaged")


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_duplicates_and_any_order_in_files(tmp_path, make_h5ad, form, check_slices):
    from tsee.files import open_table

    one = MATRIX.asformat(form)
    two = type(one)((np.repeat(one.data, 2)[::-1], np.repeat(one.indices, 2)[::-1], one.indptr * 2), shape=one.shape)
    expected = two.toarray()
    assert not two.has_canonical_format
    write_h5ad(tmp_path / "a.h5ad", make_h5ad, two, f"{form}_matrix")
    scipy.sparse.save_npz(tmp_path / "a.npz", two)
    for name in ("a.h5ad", "a.npz"):
        check_slices(open_table(tmp_path / name).rows, expected)


def test_room_after_the_last_value_is_no_fault():
    whole = scipy.sparse.csr_matrix(np.eye(4))
    indices, data = np.r_[whole.indices, -7, 99], np.r_[whole.data, 5.0, 5.0]
    roomy = scipy.sparse.csr_matrix(np.eye(4))
    roomy.indices, roomy.data = indices.astype(np.int32), data
    np.testing.assert_array_equal(checked_csr(roomy, "X").toarray(), np.eye(4))
