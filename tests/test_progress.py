"""What is said among progress bars, and to whom."""

import sys
from types import SimpleNamespace

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


def test_a_program_that_imports_what_notebooks_need_is_no_notebook(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ipykernel", SimpleNamespace())
    for shell, looks in ((None, False), (SimpleNamespace(), False), (SimpleNamespace(kernel=1), True)):
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda shell=shell: shell))
        assert progress._in_notebook() == looks
