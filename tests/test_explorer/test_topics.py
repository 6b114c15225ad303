"""Names of parts of the map, coarse and fine."""

from __future__ import annotations

import numpy as np
import pytest

from tsee.explorer.columns import columns_of
from tsee.explorer.topics import describe_topics, parts_of


@pytest.fixture(scope="module")
def fields():
    """Two fields of two subjects each, 100 texts per subject, and where they are."""
    generator = np.random.default_rng(0)
    middles = np.array([[0.1, 0.1], [0.16, 0.1], [0.9, 0.9], [0.84, 0.9]]).repeat(100, 0)
    words = np.array(["bread", "soup", "rock", "opera"]).repeat(100)
    over = np.array(["cooking", "cooking", "music", "music"]).repeat(100)
    texts = [f"the {word} of {field} no. {i}" for i, (word, field) in enumerate(zip(words, over, strict=True))]
    return middles + 0.006 * generator.normal(size=(400, 2)), np.array(texts, object), over


def topics(positions, columns):
    described, _ = columns_of(columns)
    return describe_topics(positions, columns, described)


def test_each_point_is_on_the_hill_it_would_climb(fields):
    positions, _, over = fields
    parts, n_parts = parts_of(positions, 14)
    assert n_parts == 2
    assert len({*zip(parts.tolist(), over, strict=True)}) == 2
    parts, n_parts = parts_of(positions, 3.5)
    assert n_parts == 4
    assert len({*zip(parts.tolist(), np.arange(400) // 100, strict=True)}) == 4


def test_words_that_set_a_part_apart_are_its_name_and_finer_parts_have_finer_names(fields):
    positions, texts, _ = fields
    found = topics(positions, {"title": texts})
    coarse = [(name.split(", ")[0], count) for level, _, _, count, name, _ in found if level == 0]
    assert sorted(coarse) == [("cooking", 200), ("music", 200)]
    fine = {name.split(", ")[0] for level, *_, name, _ in found if level > 0}
    assert {"bread", "soup", "rock", "opera"} <= fine | {word for _, *_, name, _ in found for word in name.split(", ")}
    assert not any("the" in name.split(", ") or "of" in name.split(", ") for *_, name, _ in found)
    for _, x, y, _, name, _ in found:
        if "bread" in name:
            assert np.hypot(x - 0.1, y - 0.1) < 0.08


def test_values_of_columns_are_names(fields):
    positions, _, over = fields
    found = topics(positions, {"field": over, "number": np.arange(400) // 100})
    assert [0, "cooking", 0] in [[level, name, column] for level, *_, name, column in found]
    assert {"number 0", "number 1", "number 2", "number 3"} <= {name for *_, name, column in found if column == 1}


def test_short_names_of_rows_stand_for_their_surroundings(fields):
    positions, _, _ = fields
    towns = np.array([f"Town-{i:03d}" for i in range(400)], object)
    found = topics(positions, {"town": towns})
    assert found
    for level, x, y, _, name, _ in found:
        assert level > 0
        town = int(name[5:])
        assert np.hypot(*(positions[town] - [x, y])) < 0.05


@pytest.mark.parametrize("columns", [{}, {"weight": np.linspace(0, 1, 400)}, {"same": ["a"] * 400}])
def test_without_words_there_are_no_names(fields, columns):
    assert topics(fields[0], {name: np.asarray(values) for name, values in columns.items()}) == []
