"""What novelty is measured against after an update."""

import numpy as np
import torch

from tsee import DtSEE
from tsee.growing.reference import _mixed, _quantiles


def test_quantiles_keep_the_ends():
    values = torch.arange(100.0)
    assert _quantiles(values, 3).tolist() == [0, 50, 99]
    assert _quantiles(values, 0).tolist() == []


def test_a_mixture_has_both_in_proportion():
    mixed = _mixed(torch.zeros(100), torch.ones(7), 0.75)
    assert mixed.tolist() == [0] * 75 + [1] * 25


def test_known_rows_stay_as_usual_as_they_were_and_a_new_kind_becomes_usual():
    generator = np.random.default_rng(0)
    middles = 12 * generator.normal(size=(3, 10))
    kinds = [middle + generator.normal(size=(1500, 10)) for middle in middles]
    see = DtSEE(max_epochs=1, refinement=20, random_state=0).fit(np.concatenate([kinds[0][:1000], kinds[1][:1000]]))
    grown = see.update(np.concatenate([kinds[0][1000:1300], kinds[2][:1000]]))
    assert see.novelty(kinds[2][1000:]).min() == 1
    for kind in kinds:
        assert 0.4 < grown.novelty(kind[1300:]).mean() < 0.6
    strange = 12 * generator.normal(size=(10, 10))
    assert (grown.novelty(strange) == 1).all()
