"""What a fit will do: batches and epochs."""

from tsee.training.plan import resolve_batch_size, resolve_epochs


def test_epochs_follow_the_number_of_steps():
    of_mnist = [resolve_epochs(None, -(-60_000 // batch), 59) for batch in (100, 1024, 10_000)]
    assert of_mnist == [31, 31, 100]
    assert resolve_epochs(None, 977, 977) == 10
    assert resolve_epochs(None, 97_700, 97_700) == 2
    assert resolve_epochs(7, 100, 10) == 7


def test_batches_are_many_and_neither_small_nor_large():
    automatic = {2: 128, 5_000: 128, 10_000: 256, 20_000: 512, 60_000: 1024, 1_000_000: 1024}
    assert {n: resolve_batch_size(None, n, 32) for n in automatic} == automatic
    assert resolve_batch_size(100, 60_000, 32) == 100
