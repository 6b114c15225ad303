"""Maps of more than 100,000 points, which are one image."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.cm import viridis
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image

from tsee import plots
from tsee.plots import scatter
from tsee.plots.canvas import DPI


def pixels(ax: Axes) -> np.ndarray:
    """The image of very many points, which must be all that is drawn."""
    assert len(ax.images) == 1
    assert len(ax.collections) == 0
    return np.asarray(ax.images[0].get_array())


def at(ax: Axes, position: tuple[float, float]) -> np.ndarray:
    """The pixel of the image at a position of the map."""
    image = pixels(ax)
    height, width, _ = image.shape
    left, right, bottom, top = ax.images[0].get_extent()
    x, y = position
    return image[int((y - bottom) / (top - bottom) * height), int((x - left) / (right - left) * width)]


@pytest.fixture
def Y():
    """Two clusters that overlap in part, and a single point far away, the last."""
    Y = np.random.default_rng(0).normal(size=(150_001, 2))
    Y[75_000:, 0] += 2
    Y[-1] = 12, 12
    return Y


@pytest.fixture
def labels(Y):
    return np.repeat(["a", "b"], [75_000, 75_001])


def test_a_million_points_are_one_image_of_the_size_of_the_axes(tmp_path, make_map, texts_of):
    Y, labels = make_map(50_000)
    assert len(Y) == 1_000_000
    ax = scatter(Y, labels % 7, path=tmp_path / "map.svg")
    height, width, _ = pixels(ax).shape
    inches = ax.get_window_extent().size / ax.figure.dpi
    np.testing.assert_allclose([width, height], inches * DPI, atol=1)
    assert (tmp_path / "map.svg").read_text().count("<image") == 1
    assert texts_of(ax) == list("0123456")


def test_from_dots_to_an_image(Y):
    assert len(scatter(Y[:100_000]).collections) == 1
    pixels(scatter(Y[:100_001]))


@pytest.mark.parametrize("kind", ["classes", "amounts", "none"])
def test_a_lone_point_shows_in_the_file(Y, labels, kind, tmp_path):
    given = {"classes": labels, "amounts": Y[:, 0], "none": None}[kind]
    ax = scatter(Y, given, path=tmp_path / "map.png", legend=False)
    with Image.open(tmp_path / "map.png") as file:
        picture = np.asarray(file.convert("RGB")) / 255
    left, bottom = ax.transData.transform(Y[-1]) * DPI / ax.figure.dpi
    around = picture[::-1][int(bottom) - 3 : int(bottom) + 4, int(left) - 3 : int(left) + 4]
    assert around.min() < 0.8  # of the white around it
    assert around[0, 0].min() == 1


def test_denser_is_fuller(Y):
    ax = scatter(Y)
    lone, thin, dense = (at(ax, position)[3] for position in (Y[-1], (1, 2.6), (1, 0)))
    assert 0.35 * 255 < lone <= thin < dense
    assert pixels(ax)[..., 3].min() == 0
    assert pixels(ax)[..., 3].max() == 255


def test_no_class_hides_another(Y, labels):
    """Where both classes are equally dense, the color is between theirs, in any order of the rows."""
    ax = scatter(Y, labels, legend=False)
    turned = scatter(Y[::-1], labels[::-1], legend=False)
    np.testing.assert_allclose(pixels(ax).astype(int), pixels(turned).astype(int), atol=1)
    a, b = (255 * np.array(to_rgb(color)) for color in plots.COLORS[:2])
    between = np.mean([at(ax, (1, y))[:3] for y in np.linspace(-1, 1, 101)], axis=0)
    assert (np.minimum(a, b) + 10 < between).all()
    assert (between < np.maximum(a, b) - 10).all()
    np.testing.assert_allclose(np.median([at(ax, (-1, y))[:3] for y in np.linspace(-1, 1, 9)], axis=0), a, atol=25)


def test_amounts_are_means_on_the_scale_of_the_bar(Y):
    times = 1.7e9 + np.where(np.arange(len(Y)) % 2, 10.0, 20.0) + np.linspace(0, 1, len(Y))
    ax = scatter(Y, times)
    assert len(ax.figure.axes) == 2
    middle = 255 * np.array(viridis(0.5)[:3])
    np.testing.assert_allclose(np.median(pixels(ax)[pixels(ax)[..., 3] > 240][:, :3], axis=0), middle, atol=30)


def test_a_few_labels_among_very_many_points_are_dots_above_them(Y):
    labels = np.full(len(Y), None)
    labels[:50] = "found"
    ax = scatter(Y, labels)
    assert len(ax.images) == len(ax.collections) == 1
    assert len(ax.collections[0].get_offsets()) == 50
    assert ax.collections[0].get_zorder() > ax.images[0].get_zorder()
    visible = ax.images[0].get_array()[ax.images[0].get_array()[..., 3] > 0]
    np.testing.assert_allclose(visible[:, :3] / 255, np.tile(to_rgb(plots.UNLABELED), (len(visible), 1)), atol=0.01)


def test_point_size(Y):
    small, large = (scatter(Y, point_size=size) for size in (0.5, 12))
    assert np.count_nonzero(pixels(small)[..., 3]) < 0.5 * np.count_nonzero(pixels(large)[..., 3])


def test_points_at_one_position(tmp_path):
    ax = scatter(np.ones((100_001, 2)), path=tmp_path / "map.png")
    assert pixels(ax)[..., 3].max() == 255


def test_given_axes_with_limits_of_their_own(Y):
    ax = Figure().add_subplot()
    ax.set(xlim=(3, -1), ylim=(-1, 3))  # a part, mirrored
    scatter(Y, Y[:, 0], ax=ax, legend=False)
    image = pixels(ax)
    x = np.where(image[..., 3] > 150, image[..., 0].astype(int), -1)
    half = image.shape[1] // 2
    assert x[:, :half][x[:, :half] >= 0].mean() > x[:, half:][x[:, half:] >= 0].mean()  # large amounts left
