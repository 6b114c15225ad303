"""Positions by one pass of the network: block by block, in float32, each row by itself."""

import pytest
import torch
from torch import nn

from tsee.placement.forward import FORWARD_ROWS, forward_positions


def draw(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


@pytest.mark.parametrize("n", [1, 33, FORWARD_ROWS, 2 * FORWARD_ROWS + 5])
def test_blocks_of_rows_equal_one_pass_of_all(network, n):
    inputs = draw(n, 4)
    positions = forward_positions(network, inputs)
    assert not positions.requires_grad
    torch.testing.assert_close(positions, network(inputs).detach())
    for i in (0, n // 2, n - 1):
        assert torch.equal(forward_positions(network, inputs[i : i + 1])[0], positions[i])


def test_no_more_rows_pass_the_network_together_than_a_block_has():
    seen = []

    class Counting(nn.Module):
        """A network without parameters that counts its rows."""

        def forward(self, rows):
            seen.append(len(rows))
            return rows[:, :2]

    inputs = draw(2 * FORWARD_ROWS + 5, 4)
    assert torch.equal(forward_positions(Counting(), inputs), inputs[:, :2])
    assert seen == [FORWARD_ROWS, FORWARD_ROWS, 32]


def test_positions_are_float32_whatever_the_network_is(network):
    inputs = draw(5, 4).double()
    positions = forward_positions(network.double(), inputs)
    assert positions.dtype == torch.float32
    torch.testing.assert_close(positions, network(inputs).float())
