"""Maps of AnnData objects: what is mapped, what is written, and new observations on the same map."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from click.testing import CliRunner
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import kneighbors_graph

import tsee
from tsee import DtSEE, HotSNE, batches
from tsee.anndata import embed, place
from tsee.cli import main

QUICK = dict(max_epochs=1, hidden_layers=(16,), refinement=0, perplexity=5)
GENES = [f"gene{i}" for i in range(60)]


@pytest.fixture(scope="module")
def counts():
    """120 cells of 60 genes, most of them silent."""
    generator = np.random.default_rng(0)
    X = generator.poisson(generator.gamma(0.3, 3.0, size=(4, 60))[generator.integers(4, size=120)])
    return X.astype(np.float32)


@pytest.fixture
def cells(anndata, counts):
    """Makes an AnnData object of a matrix."""

    def make(X=counts, genes=GENES, **more):
        X = X.copy()  # a test may change it
        obs = pd.DataFrame(index=[f"cell{i}" for i in range(X.shape[0])])
        return anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=list(genes)[: X.shape[1]]), **more)

    return make


def map_of(X, **parameters):
    return DtSEE(random_state=0, **{**QUICK, **parameters}).fit_transform(X)


def test_writes_the_map_and_the_parameters_and_returns_the_model(cells, counts):
    data = cells()
    see = embed(data, **QUICK)
    assert isinstance(see, DtSEE)
    assert list(data.obsm) == ["X_tsee"]
    assert data.obsm["X_tsee"].dtype == np.float32
    np.testing.assert_array_equal(data.obsm["X_tsee"], map_of(counts))
    params = data.uns["tsee"]["params"]
    assert list(data.uns) == ["tsee"]
    assert {name: params[name] for name in QUICK} == {**QUICK, "hidden_layers": [16]}
    assert params["method"] == "dt-see"
    assert params["use_rep"] == "X"
    assert params["random_state"] == 0
    assert params["tsee_version"] == tsee.__version__
    assert list(see.feature_names_in_) == GENES


@pytest.mark.parametrize("use_rep", [None, "X", "X_pca"])
def test_which_representation_is_taken(cells, counts, use_rep):
    """X, unless another is asked for: as `tsee fit` does with the file."""
    pca = np.random.default_rng(1).normal(size=(120, 4))
    data = cells(obsm={"X_pca": pca})
    see = embed(data, use_rep=use_rep, **QUICK)
    taken = use_rep or "X"
    assert data.uns["tsee"]["params"]["use_rep"] == taken
    np.testing.assert_array_equal(data.obsm["X_tsee"], map_of(counts if taken == "X" else pca))
    assert hasattr(see, "feature_names_in_") == (taken == "X")


def test_the_default_is_that_of_the_command(cells, tmp_path):
    data = cells(obsm={"X_pca": np.random.default_rng(1).normal(size=(120, 4))})
    data.write_h5ad(tmp_path / "cells.h5ad")
    embed(data, **QUICK)
    options = ["--max-epochs", "1", "--hidden-layers", "16", "--refinement", "0", "--perplexity", "5"]
    command = ["fit", str(tmp_path / "cells.h5ad"), "-o", str(tmp_path / "model"), "--random-state", "0", *options]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    np.testing.assert_array_equal(tsee.load(tmp_path / "model").embedding_, data.obsm["X_tsee"])


def test_a_copy(cells):
    data = cells()
    see, written = embed(data, copy=True, **QUICK)
    assert (list(data.obsm), list(data.uns)) == ([], [])
    np.testing.assert_array_equal(written.obsm["X_tsee"], see.embedding_)
    assert written.uns["tsee"]["params"]["use_rep"] == "X"
    placed = place(data, see, key_added="X_again", copy=True)
    assert (list(data.obsm), list(placed.obsm)) == ([], ["X_again"])
    assert place(data, see) is None
    np.testing.assert_array_equal(data.obsm["X_tsee"], placed.obsm["X_again"])


def projected(cells, counts, loadings, genes=GENES, **more):
    """Cells as after scanpy.pp.pca."""
    data = cells(counts, genes=genes, **more)
    data.varm["PCs"] = loadings
    data.obsm["X_pca"] = counts @ loadings
    return data


def test_new_cells_of_another_pca_are_refused(cells, counts, tmp_path):
    one, other = np.random.default_rng(1).normal(size=(2, 60, 4))
    one[7] = 0  # a gene that the PCA left out
    old = projected(cells, counts[:100], one)
    see = embed(old, use_rep="X_pca", **QUICK)
    see.save(tmp_path / "model")
    see = tsee.load(tmp_path / "model")
    new = projected(cells, counts[100:], one)
    place(new, see)
    np.testing.assert_array_equal(new.obsm["X_tsee"], see.transform(counts[100:] @ one))
    # The genes in another order and without the one that was left out; numbers in single precision.
    order = np.random.default_rng(2).permutation([gene for gene in range(60) if gene != 7])
    names = [GENES[gene] for gene in order]
    place(projected(cells, counts[100:, order], one[order].astype(np.float32), names), see)
    foreign = projected(cells, counts[100:], other)
    with pytest.raises(ValueError, match=r"'X_pca' comes from another PCA than the data.*scanpy.tl.ingest"):
        place(foreign, see)
    assert "X_tsee" not in foreign.obsm
    del new.varm["PCs"]
    with pytest.warns(tsee.DataWarning, match="varm has no loadings of 'X_pca'"):
        place(new, see)


def test_the_representation_that_is_asked_for(cells, counts):
    data = cells(obsm={"X_pca": counts[:, :5], "X_scVI": counts[:, 3:9]})
    embed(data, use_rep="X_scVI", **QUICK)
    np.testing.assert_array_equal(data.obsm["X_tsee"], map_of(counts[:, 3:9]))
    embed(data, use_rep="X", key_added="X_other", **QUICK)
    np.testing.assert_array_equal(data.obsm["X_other"], map_of(counts))
    assert data.uns["X_other"]["params"]["use_rep"] == "X"
    assert data.uns["tsee"]["params"]["use_rep"] == "X_scVI"


def test_method_and_seed(cells, counts):
    data = cells()
    see = embed(data, method="hot-sne", random_state=3, max_epochs=1, n_factors=10, n_hidden=8, perplexity=5)
    expected = HotSNE(max_epochs=1, n_factors=10, n_hidden=8, perplexity=5, random_state=3).fit_transform(counts)
    np.testing.assert_array_equal(data.obsm["X_tsee"], expected)
    assert isinstance(see, HotSNE)
    assert data.uns["tsee"]["params"]["method"] == "hot-sne"


SPARSE = [scipy.sparse.csr_matrix, scipy.sparse.csc_matrix, scipy.sparse.csr_array, scipy.sparse.csc_array]


@pytest.mark.parametrize("form", SPARSE)
def test_sparse(cells, counts, form):
    data = cells(form(counts))
    embed(data, **QUICK)
    np.testing.assert_array_equal(data.obsm["X_tsee"], map_of(counts))


@pytest.mark.parametrize("mode", ["r", "r+"])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.csc_matrix])
def test_backed(anndata, cells, counts, form, mode, tmp_path):
    path = tmp_path / "cells.h5ad"
    cells(form(counts)).write_h5ad(path)
    data = anndata.read_h5ad(path, backed=mode)
    try:
        see = embed(data, **QUICK)
        np.testing.assert_array_equal(data.obsm["X_tsee"], map_of(counts))
        place(data, see, key_added="X_again")
        np.testing.assert_array_equal(data.obsm["X_again"], see.transform(pd.DataFrame(counts, columns=GENES)))
        fewer = embed(cells(counts[:, 5::-1], GENES[5::-1]), **QUICK)  # other genes, in another order
        place(data, fewer)
        expected = fewer.transform(pd.DataFrame(counts[:, 5::-1], columns=GENES[5::-1]))
        np.testing.assert_array_equal(data.obsm["X_tsee"], expected)
        if mode == "r+":
            data.write()
    finally:
        data.file.close()
    if mode == "r+":
        np.testing.assert_array_equal(anndata.read_h5ad(path).obsm["X_tsee"], expected)


def test_roundtrip(anndata, cells, tmp_path):
    data = cells(obsm={"X_pca": np.random.default_rng(1).normal(size=(120, 4))})
    embed(data, use_rep="X_pca", **QUICK)
    embed(data, use_rep="X", method="hot-see", key_added="X_x", max_epochs=1, n_factors=10, n_hidden=8, perplexity=5)
    data.write_h5ad(tmp_path / "cells.h5ad")
    back = anndata.read_h5ad(tmp_path / "cells.h5ad")
    for obsm, uns in (("X_tsee", "tsee"), ("X_x", "X_x")):
        np.testing.assert_array_equal(back.obsm[obsm], data.obsm[obsm])
        before, after = data.uns[uns]["params"], back.uns[uns]["params"]
        assert {name: np.asarray(value).tolist() for name, value in after.items()} == before


def test_a_parameter_that_no_file_can_hold_is_left_out(anndata, cells, tmp_path):
    from torch import nn

    data = cells()
    state = np.random.RandomState(0)
    embed(data, network=nn.Linear(20, 2), n_inputs=20, max_epochs=1, perplexity=5, random_state=state)
    assert not {"network", "random_state"} & set(data.uns["tsee"]["params"])
    data.write_h5ad(tmp_path / "cells.h5ad")


# New observations


def test_new_cells_on_the_same_map(cells, counts):
    see = embed(cells(counts[:100]), **QUICK)
    new = cells(counts[100:])
    assert place(new, see) is None
    np.testing.assert_array_equal(new.obsm["X_tsee"], see.transform(pd.DataFrame(counts[100:], columns=GENES)))
    assert new.uns["tsee"]["params"]["use_rep"] == "X"


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.csc_array])
def test_genes_are_found_by_name(cells, counts, form):
    see = embed(cells(counts[:100]), **QUICK)
    order = np.random.default_rng(0).permutation(60)
    more = np.hstack([np.ones((20, 2), dtype=np.float32), counts[100:][:, order]])
    new = cells(form(more), ["other1", "other2", *(GENES[i] for i in order)])
    place(new, see, key_added="X_map")
    np.testing.assert_array_equal(new.obsm["X_map"], see.transform(pd.DataFrame(counts[100:], columns=GENES)))


def test_genes_that_are_missing_or_ambiguous_are_named(cells, counts):
    see = embed(cells(), **QUICK)
    with pytest.raises(ValueError, match="lacks 2 of the 60 variables .*'gene58', 'gene59'"):
        place(cells(counts[:, :58]), see)
    with pytest.raises(ValueError, match="var_names_make_unique"), pytest.warns(UserWarning, match="not unique"):
        place(cells(np.hstack([counts, counts])[:, :61], [*GENES, "gene0"]), see)


def test_cells_with_genes_of_one_name_can_be_mapped(cells, counts):
    with pytest.warns(UserWarning, match="not unique"):
        data = cells(counts, ["same", "same", *GENES[2:]])
    see = embed(data, **QUICK)
    assert not hasattr(see, "feature_names_in_")
    place(data, see)
    np.testing.assert_array_equal(data.obsm["X_tsee"], see.transform(counts))


def test_new_cells_of_a_model_of_principal_components(cells, counts):
    pca = np.random.default_rng(1).normal(size=(120, 4))
    see = embed(cells(counts[:100], obsm={"X_pca": pca[:100]}), use_rep="X_pca", **QUICK)
    new = cells(counts[100:], obsm={"X_pca": pca[100:], "X_other": pca[100:, :3]})
    place(new, see)
    np.testing.assert_array_equal(new.obsm["X_tsee"], see.transform(pca[100:]))
    assert new.uns["tsee"]["params"]["use_rep"] == "X_pca"
    with pytest.raises(
        ValueError, match="'X_other' has 3 columns, but the model was fitted with 4.*'X', 'X_pca', 'X_other'"
    ):
        place(new, see, use_rep="X_other")


def test_a_model_that_was_saved(cells, counts, tmp_path):
    data = cells()
    embed(data, **QUICK).save(tmp_path / "model")
    new = cells()
    place(new, tsee.load(tmp_path / "model"))
    np.testing.assert_array_equal(new.obsm["X_tsee"], data.obsm["X_tsee"])


# What is refused


def test_a_representation_that_is_not_there(cells, counts):
    data = cells(obsm={"X_pca": counts[:, :4], "X_umap": counts[:, :2]})
    with pytest.raises(ValueError, match="'use_rep' parameter is 'X_pac'.* It has 'X', 'X_pca', 'X_umap'"):
        embed(data, use_rep="X_pac")
    del data.obsm["X_pca"]
    data.X = None
    with pytest.raises(ValueError, match="'use_rep' parameter is 'X'.* It has 'X_umap'"):
        embed(data)
    assert list(data.obsm) == ["X_umap"]


def test_bad_arguments(cells, counts):
    data = cells()
    with pytest.raises(TypeError, match="must be an AnnData object. Got ndarray instead"):
        embed(counts)
    with pytest.raises(TypeError, match="must be an AnnData object. Got str instead"):
        place("cells.h5ad", DtSEE())
    with pytest.raises(ValueError, match="'method' parameter must be one of 'dt-see', 'hot-see'.* Got 'umap' instead"):
        embed(data, method="umap")
    with pytest.raises(TypeError, match="'n_pcs' is not a parameter of embed or of DtSEE.*'n_inputs'"):
        embed(data, n_pcs=30)
    with pytest.raises(ValueError, match="'perplexity' parameter"):
        embed(data, perplexity=-1)
    with pytest.raises(NotFittedError):
        place(data, DtSEE())
    data.X[3, 5] = np.nan
    with pytest.raises(ValueError, match="NaN in row 3, column 5"):
        embed(data, missing="error")
    assert list(data.obsm) == list(data.uns) == []


def test_anndata_is_not_imported():
    code = """
import sys, types
import numpy as np, pandas as pd
import tsee
names = pd.Index([f"gene{i}" for i in range(5)])
alike = types.SimpleNamespace(X=np.random.default_rng(0).normal(size=(50, 5)), obsm={}, uns={}, var_names=names)
tsee.anndata.embed(alike, max_epochs=1, hidden_layers=(8,), refinement=0)
assert alike.obsm["X_tsee"].shape == (50, 2)
print([name for name in ("anndata", "h5py", "scanpy") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


def test_data_on_disk_whose_positions_are_not_kept(anndata, cells, counts, tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "MEMORY", 0)
    cells().write_h5ad(tmp_path / "cells.h5ad")
    data = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    try:
        see = embed(data, **QUICK)
        assert see.map_.embedding is None
        assert list(see.feature_names_in_) == GENES
        np.testing.assert_array_equal(data.obsm["X_tsee"], see.transform(pd.DataFrame(counts, columns=GENES)))
    finally:
        data.file.close()


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
def test_the_metric_is_a_parameter(cells, counts, form):
    data = cells(form(counts))
    see = embed(data, metric="cosine", **QUICK)
    assert data.uns["tsee"]["params"]["metric"] == "cosine"
    np.testing.assert_allclose(data.obsm["X_tsee"], map_of(counts, metric="cosine"), atol=1e-5)
    deeper = cells(form(3 * counts[:20]))  # the same cells, counted more deeply
    place(deeper, see)
    np.testing.assert_allclose(deeper.obsm["X_tsee"], data.obsm["X_tsee"][:20], atol=1e-4)


def test_the_neighbors_that_scanpy_found(cells, counts):
    data = cells()
    data.obsm["X_pca"], data.obsm["X_other"] = counts[:, :10], counts[:, 10:20]
    graph = kneighbors_graph(counts, 20, mode="distance", metric="cosine")
    data.obsp["distances"] = graph
    data.obsp["mine_distances"] = kneighbors_graph(counts, 30, mode="distance")
    data.uns["neighbors"] = {"distances_key": "distances", "connectivities_key": "connectivities", "params": {}}
    data.uns["mine"] = {"distances_key": "mine_distances", "params": {"use_rep": "X_other"}}
    embed(data, neighbors_key="neighbors", **QUICK)
    see = DtSEE(random_state=0, **QUICK)
    np.testing.assert_array_equal(data.obsm["X_tsee"], see.fit_transform(counts[:, :10], neighbors=graph))
    embed(data, neighbors_key="mine", key_added="X_mine", **QUICK)
    assert data.uns["X_mine"]["params"]["use_rep"] == "X_other"
    expected = see.fit_transform(counts[:, 10:20], neighbors=data.obsp["mine_distances"])
    np.testing.assert_array_equal(data.obsm["X_mine"], expected)
    embed(data, neighbors_key="mine", use_rep="X", **QUICK)
    assert data.uns["tsee"]["params"]["use_rep"] == "X"


def test_neighbors_that_are_not_there(cells):
    data = cells()
    data.uns["empty"] = {"distances_key": "nowhere"}
    for key in ("neighbors", "empty"):
        with pytest.raises(
            ValueError, match=rf"^The 'neighbors_key' parameter is '{key}', but adata has no such neighb"
        ):
            embed(data, neighbors_key=key)
    with pytest.raises(
        ValueError, match="^The 'neighbors_key' parameter is for the methods dt-see and hot-see, not for p"
    ):
        embed(data, neighbors_key="neighbors", method="pt-sne")
