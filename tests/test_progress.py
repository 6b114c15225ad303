"""What is said among progress bars, and to whom."""

import numpy as np
import pytest

from tsee import DtSEE, progress


@pytest.mark.parametrize("looks, verbose, said", [(True, True, True), (True, False, False), (False, True, False)])
def test_a_fit_says_its_inputs_only_to_somebody_who_looks(looks, verbose, said, monkeypatch, capsys):
    monkeypatch.setattr(progress, "_somebody_looks", lambda: looks)
    X = np.random.default_rng(0).normal(size=(40, 130)).astype(np.float32)
    DtSEE(max_epochs=1, refinement=2, random_state=0, verbose=verbose).fit(X)
    output = capsys.readouterr()
    assert not output.out
    assert ("39 principal components of 130 features are the inputs." in output.err) == said
