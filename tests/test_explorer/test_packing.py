"""Arrays as text."""

from __future__ import annotations

import numpy as np

from tsee.explorer.packing import pack, unpack


def test_it_comes_back():
    given = {
        "a": np.arange(5, dtype=np.uint16),
        "b": np.array([], np.float32),
        "c": np.array([0.5, -2, 65504], np.float16),
    }
    description, arrays = unpack(pack({"title": "größe </script>"}, given))
    assert description == {"title": "größe </script>"}
    for name, array in given.items():
        assert arrays[name].dtype == array.dtype
        assert arrays[name].tolist() == array.tolist()
