"""What a map and its labels must be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tsee.plots import scatter


@pytest.mark.parametrize(
    "change, message",
    [
        ({"Y": [1.0, 2.0]}, r"Y must be numbers in two columns. Got float64 of shape \(2,\) instead"),
        (
            {"Y": np.zeros((2, 3))},
            r"Y must be numbers in two columns. Got float64 of .* instead. A map in the plane has n_components=2",
        ),
        ({"Y": np.empty((0, 2))}, "Y must be numbers in two columns"),
        ({"Y": [["a", "b"], ["c", "d"]]}, "Y must be numbers in two columns. Got <U1"),
        ({"Y": [[0, 0], [0, np.inf]]}, "Y must not contain NaN or infinity"),
        ({"labels": [1]}, r"labels must have one value for each of 2 points. Got shape \(1,\) instead"),
        ({"labels": [[1], [2]]}, r"labels must have one value for each of 2 points. Got shape \(2, 1\) instead"),
        ({"point_size": 0}, "'point_size' parameter of scatter must be > 0. Got 0 instead"),
        (
            {"path": "map.bmp"},
            r"'path' parameter of scatter must end in .png, .svg or .pdf. Got 'map.bmp'",
        ),
        ({"path": Path("map")}, "'path' parameter of scatter must end in .* Got 'map' instead"),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(ValueError, match=message):
        scatter(**{"Y": [[0, 0], [1, 1]]} | change)
