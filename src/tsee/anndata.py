"""Maps of single cells, as scanpy users expect them. anndata itself is never imported."""

from __future__ import annotations

from copy import copy as shallow_copy
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from tsee.data.numbers import as_numbers
from tsee.estimators import METHODS
from tsee.exceptions import DataWarning, warn
from tsee.files.errors import listed
from tsee.files.h5ad import rows_of
from tsee.files.loadings import PROJECT, loadings_checksum, loadings_key
from tsee.files.rows import ChosenColumns, Rows
from tsee.fitted import fitted_map
from tsee.values import plain

__all__ = ["embed", "place"]

# Unless it is told otherwise, scanpy looks for neighbors in X_pca if there are more variables than this.
MAX_VARIABLES = 50


def embed(
    adata: Any,
    *,
    use_rep: str | None = None,
    method: str = "dt-see",
    key_added: str | None = None,
    neighbors_key: str | None = None,
    copy: bool = False,
    random_state: int | np.random.RandomState | None = 0,
    **parameters: Any,
) -> Any:
    """Map the observations of an AnnData object.

    Writes the map to ``adata.obsm["X_tsee"]``, where ``scanpy.pl.embedding(adata, "tsee")`` finds it, and the
    parameters to ``adata.uns["tsee"]["params"]``. scanpy's tools return None; this returns the fitted model, with
    which `place` puts new observations on the same map.

    Parameters
    ----------
    adata : AnnData
        The data; ``adata.X`` may be dense, sparse, or on disk (``backed``).
    use_rep : str, optional
        What to map: ``"X"``, the default as in ``tsee fit cells.h5ad``, or a key of ``adata.obsm`` such as ``"X_pca"``.
        Of X the model finds the principal components itself (``n_inputs``), remembers the names of the variables, and
        places new observations without a PCA made elsewhere. New observations for a model of ``"X_pca"`` need the same
        PCA: the model remembers a checksum of its loadings, ``adata.varm["PCs"]``.
    method : {"dt-see", "hot-see", "pt-sne", "hot-sne"}
        Which of `DtSEE`, `HotSEE`, `PtSNE` and `HotSNE` to fit.
    key_added : str, optional
        The key in ``obsm`` and in ``uns``. By default ``"X_tsee"`` and ``"tsee"``.
    neighbors_key : str, optional
        The key in ``uns`` of neighbors that the map is to keep, ``"neighbors"`` for those that ``scanpy.pp.neighbors``
        finds; their distances are in ``adata.obsp``. For "dt-see" and "hot-see". Unless ``use_rep`` is given, it is the
        one that the neighbors were found in. By default the model finds neighbors itself.
    copy : bool
        Leave adata as it is, write to a copy of it, and return that copy, too.
    random_state : int, RandomState or None
        The same number gives the same map.
    **parameters
        Parameters of the estimator, such as ``perplexity``; ``n_inputs`` is what scanpy calls ``n_pcs``.

    Returns
    -------
    DtSEE, HotSEE, PtSNE or HotSNE
        The fitted model; with ``copy=True``, the model and the copy of adata.

    Examples
    --------
    >>> import anndata
    >>> from sklearn.datasets import load_digits
    >>> import tsee
    >>> cells = anndata.AnnData(load_digits().data)
    >>> see = tsee.anndata.embed(cells, perplexity=15, max_epochs=5)
    >>> cells.obsm["X_tsee"].shape
    (1797, 2)
    >>> cells.uns["tsee"]["params"]["perplexity"]
    15
    """
    _check_anndata(adata)
    if method not in METHODS:
        raise ValueError(f"The 'method' parameter must be one of {listed(METHODS)}. Got {method!r} instead.")
    estimator = METHODS[method](random_state=random_state)
    unknown = [name for name in parameters if name not in estimator.get_params()]
    if unknown:
        raise TypeError(
            f"{listed(unknown)} is not a parameter of embed or of {type(estimator).__name__}, which are "
            f"{listed(estimator.get_params(), most=100)}."
        )
    given: dict[str, Any] = {}
    if neighbors_key is not None:
        if not hasattr(estimator, "exemplars"):
            raise ValueError(f"The 'neighbors_key' parameter is for the methods dt-see and hot-see, not for {method}.")
        given["neighbors"], found_in = _neighbors(adata, neighbors_key)
        use_rep = found_in if use_rep is None else use_rep
    estimator.set_params(**parameters)
    chosen = _choose(adata, "X" if use_rep is None else use_rep)
    rows = _representation(adata, chosen)
    estimator.fit(rows, **given)
    positions = estimator.transform(rows) if estimator.map_.embedding is None else estimator.embedding_.copy()
    if chosen == "X" and adata.var_names.is_unique:
        estimator._adopt(replace(estimator.map_, feature_names=tuple(str(name) for name in adata.var_names)))
    elif chosen != "X":
        estimator._adopt(replace(estimator.map_, loadings=_loadings(adata, chosen)))
    written = adata.copy() if copy else adata
    _write(written, positions, _facts(estimator, chosen), key_added)
    return (estimator, written) if copy else estimator


def place(
    adata: Any, model: Any, *, use_rep: str | None = None, key_added: str | None = None, copy: bool = False
) -> Any:
    """Place the observations of an AnnData object on a map that exists.

    Writes to ``adata.obsm`` and ``adata.uns`` as `embed` does. For a model of X, the variables are found by their
    names, in any order and among any others. For a model of ``"X_pca"``, the ``"X_pca"`` of the new observations must
    come from the PCA of the old ones (``scanpy.tl.ingest``, not ``scanpy.pp.pca``). Another PCA is refused by its
    loadings, ``adata.varm["PCs"]``; if adata has none, a warning says that they could not be compared.

    Parameters
    ----------
    adata : AnnData
        The new observations.
    model : DtSEE, HotSEE, PtSNE or HotSNE
        The fitted model: what `embed` returned, or what `tsee.load` read.
    use_rep : str, optional
        ``"X"`` or a key of ``adata.obsm``; by default X for a model that knows the names of its variables, otherwise
        ``"X_pca"`` if it is as wide as the data of the model, otherwise X.
    key_added : str, optional
        The key in ``obsm`` and in ``uns``. By default ``"X_tsee"`` and ``"tsee"``.
    copy : bool
        Leave adata as it is, write to a copy of it, and return the copy.

    Returns
    -------
    None or AnnData
        The copy, if it was asked for.

    Examples
    --------
    >>> import anndata
    >>> from sklearn.datasets import load_digits
    >>> import tsee
    >>> X = load_digits().data
    >>> see = tsee.anndata.embed(anndata.AnnData(X[:1500]), max_epochs=5)
    >>> cells = anndata.AnnData(X[1500:])
    >>> tsee.anndata.place(cells, see)
    >>> cells.obsm["X_tsee"].shape
    (297, 2)
    """
    _check_anndata(adata)
    fitted = fitted_map(model)
    names = fitted.feature_names
    if use_rep is None:
        projected = names is None and "X_pca" in adata.obsm and adata.obsm["X_pca"].shape[1] == fitted.n_features
        use_rep = "X_pca" if projected else "X"
    chosen = _choose(adata, use_rep)
    X = _representation(adata, chosen)
    if chosen == "X" and names is not None:
        X = _columns(X, _positions(adata, names))
        # The names have been compared; the matrix has none to compare again.
        model = shallow_copy(model)._adopt(replace(model.map_, feature_names=None))
    elif X.shape[1] != fitted.n_features:
        raise ValueError(
            f"{chosen!r} has {X.shape[1]} columns, but the model was fitted with {fitted.n_features}: pass the "
            f"'use_rep' that it was fitted with. adata has {_present(adata)}."
        )
    elif fitted.loadings is not None:
        _compare_loadings(adata, chosen, fitted.loadings)
    written = adata.copy() if copy else adata
    _write(written, np.asarray(model.transform(X)), _facts(model, chosen), key_added)
    return written if copy else None


def _check_anndata(adata: Any) -> None:
    if not all(hasattr(adata, name) for name in ("X", "obsm", "uns", "var_names")):
        raise TypeError(
            f"The 'adata' parameter must be an AnnData object. Got {type(adata).__name__} instead: read a file with "
            "anndata.read_h5ad, or pass an array to the fit method of an estimator."
        )


def _neighbors(adata: Any, key: str) -> tuple[Any, str | None]:
    """The distances of neighbors that scanpy found, and the representation that it found them in, if it says so."""
    found = adata.uns.get(key)
    distances = found.get("distances_key", "distances") if hasattr(found, "get") else None
    if distances is None or distances not in adata.obsp:
        raise ValueError(
            f"The 'neighbors_key' parameter is {key!r}, but adata has no such neighbors: adata.uns[{key!r}] must name "
            f"their distances in adata.obsp, as after scanpy.pp.neighbors(adata)."
        )
    chosen = found.get("params", {}).get("use_rep")
    if chosen is None and len(adata.var_names) > MAX_VARIABLES:
        chosen = "X_pca"
    return adata.obsp[distances], chosen if chosen == "X" or chosen in adata.obsm else None


def _choose(adata: Any, use_rep: str) -> str:
    if use_rep in adata.obsm or (use_rep == "X" and adata.X is not None):
        return use_rep
    raise ValueError(f"The 'use_rep' parameter is {use_rep!r}, which adata does not have. It has {_present(adata)}.")


def _loadings(adata: Any, chosen: str) -> str | None:
    """A checksum of the PCA that made an entry of obsm, if adata has its loadings."""
    loadings = getattr(adata, "varm", {}).get(loadings_key(chosen))
    return None if loadings is None else loadings_checksum(adata.var_names, loadings)


def _compare_loadings(adata: Any, chosen: str, known: str) -> None:
    found = _loadings(adata, chosen)
    if found is None:
        warn(
            f"adata.varm has no loadings of {chosen!r}, so that they could not be compared with the model's: if "
            f"{chosen!r} comes from another PCA, positions mean nothing; {PROJECT}.",
            DataWarning,
        )
    elif found != known:
        raise ValueError(
            f"{chosen!r} comes from another PCA than the data of the model (their loadings in adata.varm differ), so "
            f"positions would mean nothing: {PROJECT}."
        )


def _present(adata: Any) -> str:
    """The names of the representations that adata has."""
    return listed([*(["X"] if adata.X is not None else []), *adata.obsm.keys()], most=20)


def _representation(adata: Any, chosen: str) -> Any:
    if chosen != "X":
        return adata.obsm[chosen]
    X = adata.X
    if getattr(adata, "isbacked", False) and not adata.is_view:
        # A sparse matrix on disk is a group of three arrays; with h5py alone its rows are read by slice.
        return rows_of(getattr(X, "group", X), Path(adata.filename))[0]
    return X


def _positions(adata: Any, names: Any) -> list[int] | None:
    """The columns of the model's variables; None if they are all there are, in their order."""
    present = [str(name) for name in adata.var_names]
    if present == list(names):
        return None
    where = {name: position for position, name in enumerate(present)}
    missing = [name for name in names if name not in where]
    if missing:
        raise ValueError(
            f"adata lacks {len(missing)} of the {len(names)} variables that the model was fitted with "
            f"({listed(missing)}): the names in adata.var_names must be of the same kind."
        )
    if len(where) < len(present):
        raise ValueError("adata has several variables with the same name: call adata.var_names_make_unique() first.")
    return [where[name] for name in names]


def _columns(X: Any, positions: list[int] | None) -> Any:
    if positions is None:
        return X
    return ChosenColumns(X, positions) if isinstance(X, Rows) else as_numbers(X)[:, positions]


def _facts(model: Any, chosen: str) -> dict[str, Any]:
    """The entry in ``uns`` that describes a model: its method, its data and its parameters."""
    method = next((name for name, kind in METHODS.items() if kind is type(model)), type(model).__name__)
    facts = {"method": method, "use_rep": chosen, "tsee_version": version("tsee")}
    return facts | {name: plain(value) for name, value in model.get_params(deep=False).items()}


def _write(adata: Any, positions: np.ndarray, facts: dict[str, Any], key_added: str | None) -> None:
    adata.obsm[key_added or "X_tsee"] = positions
    # None cannot be written to every .h5ad file.
    adata.uns[key_added or "tsee"] = {"params": {name: value for name, value in facts.items() if value is not None}}
