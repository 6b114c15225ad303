"""Writing a fitted map as one ONNX file."""

from __future__ import annotations

import copy
import json
import warnings
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from tsee.exceptions import ExportWarning, ModelError, warn
from tsee.files.atomic import replacing
from tsee.fitted import FittedMap, fitted_map
from tsee.metric import PRECOMPUTED
from tsee.onnx.graph import graph_of, in_blocks
from tsee.onnx.passes import ForwardPass, RefinedPass
from tsee.placement import refined

__all__ = ["export"]

# This version cannot trace a search that depends on its rows (`torch.cond`).
TOO_OLD = "2.6."
# The most that a file of Protocol Buffers can hold, minus some room for everything that is not weights or exemplars.
MOST_BYTES = 2**31 - 2**24
# A float32 row may be off by this share of the data's spread before its position differs from the float64 row's. If it
# is placed among exemplars, it must also be near enough to an exemplar that it equals.
TOLERATED_ROUNDING = {"forward": 1e-3, "refined": refined.ROUNDING**0.5}
# Numbers in a table that is made for a block of rows placed among exemplars: 64 MB, enough for fast products.
BLOCK_NUMBERS = 2**24


def export(model: Any, path: str | PathLike[str], *, placement: str | None = None) -> None:
    """Write a fitted map as one ONNX file, which places rows as ``transform`` does.

    The input ``rows`` is raw data, float32 of shape (n, n_features), any number of rows at once; the output
    ``positions`` is float32 of shape (n, n_components). Everything from centering, scale and PCA to the last step is
    in the file. The metadata hold ``estimator``, ``tsee_version``, ``placement`` and, if the model has them,
    ``feature_names`` (a JSON list).

    With ``placement="refined"`` the file holds the exemplars and their positions, 4 bytes per number, and no network.
    A row that is too far from the data of ``fit`` to be placed gets NaN. With ``placement="forward"`` the file holds
    the network.

    An existing file is replaced at the very end, in one step: if the export fails, it stays as it was.

    Parameters
    ----------
    model : DtSEE, HotSEE, PtSNE, HotSNE or FittedMap
        The fitted model.
    path : str or path
        The file to write, such as ``"model.onnx"``.
    placement : {"refined", "forward"}, optional
        Whether the file places rows among their nearest exemplars, or by the network alone. By default as the model.

    Raises
    ------
    ImportError
        If onnx and onnxscript are not installed (``pip install 'tsee[onnx]'``), or torch is as old as 2.6.
    ModelError
        If the network cannot be expressed in ONNX, the model has no exemplars to place rows among, or the file cannot
        be written.

    Examples
    --------
    >>> import tempfile
    >>> import onnx
    >>> from sklearn.datasets import load_digits
    >>> import tsee
    >>> X = load_digits().data
    >>> see = tsee.DtSEE(max_epochs=1, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tsee.onnx.export(see, f"{folder}/digits.onnx", placement="forward")
    ...     model = onnx.load(f"{folder}/digits.onnx")
    >>> model.graph.input[0].name, model.graph.output[0].name
    ('rows', 'positions')
    """
    fitted = fitted_map(model).placed_by(placement)
    try:
        with warnings.catch_warnings():  # they import sympy, which adds a filter of its own
            import onnx  # noqa: F401
            import onnxscript  # noqa: F401
    except ImportError as error:
        raise ImportError("Export to ONNX needs onnx and onnxscript: pip install 'tsee[onnx]'.") from error
    if torch.__version__.startswith(TOO_OLD):
        raise ImportError(f"Export to ONNX needs a newer torch than {torch.__version__}: pip install --upgrade torch.")
    if fitted.preprocessing.metric == PRECOMPUTED:
        raise ModelError(
            'A map of metric="precomputed" cannot be exported to ONNX, since it has no features to place rows by: fit '
            "features, with the distances as fit(X, neighbors=...)."
        )
    target = Path(path).resolve()
    if target.is_dir():
        raise ModelError(f"{str(path)!r} is a folder: name a file to export to, such as 'model.onnx'.")
    _warn_of_blurred_values(fitted)
    content = _exported(fitted)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        raise ModelError(
            f"The model cannot be exported to {str(path)!r} ({error.strerror or error}), and what was there is "
            "unchanged: choose a folder that you can write to, with room on its disk."
        ) from error


def _warn_of_blurred_values(fitted: FittedMap) -> None:
    """Warn if the file's positions can differ from the positions that ``transform`` gives to float64 rows."""
    preprocessing = fitted.preprocessing
    rounding = np.abs(preprocessing.mean) * float(np.finfo(np.float32).eps) / 2 / preprocessing.divisor
    if rounding.max() > TOLERATED_ROUNDING[fitted.placement]:
        names = fitted.feature_names or range(len(rounding))
        warn(
            f"The values of feature {names[int(rounding.argmax())]!r} are so large compared with their spread that "
            "float32, which an ONNX file takes, blurs them: subtract a constant before fit and before the file.",
            ExportWarning,
        )


def _exported(fitted: FittedMap) -> bytes:
    """The content of the file."""
    model = _refined_model(fitted) if fitted.placement == "refined" else _forward_model(fitted)
    said = {"estimator": fitted.method, "tsee_version": version("tsee"), "placement": fitted.placement}
    if fitted.feature_names is not None:
        said["feature_names"] = json.dumps(fitted.feature_names, ensure_ascii=False)
    if fitted.table is not None:
        said["table"] = json.dumps(fitted.table.to_json(), ensure_ascii=False)
        warn(
            f"The file takes the {fitted.n_features} numbers that a row of the table becomes, not the table: "
            "model.map_.table.encode(table) gives them, with gaps filled. The file's metadata says how columns are "
            "encoded, but not how gaps are filled.",
            ExportWarning,
        )
    for key, value in said.items():
        model.metadata_props.add(key=key, value=value)
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def _refined_model(fitted: FittedMap) -> Any:
    assert fitted.exemplars is not None
    module = RefinedPass(fitted.preprocessing, fitted.exemplars).eval()
    _check_size(module, "exemplars", 'export the network alone (placement="forward"), or fit fewer exemplars')
    most_rows = max(1, BLOCK_NUMBERS // module.numbers_per_row)
    return in_blocks(module, fitted.n_features, fitted.n_components, most_rows)


def _forward_model(fitted: FittedMap) -> Any:
    network = copy.deepcopy(fitted.network).cpu()
    module = ForwardPass(fitted.preprocessing, network).eval()
    _check_size(module, "weights", "fit a smaller network, or one with PCA before it (n_inputs)")
    try:
        return graph_of(module, fitted.n_features)
    except Exception as error:  # the exporter raises all kinds of errors
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        reason = (str(cause).strip().splitlines() or [type(cause).__name__])[0].rstrip(". ")
        raise ModelError(
            f"The network ({type(network).__name__}) cannot be exported to ONNX ({reason}): use operations that "
            "torch.onnx knows, in a way that depends neither on the values of the rows nor on their number."
        ) from error


def _check_size(module: nn.Module, what: str, way_out: str) -> None:
    size = sum(value.nbytes for value in module.state_dict().values())
    if size > MOST_BYTES:
        raise ModelError(f"The {what} take {size / 2**30:.1f} GB, and an ONNX file has room for 2: {way_out}.")
