"""Pictures of rows."""

from __future__ import annotations

import re

import numpy as np

from tsee.explorer import write_map_page
from tsee.explorer.packing import unpack


def test_pictures_are_bounded(fitted, clusters, tmp_path, monkeypatch):
    monkeypatch.setattr("tsee.explorer.pictures.MAX_BYTES", 20 * 64 * 48 * 3)
    images = np.random.default_rng(0).integers(0, 256, (120, 128, 96, 3), dtype=np.uint8)
    content = write_map_page(fitted, clusters[0], tmp_path / "map.html", images=images).read_text()
    _, arrays = unpack(re.search(r'id="payload">([^<]+)<', content)[1])
    assert arrays["pictures"].size == 20 * 64 * 48 * 3
    small = arrays["pictures"].reshape(20, 64, 48, 3)
    halved = images[arrays["pictureRows"]].reshape(20, 64, 2, 48, 2, 3).mean((2, 4))
    assert np.abs(small - halved).max() <= 4.5
