"""Maps to draw, and what is in a drawing."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from tsee import DtSEE


@pytest.fixture(scope="session")
def make_map():
    """``make_map(n_classes)``: a map of round clusters of 20 points, and their labels."""

    def make_map(n_classes, seed=0, spread=10.0):
        generator = np.random.default_rng(seed)
        labels = np.arange(n_classes).repeat(20)
        centers = spread * generator.normal(size=(n_classes, 2))
        return centers[labels] + generator.normal(size=(len(labels), 2)), labels

    return make_map


@pytest.fixture(scope="session")
def model(digits):
    return DtSEE(max_epochs=4, hidden_layers=(16,), random_state=0).fit(digits[0])


@pytest.fixture(scope="session")
def texts_of():
    """``texts_of(ax)``: the texts on axes."""
    return lambda ax: [text.get_text() for text in ax.texts]


@pytest.fixture(scope="session")
def overlaps():
    """``overlaps(ax)``: how many pairs of texts overlap, when drawn."""

    def overlaps(ax):
        ax.figure.draw_without_rendering()
        boxes = [text.get_window_extent() for text in ax.texts]
        return sum(a.overlaps(b) for a, b in combinations(boxes, 2))

    return overlaps


@pytest.fixture(scope="session")
def colors_of():
    """``colors_of(ax)``: the different colors of the points on axes."""
    return lambda ax: np.unique(ax.collections[0].get_facecolor(), axis=0)
