"""Networks of the user's own."""

import numpy as np
import pytest
import torch

from tsee import DtSEE, PtSNE


class Squash(torch.nn.Module):
    def __init__(self, n_inputs=64, n_outputs=2):
        super().__init__()
        self.linear = torch.nn.Linear(n_inputs, n_outputs)

    def forward(self, x):
        return 10 * torch.tanh(self.linear(x))


@pytest.mark.parametrize("cls", [DtSEE, PtSNE])
def test_a_network_of_ones_own(cls, digits):
    parameters = dict(n_inputs=None, max_epochs=3, random_state=0)
    if cls is DtSEE:
        parameters["placement"] = "forward"
    network = Squash()
    start = network.linear.weight.detach().clone()
    see = cls(network=network, **parameters).fit(digits[0])
    assert isinstance(see.network_, Squash)
    assert torch.equal(network.linear.weight, start)
    assert not torch.equal(see.network_.linear.weight, start)
    assert np.abs(see.embedding_).max() <= 10
    np.testing.assert_array_equal(cls(network=network, **parameters).fit_transform(digits[0]), see.embedding_)
    with pytest.raises(ValueError, match="'network' parameter must take rows of 64 inputs"):
        cls(network=Squash(50, 2)).fit(digits[0])
    with pytest.raises(ValueError, match="'network' parameter must map rows to n_components=2"):
        cls(network=Squash(64, 3)).fit(digits[0])


def test_a_network_that_draws_at_random_is_seeded_too(digits):
    network = torch.nn.Sequential(torch.nn.Linear(64, 30), torch.nn.Dropout(), torch.nn.Linear(30, 2))
    torch.manual_seed(1)
    state = torch.random.get_rng_state()
    first, second = (
        DtSEE(network=network, n_inputs=None, max_epochs=3, random_state=0).fit_transform(digits[0]) for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_network_of_float64_outputs(digits):
    class Double(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x).double()

    see = DtSEE(network=Double(64, 2), n_inputs=None, max_epochs=2, refinement=3, random_state=0).fit(digits[0])
    assert see.transform(digits[2]).dtype == np.float32
