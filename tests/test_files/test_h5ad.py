"""AnnData's files: they are read as anndata reads them, and hold the map afterwards."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from tsee.exceptions import DataFileError
from tsee.files import open_table, write_map


@pytest.mark.parametrize("form", ["dense", "csr", "csc"])
def test_h5ad(tmp_path, numbers, anndata, form, check_slices, refused):
    X = scipy.sparse.random(500, 30, 0.1, format="csr", dtype=np.float32, random_state=0)
    X = X.toarray() if form == "dense" else X.asformat(form)
    dense = X if form == "dense" else X.toarray()
    data = anndata.AnnData(X, obs=pd.DataFrame(index=[f"cell{i}" for i in range(500)]))
    data.var_names = [f"gene{i}" for i in range(30)]
    data.obs["kind"] = pd.Categorical(["T", "B", None, "T", "NK"] * 100)
    data.obs["depth"] = np.arange(500.0)
    data.obs["n"] = pd.array([1, None] * 250, dtype="Int64")
    data.obsm["X_pca"] = numbers
    data.layers["counts"] = X * 2
    data.uns["other"] = 5
    data.uns["tsee"] = {"params": {"perplexity": 77.0}}  # of an earlier map
    path = tmp_path / "a.h5ad"
    data.write_h5ad(path)
    with open_table(path, label="kind") as table:
        check_slices(table.rows, dense)
        assert table.feature_names == [f"gene{i}" for i in range(30)]
        assert table.label[:5].tolist() == ["T", "B", None, "T", "NK"]
        assert list(table.other_columns) == ["index", "depth", "n"]
        assert table.other_columns["index"][7] == "cell7"
        assert table.other_columns["n"][:2].tolist() == [1, None]
        check_slices(open_table(path, columns=["gene9", "gene3"]).rows, dense[:, [9, 3]])
        check_slices(open_table(path, key="layers/counts", drop=["gene0"]).rows, 2 * dense[:, 1:])
        check_slices(open_table(path, key="X_pca").rows, numbers)
        check_slices(open_table(path, key="obsm/X_pca").rows, numbers)
        write_map(path, numbers[:, :2], table)  # onto itself
        write_map(path, numbers[:, 1:3], table)
        write_map(tmp_path / "map.csv", numbers[:, 1:3], table)
    back = anndata.read_h5ad(path)
    np.testing.assert_array_equal(back.obsm["X_tsee"], numbers[:, 1:3])
    np.testing.assert_array_equal(back.obsm["X_pca"], numbers)
    assert back.obs["kind"].tolist()[:2] == ["T", "B"]
    frame = pd.read_csv(tmp_path / "map.csv")
    assert list(frame.columns) == ["index", "depth", "n", "kind", "tsee0", "tsee1"]
    assert "tsee" not in back.uns
    assert back.uns["other"] == 5
    refused(path, "no key 'X_pac': did you mean 'X_pca'", key="X_pac")
    refused(path, "no column of obs 'kid': did you mean 'kind'?", label="kid")
    refused(path, "no variable 'gene99'", columns=["gene99"])
    data.var_names = ["same", "same", *data.var_names[2:]]
    data.write_h5ad(path)
    check_slices(open_table(path, columns=list(data.var_names)).rows, dense)
    refused(path, "several variables named 'same'", columns=["gene9", "same"])
    with pytest.raises(DataFileError, match="a copy of an .h5ad input, but the input is not one"):
        write_map(tmp_path / "b.h5ad", numbers[:, :2])
