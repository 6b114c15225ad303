"""Fits that stop, and the files that they leave."""

import json

import numpy as np
import safetensors.torch

from tsee import DtSEE, HotSEE, PtSNE
from tsee.batches import Store
from tsee.training import checkpoint


def quick(cls=DtSEE, **changes):
    sizes = dict(hidden_layers=(16, 16)) if cls in (DtSEE, PtSNE) else dict(n_factors=20, n_hidden=10)
    refinement = dict(refinement=20) if cls in (DtSEE, HotSEE) else {}
    return cls(max_epochs=6, random_state=0, **{**sizes, **refinement, **changes})


class StoppedError(Exception):
    """The power went out."""


def stop_at(monkeypatch, epoch_number, batch_number):
    """The n-th epoch, over all stages, fails at one of its batches."""
    batches, seen = Store.batches, []

    def counted(self, n_steps, epoch, skip=0):
        seen.append(epoch)
        for i, batch in enumerate(batches(self, n_steps, epoch, skip)):
            if len(seen) == epoch_number and i == batch_number:
                raise StoppedError
            yield batch

    monkeypatch.setattr(Store, "batches", counted)


def read(path):
    """What a state says, and its tensors."""
    with safetensors.safe_open(path, framework="pt") as file:
        return json.loads(file.metadata()["state"]), safetensors.torch.load(path.read_bytes())


def forge(path, content, tensors):
    """A state that somebody wrote who knows the format: its checksum is right."""
    tensors = {name: value.contiguous() for name, value in tensors.items()}
    text = json.dumps(content)
    metadata = {"state": text, "checksum": checkpoint._checksum(text, tensors)}
    safetensors.torch.save_file(tensors, path, metadata)


def with_nan(tensor):
    tensor = tensor.clone()
    tensor.view(-1)[0] = np.nan
    return tensor
