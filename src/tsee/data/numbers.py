"""Arrays, lists, tensors and sparse matrices as numpy arrays or CSR matrices of numbers; anything else is named."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import scipy.sparse
import torch

from tsee.files.sparse import checked_csr

__all__ = ["as_numbers", "as_plain", "narrowed"]

_ADVICE = {
    "c": "Complex data not supported: X has dtype {}. Pass the real and the imaginary parts as columns, for example "
    "np.hstack([X.real, X.imag]).",
    "M": "X holds dates (dtype {}): pass numbers, such as the days since the first one.",
    "m": "X holds durations (dtype {}): divide them by their unit, such as X / np.timedelta64(1, 's').",
    "V": "X has fields (dtype {}) instead of numeric columns: pass "
    "numpy.lib.recfunctions.structured_to_unstructured(X).",
    "text": "X must hold numbers, but it is text (dtype {}): convert it with X.astype(float), or encode it as numbers.",
}
# Objects that numpy would make numbers of: dates and durations count their units, and an imaginary part is lost.
_NOT_REAL = (np.datetime64, np.timedelta64, np.complexfloating)


def as_numbers(X: Any) -> Any:
    """Arrays, lists, tensors and sparse matrices in the form that the checks expect; anything else as it came.

    Masked values, complex numbers, dates, text and objects that are not numbers are refused, and so are sparse matrices
    whose indices do not fit their shape. Types that torch does not have are converted.
    """
    if isinstance(X, torch.Tensor):
        X = _from_tensor(X)
    elif isinstance(X, list | tuple):
        X = _from_list(X)
    if scipy.sparse.issparse(X):
        if X.ndim != 2:
            raise ValueError(
                f"Expected 2D array, got a sparse array of shape {X.shape} instead: pass rows and columns."
            )
        X = checked_csr(X, "X")
        _check_kind(X.dtype)
        return narrowed(X)
    if isinstance(X, np.ndarray) and not isinstance(X, np.matrix):
        X = as_plain(X)
        _check_kind(X.dtype)
        return narrowed(X)
    return X


def as_plain(X: Any, start: int = 0, name: str = "X") -> Any:
    """An array without a mask; ``start`` is the number of its first row. A value that is masked is refused."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    if np.ma.is_masked(X) and X.ndim == 2:
        row, column = np.argwhere(np.ma.getmaskarray(X))[0]
        raise ValueError(
            f"{name} is masked in row {start + row}, column {column}: fill such values in (for example with "
            "sklearn.impute.SimpleImputer) or leave those rows out."
        )
    return X.data


def narrowed(X: Any) -> Any:
    """Objects and numbers of more than 64 bits as float64; a number that is too large for it becomes infinite."""
    if X.dtype.kind == "O":
        return _from_objects(X)
    if X.dtype.kind == "f" and X.dtype.itemsize > 8:
        with np.errstate(over="ignore"):
            return X.astype(np.float64)
    return X


def _from_tensor(X: torch.Tensor) -> np.ndarray:
    if X.is_nested:
        raise TypeError("X is a nested tensor: pass X.to_padded_tensor(0), or one tensor with rows of one length.")
    if X.layout != torch.strided:
        raise TypeError(f"X is a tensor of layout {X.layout}: pass X.to_dense() or a scipy CSR matrix instead.")
    if X.is_quantized:
        raise TypeError(f"X is a quantized tensor ({X.dtype}): pass X.dequantize() instead.")
    if X.device.type == "meta":
        raise TypeError("X is a tensor on the device 'meta', which has no values: pass a tensor with values.")
    if X.is_complex():
        raise ValueError(_ADVICE["c"].format(X.dtype).replace("np.hstack", "torch.hstack"))
    X = X.detach().cpu()
    if X.is_floating_point() and X.dtype not in (torch.float16, torch.float32, torch.float64):
        X = X.float()  # bfloat16 and the types of 8 bits, which numpy does not have
    return X.resolve_neg().numpy()


def _from_list(X: Any) -> np.ndarray:
    try:
        return np.asarray(X)
    except ValueError:
        lengths = [len(row) if hasattr(row, "__len__") else None for row in X]
        odd = next((row for row, length in enumerate(lengths) if length != lengths[0]), None)
        if odd is None:
            raise
        raise ValueError(
            f"The rows of X do not have one length: row {odd} has {lengths[odd]} values, but row 0 has {lengths[0]}. "
            "Pass as many values in each row."
        ) from None


def _check_kind(dtype: Any) -> None:
    if dtype.kind not in "biufO":
        kind = "V" if dtype.names else dtype.kind if dtype.kind in "cMm" else "text"
        raise ValueError(_ADVICE[kind].format(dtype))


def _from_objects(X: Any) -> Any:
    """Python objects as float64; the first that is not a number is named."""
    if not any(isinstance(value, _NOT_REAL) for value in X.flat):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            return X.astype(np.float64)
    for place in np.ndindex(X.shape):
        value = X[place]
        try:
            if isinstance(value, _NOT_REAL) or np.ndim(value):
                raise TypeError(f"the argument must be a string or a real number, not {type(value).__name__!r}")
            np.float64(value)
        except (TypeError, ValueError, OverflowError) as error:
            where = ", ".join(f"{name} {side}" for name, side in zip(("row", "column"), place, strict=False))
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(
                f"X holds {str(value)[:40]!r} in {where}, which is not a number that float64 can hold ({error}): "
                "replace it with one."
            ) from error
    raise ValueError("X holds Python objects that are not numbers: convert it with X.astype(float).")
