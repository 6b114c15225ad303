"""The command on the principal components of cells in .h5ad files."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import tsee
from tsee.anndata import embed, place
from tsee.cli import main

GENES = [f"gene{i}" for i in range(60)]


@pytest.fixture
def counts():
    """120 cells of 60 genes."""
    generator = np.random.default_rng(0)
    return generator.poisson(generator.gamma(0.3, 3.0, size=(4, 60))[np.arange(120) % 4]).astype(np.float32)


@pytest.fixture
def projected(anndata):
    """Makes cells as after scanpy.pp.pca."""

    def make(X, loadings, genes=GENES):
        obs = pd.DataFrame(index=[f"cell{i}" for i in range(len(X))])
        var = pd.DataFrame(index=genes)
        return anndata.AnnData(X.copy(), obs=obs, var=var, varm={"PCs": loadings}, obsm={"X_pca": X @ loadings})

    return make


def test_new_cells_of_another_pca_are_refused(projected, counts, tmp_path):
    one, other = np.random.default_rng(1).normal(size=(2, 60, 4))

    def tsee_command(*arguments, code=0):
        result = CliRunner().invoke(main, [*map(str, arguments), "--key", "X_pca"])
        assert result.exit_code == code, result.output
        return result.stderr

    projected(counts[:100], one).write_h5ad(tmp_path / "old.h5ad")
    projected(counts[100:, ::-1], one[::-1], GENES[::-1]).write_h5ad(tmp_path / "new.h5ad")
    projected(counts[100:], other).write_h5ad(tmp_path / "foreign.h5ad")
    unknown = projected(counts[100:], one)
    del unknown.varm["PCs"]
    unknown.write_h5ad(tmp_path / "unknown.h5ad")
    quick = ["--max-epochs", "1", "--hidden-layers", "16", "--refinement", "5", "--perplexity", "5"]
    tsee_command("fit", tmp_path / "old.h5ad", "-o", tmp_path / "fitted", *quick)
    parameters = dict(max_epochs=1, hidden_layers=(16,), refinement=0, perplexity=5)
    embed(projected(counts[:100], one), use_rep="X_pca", **parameters).save(tmp_path / "embedded")
    tsee_command("update", tmp_path / "fitted", tmp_path / "new.h5ad", "-o", tmp_path / "updated")
    for name in ("fitted", "embedded", "updated"):
        model, map_ = tmp_path / name, tmp_path / "map.npy"
        assert "loadings" not in tsee_command("transform", model, tmp_path / "new.h5ad", "-o", map_)
        expected = tsee.load(model).transform(projected(counts[100:, ::-1], one[::-1]).obsm["X_pca"])
        np.testing.assert_array_equal(np.load(map_), expected)
        said = tsee_command("transform", model, tmp_path / "foreign.h5ad", "-o", map_, code=1)
        assert said == (
            f"Error: 'X_pca' in '{tmp_path / 'foreign.h5ad'}' comes from another PCA than the data of the model (their "
            "loadings in varm differ), so positions would mean nothing: project the new observations with the loadings "
            "of the old ones (scanpy.tl.ingest), or fit the model of X.\n"
        )
        said = tsee_command("transform", model, tmp_path / "unknown.h5ad", "-o", map_)
        assert "It has no loadings to compare with the model's" in said
    # The model of tsee.anndata reads the same checksum from the file's object.
    with pytest.raises(ValueError, match="another PCA"):
        place(projected(counts[100:], other), tsee.load(tmp_path / "fitted"))
