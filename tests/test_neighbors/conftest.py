"""Data of the tests of searches."""

import pytest
import torch

from tsee.neighbors.cells import MIN_CANDIDATES


@pytest.fixture
def clustered():
    """Rows in uneven clusters of uneven width, more than are searched one by one."""
    generator = torch.Generator().manual_seed(0)
    centers = 3 * torch.randn(40, 10, generator=generator)
    home = (40 * torch.rand(MIN_CANDIDATES, generator=generator).square()).long()
    width = 0.3 + torch.rand(40, 1, generator=generator)
    return centers[home] + width[home] * torch.randn(MIN_CANDIDATES, 10, generator=generator)
