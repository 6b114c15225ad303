"""This process among its peers. Every function named ``all_...``, and `broadcast`, is a collective.

A collective must be called by every process, at the same points and in the same order: one that is skipped on one
process leaves the others waiting. Without peers each collective returns what it was given.

The peers are the processes of `torch.distributed`, however they were started: torchrun, Slurm, Ray Train, Accelerate or
Spark's TorchDistributor.

A process may wait for a slow peer as long as it takes: the first process saves a model, or a share of the rows lies on
a slow disk. So there is no limit on the time of a collective. Instead every process has a thread that counts up a
number in the store of the group, and watches the number of the next process: a peer whose number stands still is frozen
or cut off, and everyone who waits for it gets a `PeerError`. A peer that has ended is noticed by its closed connection.
"""

from tsee.distributed.collectives import (
    all_agree,
    all_gather,
    all_interrupted,
    all_max,
    all_offset,
    all_sum,
    all_sum_together,
    all_sum_with_gradient,
    all_told,
    broadcast,
)
from tsee.distributed.joining import joined_peers
from tsee.distributed.peers import rank, watched_peers, world_size

__all__ = [
    "all_agree",
    "all_gather",
    "all_interrupted",
    "all_max",
    "all_offset",
    "all_sum",
    "all_sum_together",
    "all_sum_with_gradient",
    "all_told",
    "broadcast",
    "joined_peers",
    "rank",
    "watched_peers",
    "world_size",
]
