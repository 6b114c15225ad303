"""A fitted model as one ONNX file, for programs without Python. onnx is imported only when one is written."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import logging
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tsee.exceptions import ExportWarning, ModelError, warn
from tsee.files.atomic import replacing
from tsee.fitted import FittedMap, fitted_map
from tsee.preprocessing import Preprocessing

__all__ = ["export"]

INPUT, OUTPUT = "rows", "positions"
# The most that a file of Protocol Buffers can hold, minus some room for everything that is not weights.
MOST_BYTES = 2**31 - 2**24
# A float32 row may be off by this share of the data's spread before its position differs from the float64 row's.
TOLERATED_ROUNDING = 1e-3


def export(model: Any, path: str | PathLike[str]) -> None:
    """Write the forward pass of a fitted map as one ONNX file.

    The input ``rows`` is raw data, float32 of shape (n, n_features), any number of rows at once; the output
    ``positions`` is float32 of shape (n, n_components): what ``transform`` gives for these rows with
    ``placement="forward"``. Centering, scale and PCA are in the file. The metadata hold ``estimator``,
    ``tsee_version``, ``placement`` and, if the model has them, ``feature_names`` (a JSON list).

    An existing file is replaced at the very end, in one step: if the export fails, it stays as it was.

    Parameters
    ----------
    model : DtSEE, HotSEE, PtSNE, HotSNE or FittedMap
        The fitted model. If it places new rows among its exemplars (``placement="refined"``), only its network is
        exported, and a warning says so.
    path : str or path
        The file to write, such as ``"model.onnx"``.

    Raises
    ------
    ImportError
        If onnx and onnxscript are not installed: ``pip install 'tsee[onnx]'``.
    ModelError
        If the network cannot be expressed in ONNX, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import onnx
    >>> from sklearn.datasets import load_digits
    >>> import tsee
    >>> X = load_digits().data
    >>> see = tsee.DtSEE(max_epochs=1, placement="forward", random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tsee.onnx.export(see, f"{folder}/digits.onnx")
    ...     model = onnx.load(f"{folder}/digits.onnx")
    >>> model.graph.input[0].name, model.graph.output[0].name
    ('rows', 'positions')
    """
    fitted = fitted_map(model)
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ImportError("Export to ONNX needs onnx and onnxscript: pip install 'tsee[onnx]'.") from error
    target = Path(path).resolve()
    if target.is_dir():
        raise ModelError(f"{str(path)!r} is a folder: name a file to export to, such as 'model.onnx'.")
    _warn_of_differences(fitted)
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


class _ForwardPass(nn.Module):
    """From raw float32 rows to positions: the steps of `Preprocessing`, then the network itself."""

    mean: Tensor
    basis: Tensor | None
    divisor: Tensor | None

    def __init__(self, preprocessing: Preprocessing, network: nn.Module):
        super().__init__()
        # float32 as the rows are: `transform` centers float32 rows with it too.
        self.register_buffer("mean", torch.from_numpy(preprocessing.mean.astype(np.float32)))
        self.register_buffer("basis", None if preprocessing.basis is None else torch.from_numpy(preprocessing.basis))
        self.factor = 1 / preprocessing.scale
        spread = preprocessing.spread
        self.register_buffer("divisor", None if spread is None else torch.from_numpy(preprocessing.divisor).float())
        self.network = network

    def forward(self, rows: Tensor) -> Tensor:
        centered = rows - self.mean
        inputs = centered * self.factor if self.divisor is None else centered / self.divisor
        if self.basis is not None:
            inputs = inputs @ self.basis
        positions: Tensor = self.network(inputs).float()
        return positions


def _warn_of_differences(fitted: FittedMap) -> None:
    """Warn if the file's positions differ from the positions that ``transform`` gives."""
    if fitted.placement == "refined":
        warn(
            "The model places new rows among its exemplars (placement='refined'), which an ONNX file cannot do: it "
            "holds the network alone, and gives what transform gives with placement='forward'.",
            ExportWarning,
        )
    preprocessing = fitted.preprocessing
    rounding = np.abs(preprocessing.mean) * float(np.finfo(np.float32).eps) / 2 / preprocessing.divisor
    if rounding.max() > TOLERATED_ROUNDING:
        names = fitted.feature_names or range(len(rounding))
        warn(
            f"The values of feature {names[int(rounding.argmax())]!r} are so large compared with their spread that "
            "float32, which an ONNX file takes, blurs them: subtract a constant before fit and before the file.",
            ExportWarning,
        )


def _exported(fitted: FittedMap) -> bytes:
    """The content of the file."""
    network = copy.deepcopy(fitted.network).cpu()
    module = _ForwardPass(fitted.preprocessing, network).eval()
    size = sum(value.nbytes for value in module.state_dict().values())
    if size > MOST_BYTES:
        raise ModelError(
            f"The weights take {size / 2**30:.1f} GB, and an ONNX file has room for 2: fit a smaller network, or one "
            "with PCA before it (n_inputs)."
        )
    example = (torch.zeros(2, fitted.n_features),)
    try:
        with _quiet():
            # In two steps: on its own, torch.onnx.export falls back to code that holds for some numbers of rows only.
            graph = torch.export.export(module, example, dynamic_shapes=({0: torch.export.Dim("n")},), strict=False)
            program = torch.onnx.export(
                graph,
                dynamo=True,
                verbose=False,
                input_names=[INPUT],
                output_names=[OUTPUT],
                dynamic_shapes=({0: "n"},),
            )
        assert program is not None
        model: Any = program.model_proto
    except Exception as error:  # the exporter raises all kinds of errors
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        reason = (str(cause).strip().splitlines() or [type(cause).__name__])[0].rstrip(". ")
        raise ModelError(
            f"The network ({type(network).__name__}) cannot be exported to ONNX ({reason}): use operations that "
            "torch.onnx knows, in a way that depends neither on the values of the rows nor on their number."
        ) from error
    _forget_how(model.graph)
    said = {"estimator": fitted.method, "tsee_version": version("tsee"), "placement": "forward"}
    if fitted.feature_names is not None:
        said["feature_names"] = json.dumps(fitted.feature_names, ensure_ascii=False)
    for key, value in said.items():
        model.metadata_props.add(key=key, value=value)
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def _forget_how(graph: Any) -> None:
    """Drop torch's notes on the origin of each part: they hold paths of this computer."""
    for part in (*graph.node, *graph.input, *graph.output, *graph.value_info, *graph.initializer):
        del part.metadata_props[:]
    del graph.metadata_props[:]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter: it reports on itself, on libraries that are not needed, and on each step that failed."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.fx")]
    levels = [logger.level for logger in loggers]
    with contextlib.ExitStack() as stack:
        for logger, level in zip(loggers, levels, strict=True):
            stack.callback(logger.setLevel, level)
            logger.setLevel(logging.ERROR)
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        yield
