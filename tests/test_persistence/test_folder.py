"""Models survive a save to the bit, and nothing that is not a whole model is loaded."""

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file, save_file

import tsee
import tsee.persistence
from tsee import DtSEE, HotSEE, HotSNE, ModelError, PtSNE
from tsee.cli import main


def fitted(cls, X, **parameters):
    return cls(**{"max_epochs": 2, "random_state": 0, **parameters}).fit(X)


@pytest.fixture
def model(digits, tmp_path):
    see = fitted(DtSEE, digits[0])
    see.save(tmp_path / "model")
    return see, tmp_path / "model"


@pytest.mark.parametrize("cls", [DtSEE, HotSEE, PtSNE, HotSNE])
@pytest.mark.parametrize("normalization", ["layer", "batch", None])
@pytest.mark.parametrize("n_inputs", [None, 20])
def test_a_loaded_model_is_the_saved_one(cls, normalization, n_inputs, digits, tmp_path):
    see = fitted(cls, digits[0], normalization=normalization, n_inputs=n_inputs)
    see.save(tmp_path / "model")
    assert sorted(os.listdir(tmp_path)) == ["model"]
    assert sorted(os.listdir(tmp_path / "model")) == ["config.json", "model.safetensors"]
    again = tsee.load(tmp_path / "model")
    assert type(again) is cls
    np.testing.assert_array_equal(again.transform(digits[2]), see.transform(digits[2]))
    np.testing.assert_array_equal(again.embedding_, see.embedding_)
    assert again.get_params() == see.get_params()
    assert again.history_ == see.history_
    assert (again.n_iter_, again.n_features_in_, again.perplexity_) == (see.n_iter_, 64, see.perplexity_)
    if cls in (DtSEE, HotSEE):
        np.testing.assert_array_equal(again.exemplars_, see.exemplars_)
        np.testing.assert_array_equal(again.exemplar_embedding_, see.exemplar_embedding_)
        assert again.n_exemplars_ == see.n_exemplars_
        np.testing.assert_array_equal(again.exemplar_indices_, see.exemplar_indices_)
    again.save(tmp_path / "again")
    names = ["config.json", "model.safetensors"]
    assert [(tmp_path / "again" / n).read_bytes() for n in names] == [
        (tmp_path / "model" / n).read_bytes() for n in names
    ]


def test_feature_names_and_odd_parameters_survive(digits, tmp_path):
    frame = pd.DataFrame(digits[0], columns=[f"p{i}" for i in range(64)])
    see = fitted(
        DtSEE, frame, hidden_layers=[np.int64(30), 20], perplexity=np.float32(5), optimizer="cg",
        device=torch.device("cpu"), random_state=np.random.RandomState(3),
    )  # fmt: skip
    see.save(tmp_path / "model")
    json.loads((tmp_path / "model" / "config.json").read_text(), parse_constant=pytest.fail)  # strict JSON
    again = tsee.load(str(tmp_path / "model"))
    assert list(again.feature_names_in_) == list(frame.columns)
    pd.testing.assert_frame_equal(
        again.set_output(transform="pandas").transform(frame), see.set_output(transform="pandas").transform(frame)
    )
    with pytest.raises(ValueError, match="feature names"):
        again.transform(frame[frame.columns[::-1]])
    assert np.isnan(again.history_["learning_rate"]).all()
    again.fit(frame)  # a loaded model can be fitted again


def test_a_network_of_ones_own_is_given_again(digits, tmp_path):
    network = torch.nn.Sequential(torch.nn.Linear(64, 30), torch.nn.Tanh(), torch.nn.Linear(30, 2))
    see = fitted(DtSEE, digits[0], network=network)
    see.save(tmp_path / "model")
    with pytest.raises(ModelError, match=r"network of your own \(Sequential\): give .*network="):
        tsee.load(tmp_path / "model")
    again = tsee.load(tmp_path / "model", network=network)
    np.testing.assert_array_equal(again.transform(digits[2]), see.transform(digits[2]))
    with pytest.raises(ModelError, match="is inconsistent"):
        tsee.load(tmp_path / "model", network=torch.nn.Linear(64, 2))


def test_an_unfitted_estimator_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        DtSEE().save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


def damage_config(folder, **changes):
    """As a hand or a fault would change it."""
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))


def flip_a_byte(folder):
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "model.safetensors").write_bytes(content)


def cut(folder):
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])


def another_models_tensors(folder):
    tensors = load_file(folder / "model.safetensors")
    save_file({**tensors, "embedding": tensors["embedding"] + 1}, folder / "model.safetensors")


def pickled(folder):
    (folder / "model.safetensors").write_bytes(pickle.dumps({"a": 1}))


DAMAGE = {
    "no folder": (shutil.rmtree, "is not a tsee model: a folder with config.json and model.safetensors"),
    "no tensors": (lambda f: (f / "model.safetensors").unlink(), "is not a tsee model"),
    "no config": (lambda f: (f / "config.json").unlink(), "is not a tsee model"),
    "not JSON": (lambda f: (f / "config.json").write_text("{"), "config.json .* is damaged"),
    "not text": (lambda f: (f / "config.json").write_bytes(b"\xff\xfe\x00"), "config.json .* is damaged"),
    "a list": (lambda f: (f / "config.json").write_text("[]"), "does not say that it is one"),
    "another format": (lambda f: damage_config(f, format="umap"), "does not say that it is one"),
    "a newer format": (lambda f: damage_config(f, format_version=99), "has format 99, and this tsee reads format 3"),
    "another scale": (lambda f: damage_config(f, scale=9.0), "config.json .* is damaged"),
    "another perplexity": (lambda f: damage_config(f, perplexity="a"), "config.json .* is damaged"),
    "a flipped bit": (flip_a_byte, "model.safetensors .* is damaged"),
    "a cut file": (cut, "model.safetensors .* is damaged"),
    "another model's tensors": (another_models_tensors, "model.safetensors .* is damaged"),
    "a pickle": (pickled, "model.safetensors .* is damaged"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_what_is_not_a_whole_model_is_refused(what, model):
    _, folder = model
    damage, sentence = DAMAGE[what]
    damage(folder)
    with pytest.raises(ModelError, match=sentence) as caught:
        tsee.load(folder)
    assert "\n" not in str(caught.value)


def test_a_save_replaces_a_model_but_nothing_else(model, digits, tmp_path):
    _, folder = model
    other = fitted(DtSEE, digits[0], random_state=1)
    other.save(folder)
    np.testing.assert_array_equal(tsee.load(folder).transform(digits[2]), other.transform(digits[2]))
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(ModelError, match="exists and is not a tsee model"):
        other.save(folder)
    assert (folder / "notes.txt").read_text() == "mine"


def test_a_failed_save_leaves_the_old_model(model, digits, monkeypatch):
    see, folder = model
    other = fitted(DtSEE, digits[0], random_state=1)

    def full_disk(*arguments):
        raise OSError(28, "No space left on device")

    for name in ("fsync", "rename"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, full_disk)
            with pytest.raises(ModelError, match="No space left on device"):
                other.save(folder)
        assert os.listdir(folder.parent) == ["model"]
        np.testing.assert_array_equal(tsee.load(folder).transform(digits[2]), see.transform(digits[2]))


KILLED = """
import os, signal, sys
from dataclasses import replace
import tsee
see = tsee.load(sys.argv[1])
see.map_ = replace(see.map_, embedding=see.embedding_ + 1)
calls = 0
def killer(function):
    def call(*arguments):
        global calls
        calls += 1
        if calls == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments)
    return call
os.fsync, os.rename = killer(os.fsync), killer(os.rename)
see.save(sys.argv[1])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL on this system")
@pytest.mark.parametrize("moment", [1, 2, 3, 4])  # before either fsync, before either rename
def test_a_killed_save_leaves_a_whole_model(moment, model, digits):
    see, folder = model
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(moment)], check=False)
    assert done.returncode == -signal.SIGKILL
    again = tsee.load(folder)
    np.testing.assert_array_equal(again.embedding_, see.embedding_)
    saved = tsee.persistence.read_model(folder)
    assert saved.n_bytes > len(saved.tensors["embedding"]) * 8
    assert saved.saved <= time.time()
    told = CliRunner().invoke(main, ["info", str(folder)])
    assert told.exit_code == 0, told.output
    again.save(folder)  # and the next save cleans up
    assert os.listdir(folder.parent) == ["model"]
    np.testing.assert_array_equal(tsee.load(folder).embedding_, see.embedding_)


def test_a_model_behind_a_link(model, digits, tmp_path):
    see, folder = model
    (tmp_path / "link").symlink_to(folder)
    for _ in range(3):
        see.save(tmp_path / "link")
        np.testing.assert_array_equal(tsee.load(tmp_path / "link").embedding_, see.embedding_)
    assert sorted(os.listdir(tmp_path)) == ["link", "model"]


def test_a_subclass_is_not_saved_as_something_that_cannot_be_loaded(digits, tmp_path):
    class Mine(DtSEE):
        pass

    with pytest.raises(ModelError, match="A Mine cannot be saved"):
        fitted(Mine, digits[0]).save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_a_loaded_model_does_not_depend_on_its_files(model, digits, tmp_path):
    """Neither another model in the same file nor a cut one changes, or ends, a process that has loaded the model."""
    see, folder = model
    loaded = tsee.load(folder)
    other = fitted(DtSEE, digits[0] + 1, random_state=1)
    other.save(tmp_path / "other")
    with open(folder / "model.safetensors", "r+b") as file:  # the same file, as `cp` writes it
        file.write((tmp_path / "other" / "model.safetensors").read_bytes())
        file.truncate()
    np.testing.assert_array_equal(loaded.transform(digits[2]), see.transform(digits[2]))
    with open(folder / "model.safetensors", "r+b") as file:
        file.truncate(100)
    np.testing.assert_array_equal(loaded.transform(digits[2]), see.transform(digits[2]))
    np.testing.assert_array_equal(loaded.embedding_, see.embedding_)


def test_a_model_that_is_replaced_while_it_is_read_is_one_of_the_two(model, digits, monkeypatch):
    see, folder = model
    other = fitted(DtSEE, digits[0], random_state=1)
    read = tsee.persistence.folder._read_files
    left = [other, see]

    def replaced_in_between(path):
        config, tensors, saved = read(path)
        if left:
            left.pop().save(folder)
            return config, (folder / "model.safetensors").read_bytes()[::-1], saved
        return config, tensors, saved

    monkeypatch.setattr(tsee.persistence.folder, "_read_files", replaced_in_between)
    np.testing.assert_array_equal(tsee.load(folder).embedding_, other.embedding_)


def test_a_network_of_ones_own_may_have_any_name_and_attributes(digits, tmp_path):
    class DeepNetwork(torch.nn.Linear):
        config = object()  # JSON cannot hold it

    see = fitted(DtSEE, digits[0], network=DeepNetwork(64, 2))
    see.save(tmp_path / "model")
    with pytest.raises(ModelError, match="network of your own"):
        tsee.load(tmp_path / "model")
    again = tsee.load(tmp_path / "model", network=DeepNetwork(64, 2))
    np.testing.assert_array_equal(again.transform(digits[2]), see.transform(digits[2]))


def test_what_could_not_be_loaded_is_not_saved(model, tmp_path):
    see, folder = model
    before = (folder / "config.json").read_bytes()
    with torch.no_grad():
        next(see.network_.parameters()).fill_(np.nan)
    with pytest.raises(ModelError, match="cannot be saved, since it is not usable .*holds NaN"):
        see.save(folder)
    assert (folder / "config.json").read_bytes() == before


def test_a_link_to_itself_is_no_model(model, tmp_path):
    see, _ = model
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(ModelError, match="is not a tsee model"):
        tsee.load(tmp_path / "loop")
    with pytest.raises(ModelError):
        see.save(tmp_path / "loop")


SAVES = """
import sys
import tsee
see = tsee.load(sys.argv[1])
for _ in range(15):
    see.save(sys.argv[2])
"""


def test_two_processes_save_the_same_model_one_after_the_other(model, digits, tmp_path):
    _, folder = model
    fitted(DtSEE, digits[0], random_state=1).save(tmp_path / "other")
    command = [sys.executable, "-c", SAVES]
    target = str(tmp_path / "target")
    processes = [subprocess.Popen([*command, str(source), target]) for source in (folder, tmp_path / "other")]
    assert [process.wait(timeout=120) for process in processes] == [0, 0]
    assert tsee.load(target).transform(digits[2]).shape == (200, 2)
    assert sorted(os.listdir(tmp_path)) == ["model", "other", "target"]
