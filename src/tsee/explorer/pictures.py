"""Pictures of the rows, small and few enough for a page."""

from __future__ import annotations

from typing import Any

import numpy as np

from tsee.explorer.packing import Arrays

__all__ = ["describe_pictures"]

# The most bytes of all pictures together, before compression, which typically shrinks them to a fifth or less.
MAX_BYTES = 16_000_000
MAX_SIDE = 64
# Shades are rounded to multiples of this, which saves bytes and is hardly visible.
SHADE = 8


def describe_pictures(images: Any, n_rows: int) -> tuple[dict[str, Any] | None, Arrays]:
    """Pictures of all rows or, if these are too large, of a random sample of the rows."""
    if images is None:
        return None, {}
    images = images.detach().cpu().numpy() if hasattr(images, "detach") else np.asarray(images)
    if images.ndim not in (3, 4) or len(images) != n_rows or images.dtype.kind not in "biuf":
        raise ValueError(
            f"The 'images' parameter of a page must be numbers of shape ({n_rows}, height, width) or "
            f"({n_rows}, height, width, 3). Got {images.dtype} of shape {images.shape} instead."
        )
    if images.ndim == 4 and images.shape[3] not in (1, 3):
        raise ValueError(
            "The 'images' parameter of a page must have 1 or 3 colors, as its last dimension. "
            f"Got {images.shape[3]} instead."
        )
    shrink = -(-max(images.shape[1:3]) // MAX_SIDE)
    height, width = images.shape[1] // shrink, images.shape[2] // shrink
    colors = images.shape[3] if images.ndim == 4 else 1
    size = max(1, height * width * colors)
    rows = np.arange(n_rows)
    if n_rows * size > MAX_BYTES:
        rows = np.sort(np.random.default_rng(0).choice(n_rows, max(1, MAX_BYTES // size), replace=False))
    chosen = images[rows].reshape(len(rows), *images.shape[1:3], colors)
    chosen = chosen[:, : height * shrink, : width * shrink].astype(np.float32)
    chosen = chosen.reshape(len(rows), height, shrink, width, shrink, colors).mean((2, 4))
    if images.dtype != np.uint8:
        low, high = np.nanmin(chosen), np.nanmax(chosen)
        chosen = np.nan_to_num((chosen - low) * (255 / max(float(high - low), 1e-30)))
    pixels = np.clip(np.round(chosen / SHADE) * SHADE, 0, 255).astype(np.uint8)
    description = {"height": height, "width": width, "colors": colors, "pixels": "pictures"}
    arrays = {"pictures": pixels}
    if len(rows) < n_rows:
        description["rows"] = "pictureRows"
        arrays["pictureRows"] = rows.astype(np.uint32)
    return description, arrays
