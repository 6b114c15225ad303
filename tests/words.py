"""Sparse rows of text, made up."""

import numpy as np


def rows_of_words(n_rows=1000, n_words=3000, n_topics=100, seed=0):
    """Sparse rows of unit length: some words of the row's topic, and others of any, some more frequent than others."""
    rng = np.random.default_rng(seed)
    frequencies = 1 / np.arange(10, n_words + 10)
    topics = rng.choice(n_words, size=(n_topics, 30), p=frequencies / frequencies.sum())
    X = np.zeros((n_rows, n_words), dtype=np.float32)
    for row, topic in zip(X, rng.integers(n_topics, size=n_rows), strict=True):
        row[rng.choice(topics[topic], rng.integers(3, 10))] = 1
        row[rng.choice(n_words, rng.integers(3, 40), p=frequencies / frequencies.sum())] = 1
    X *= -np.log((X > 0).mean(0).clip(1 / n_rows))
    return X / np.linalg.norm(X, axis=1, keepdims=True)
