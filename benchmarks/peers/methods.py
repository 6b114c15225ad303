"""Run one method on one data set, in its own process: ``python methods.py METHOD FOLDER``.

The folder has ``train.npy`` and ``test.npy``; ``positions-train.npy`` and ``positions-test.npy`` are written to it. The
last line of output is a JSON object with seconds and MiB. Methods have their defaults, except for a seed, the number of
jobs, which is the number of cores, and what their documentation advises: openTSNE gets 50 principal components of more
than 128 features.
This file runs in the environment of the peers, so it imports only the method.
"""

import contextlib
import json
import os
import sys
import threading
import time
from pathlib import Path

import numpy as np

CORES = os.cpu_count()


def tsee(**parameters):
    from tsee import DtSEE

    return DtSEE(random_state=0, **parameters)


def tsee_fast(**parameters):
    from tsee import DtSEE

    return DtSEE.fast(random_state=0, **parameters)


def umap():
    from umap import UMAP

    return UMAP()  # with a seed, it would run in one thread only


def parametric_umap():
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    from umap.parametric_umap import ParametricUMAP

    return ParametricUMAP()


def opentsne():
    from openTSNE import TSNE
    from sklearn.decomposition import PCA

    class Estimator:
        def fit_transform(self, X):
            few = X.shape[1] <= 128
            self.components = PCA(X.shape[1] if few else 50, random_state=0).fit(X)
            self.map = TSNE(n_jobs=CORES, random_state=0).fit(self.components.transform(X))
            # Its transform would center the map in place; new rows would then not fit the positions that were returned.
            self.map -= (self.map.max(0) + self.map.min(0)) / 2
            return np.asarray(self.map)

        def transform(self, X):
            return np.asarray(self.map.transform(self.components.transform(X)))

    return Estimator()


def pacmap():
    from pacmap import PaCMAP

    class Estimator:
        def fit_transform(self, X):
            self.basis = X
            self.map = PaCMAP(random_state=0, save_tree=True)
            return self.map.fit_transform(X.copy())

        def transform(self, X):
            return self.map.transform(X.copy(), basis=self.basis.copy())

    return Estimator()


def paramrepulsor():
    from parampacmap import ParamPaCMAP

    return ParamPaCMAP()  # by its defaults, which are ParamRepulsor


def torchdr():
    import torchdr

    class Estimator:
        def fit_transform(self, X):
            self.basis = X
            self.map = torchdr.UMAP(device="cpu", random_state=0)
            return self.map.fit_transform(X)

        def transform(self, X):
            return self.map.transform(X, X_train=self.basis)

    return Estimator()


def torchdr_encoder():
    """TorchDR trains a network if it is given one; it has no default, so this one has the layers of tsee's."""
    import torch
    import torchdr

    class Estimator:
        def fit_transform(self, X):
            torch.manual_seed(0)
            sizes = (X.shape[1], 256, 256, 256, 2)
            layers = [torch.nn.Linear(a, b) for a, b in zip(sizes[:-1], sizes[1:], strict=True)]
            hidden = [part for layer in layers[:-1] for part in (layer, torch.nn.ReLU())]
            network = torch.nn.Sequential(*hidden, layers[-1])
            self.map = torchdr.UMAP(device="cpu", random_state=0, encoder=network, optimizer="Adam", lr=1e-3)
            return self.map.fit_transform(X)

        def transform(self, X):
            return self.map.transform(X)

    return Estimator()


def sklearn_tsne():
    from sklearn.manifold import TSNE

    return TSNE(n_jobs=CORES, random_state=0)


METHODS = {
    "tsee": tsee,
    "tsee, fast": tsee_fast,
    "PaCMAP": pacmap,
    "umap-learn": umap,
    "openTSNE": opentsne,
    "ParametricUMAP": parametric_umap,
    "ParamRepulsor": paramrepulsor,
    "TorchDR UMAP": torchdr,
    "TorchDR UMAP, encoder": torchdr_encoder,
    "scikit-learn TSNE": sklearn_tsne,
}


def status_mib(field):
    """A field of this process's /proc/self/status, in MiB."""
    return int(Path("/proc/self/status").read_text().partition(field)[2].split()[0]) / 1024


class PeakMemory:
    """The memory when a block starts and its peak while the block runs, sampled; earlier peaks do not count."""

    def __enter__(self):
        self.start = self.peak = status_mib("VmRSS:")
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self):
        while not self.done.wait(0.05):
            self.peak = max(self.peak, status_mib("VmRSS:"))

    def __exit__(self, *error):
        self.done.set()
        self.thread.join()


def main():
    method, folder = sys.argv[1], Path(sys.argv[2])
    X, X_test = np.load(folder / "train.npy"), np.load(folder / "test.npy")
    estimator = METHODS[method]()  # imports are not timed
    result = {}
    with PeakMemory() as memory:
        start = time.perf_counter()
        Y = estimator.fit_transform(X)
        result["fit s"] = time.perf_counter() - start
    result["memory beyond the data MiB"] = memory.peak - memory.start
    np.save(folder / "positions-train.npy", np.asarray(Y, dtype=np.float32))
    print(json.dumps(result), flush=True)
    if not hasattr(estimator, "transform"):
        return
    with contextlib.suppress(NotImplementedError):
        result |= place(estimator, X_test, folder / "positions-test.npy")
    print(json.dumps(result), flush=True)
    if method.startswith("tsee"):
        estimator.set_params(placement="forward")
        forward = place(estimator, X_test, folder / "forward-test.npy")
        np.save(folder / "forward-train.npy", estimator.transform(X))
        result |= {f"forward: {name}": value for name, value in forward.items()}
        print(json.dumps(result), flush=True)


def place(estimator, X_test, path):
    """Save the positions of new rows; return the time that they took together, and the time of one row alone."""
    start = time.perf_counter()
    Y_test = estimator.transform(X_test)
    seconds = time.perf_counter() - start
    np.save(path, np.asarray(Y_test, dtype=np.float32))
    times = []
    for i in range(3 if seconds > 1 else 20):
        start = time.perf_counter()
        estimator.transform(X_test[i : i + 1])
        times.append(time.perf_counter() - start)
    return {"transform s": seconds, "one row ms": 1000 * min(times)}


if __name__ == "__main__":
    main()
