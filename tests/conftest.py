"""Data that several test files share."""

import os
import socket
import subprocess
import sys
import textwrap
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits


@pytest.fixture(scope="session")
def digits():
    """Digits: 600 rows to fit, 200 to place, with their labels."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))[:800]
    return X[order[:600]], y[order[:600]], X[order[600:]], y[order[600:]]


@pytest.fixture
def anndata():
    """AnnData, which does not yet know the text type of pandas 3."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import anndata

        with pd.option_context("future.infer_string", False):
            yield anndata


# Several real processes on one machine, joined by gloo.
PEER = """
import datetime, os, sys
import torch, torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
rank, size = dist.get_rank(), dist.get_world_size()
"""

# A process that leaves while another still listens to it makes the other fail.
PARTING = "\ndist.barrier()\ndist.destroy_process_group()\n"


def _free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def _start(script: str, size: int, *arguments: object) -> list[subprocess.Popen[str]]:
    """The same script in several processes, in which ``rank``, ``size`` and ``dist`` are known."""
    port = _free_port()
    processes = []
    for rank in range(size):
        environment = {"RANK": rank, "WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        command = [sys.executable, "-c", PEER + textwrap.dedent(script) + PARTING, *map(str, arguments)]
        processes.append(
            subprocess.Popen(
                command,
                env={**os.environ, "OMP_NUM_THREADS": "1", **{name: str(value) for name, value in environment.items()}},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    return processes


def _run(script: str, size: int, *arguments: object, timeout: float = 300) -> list[str]:
    """What each of several processes prints when they run the same script; all of them must finish."""
    processes = _start(script, size, *arguments)
    try:
        outputs = [process.communicate(timeout=timeout) for process in processes]
    finally:
        for process in processes:
            process.kill()
    for process, (_, errors) in zip(processes, outputs, strict=True):
        assert process.returncode == 0, errors
    return [output for output, _ in outputs]


@pytest.fixture
def free_port():
    """A port that processes can meet at."""
    return _free_port()


@pytest.fixture(scope="session")
def peers():
    """``peers.run(script, size, *arguments)``, and ``peers.start``, which does not wait for them."""
    return SimpleNamespace(run=_run, start=_start)
