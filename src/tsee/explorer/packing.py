"""Arrays and their description as one text, which a browser unpacks without a library."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np

__all__ = ["DTYPES", "Arrays", "pack", "unpack"]

Arrays = dict[str, np.ndarray]

# The types that a page reads, all little-endian. The page widens float16, which some browsers do not support.
DTYPES = ("uint8", "uint16", "uint32", "int32", "float16", "float32", "float64")
# Arrays begin at multiples of this many bytes, so that the browser can use them without copying.
ALIGNMENT = 8


def pack(description: dict[str, Any], arrays: Arrays) -> str:
    """Base64 of a zlib stream: the length of a JSON text, that text, and the arrays that it describes.

    The JSON contains ``description`` and, as ``arrays``, the type, offset and length of each array by its name.
    All text is compressed, so that none of it can be taken for HTML.

    >>> _, arrays = unpack(pack({"title": "Pets"}, {"codes": np.array([0, 1], np.uint8)}))
    >>> arrays["codes"]
    array([0, 1], dtype=uint8)
    """
    table: dict[str, tuple[str, int, int]] = {}
    parts: list[bytes] = []
    position = 0
    for name, array in arrays.items():
        assert array.dtype.name in DTYPES, array.dtype
        content = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        table[name] = (array.dtype.name, position, array.size)
        parts.append(content + bytes(-len(content) % ALIGNMENT))
        position += len(parts[-1])
    text = json.dumps({**description, "arrays": table}, ensure_ascii=False, allow_nan=False)
    header = text.encode("utf-8", "replace")  # lone surrogates cannot be encoded
    header += b" " * (-(4 + len(header)) % ALIGNMENT)
    packer = zlib.compressobj(9)
    pieces = [packer.compress(piece) for piece in (len(header).to_bytes(4, "little"), header, *parts)]
    return base64.b64encode(b"".join([*pieces, packer.flush()])).decode("ascii")


def unpack(text: str) -> tuple[dict[str, Any], Arrays]:
    """The description and the arrays that `pack` was given."""
    content = zlib.decompress(base64.b64decode(text))
    start = 4 + int.from_bytes(content[:4], "little")
    description: dict[str, Any] = json.loads(content[4:start])
    table = description.pop("arrays")
    arrays = {
        name: np.frombuffer(content, np.dtype(dtype).newbyteorder("<"), count=size, offset=start + offset)
        for name, (dtype, offset, size) in table.items()
    }
    return description, arrays
