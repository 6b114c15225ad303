"""A model whose checksums are right, but whose parts do not fit together, is refused before anything is built."""

import contextlib
import hashlib
import json
import math

import numpy as np
import pytest
import safetensors.torch
import torch
from click.testing import CliRunner

import tsee
import tsee.fitted
from tsee import ModelError
from tsee.cli import main
from tsee.exceptions import RowError
from tsee.persistence.folder import _config_checksum


def read(folder):
    """The configuration and the tensors of a model."""
    config = json.loads((folder / "config.json").read_text())
    return config, safetensors.torch.load((folder / "model.safetensors").read_bytes())


def write(folder, config, tensors):
    """Write both with checksums that fit. ``tensors`` may be bytes, for a file that safetensors would not write."""
    content = tensors if isinstance(tensors, bytes) else safetensors.torch.save(tensors)
    config = {**config, "checksum": hashlib.sha256(content).hexdigest()}
    config["config_checksum"] = _config_checksum(config)
    folder.mkdir(exist_ok=True)
    (folder / "model.safetensors").write_bytes(content)
    (folder / "config.json").write_text(json.dumps(config))


def refused(folder, match):
    """Both the library and the command refuse the model, in one sentence."""
    with pytest.raises(ModelError, match=match) as caught:
        tsee.load(folder)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600
    # `tsee info` describes what the files say, and refuses what it cannot describe.
    said = CliRunner().invoke(main, ["info", str(folder)])
    assert said.exit_code == 0 or len(said.output.splitlines()) == 1, said.output
    assert "This is unexpected" not in said.output


CONFIGS = {
    "no such method": (dict(method="os.system"), "'os.system' is a method that .* does not know"),
    "a list as method": (dict(method=["DtSEE"]), "does not know"),
    "another method": (dict(method="PtSNE"), "a PtSNE has no exemplars"),
    "the network of another": (dict(method="HotSEE"), "unexpected keyword argument 'activation'"),
    "dimensions as text": (dict(n_components="2"), "'n_components' must be an integer"),
    "no dimensions": (dict(n_components=0), "'n_components' must be an integer"),
    "another number of dimensions": (dict(n_components=3), "has shape"),
    "true features": (dict(n_features=True), "'n_features' must be an integer"),
    "more features": (dict(n_features=65), "'preprocessing.mean' has shape"),
    "endless features": (dict(n_features=10**400), "'n_features' must be an integer"),
    "too few names": (dict(feature_names=["a"]), "'feature_names' and 'n_features' differ"),
    "names that are numbers": (dict(feature_names=[1] * 64), "'feature_names' must be a list of names"),
    "an endless scale": (dict(scale=10**400), "'scale' must be a number above 0"),
    "half a character": (dict(feature_names=["\ud800"] * 64), "text that UTF-8 can hold"),
    "half a character as version": (dict(tsee_version="\ud800"), "'tsee_version' must be text"),
    "an endless parameter": (dict(parameters={"learning_rate": 10**400}), "The 'learning_rate' parameter"),
    "an endless text": (dict(parameters={"seeding": "x" * 10**6}), "The 'seeding' parameter of DtSEE must be"),
    "no scale": (dict(scale=None), "'scale' must be a number above 0"),
    "a scale of 0": (dict(scale=0), "'scale' must be a number above 0"),
    "a scale beyond all data": (dict(scale=1e308), "'scale' must be between"),
    "an infinite scale": (dict(scale=math.inf), "'scale' must be a number above 0"),
    "no perplexity": (dict(perplexity=math.nan), "'perplexity' must be at least 1"),
    "another placement": (dict(placement="beside"), "'placement' must be one of"),
    "no history": (dict(history=None), "'history' must hold"),
    "half a history": (
        dict(history=dict(loss=[1.0, 2.0], learning_rate=[0.1], refined=[False], complete=True)),
        "differ in length",
    ),
    "a loss of NaN": (
        dict(history=dict(loss=[math.nan], learning_rate=[None], refined=[False], complete=True)),
        "the losses in 'history'",
    ),
    "an unknown parameter": (dict(parameters={"a": 1}), "unexpected keyword argument 'a'"),
    "a parameter out of range": (dict(parameters={"perplexity": -1}), "The 'perplexity' parameter of DtSEE must be"),
    "parameters in a list": (dict(parameters=[]), "'parameters' must be named"),
    "one more entry": (dict(more=1), "it must have the entries of a model"),
    "no network": (dict(network=None), "'network' must have a kind"),
    "a network whose kind clears the screen": (dict(network={"kind": "\x1b[2J\na", "config": None}), "kind of the net"),
    "a network without a kind": (dict(network={"kind": 3, "config": {}}), "the kind of the network"),
    "a network without layers": (dict(network={"kind": "DeepNetwork", "config": None}), "has other entries"),
}


@pytest.mark.parametrize("what", CONFIGS)
def test_a_forged_configuration(what, saved_models, tmp_path):
    changes, match = CONFIGS[what]
    config, tensors = read(saved_models / "DtSEE")
    write(tmp_path / "model", {**config, **changes}, tensors)
    refused(tmp_path / "model", match)


NETWORKS = {
    "other inputs": (dict(n_inputs=21), "the network takes 21 inputs instead of 20"),
    "other dimensions": (dict(n_components=3), "the network's 'n_components' differs"),
    "layers as text": (dict(hidden_layers="86"), "'hidden_layers' must be integers"),
    "a fractional layer": (dict(hidden_layers=[8.5, 6]), "'hidden_layers' must be integers"),
    "another activation": (dict(activation="exec"), "unknown activation"),
    "an activation that is a list": (dict(activation=["relu"]), "unknown activation"),
    "another normalization": (dict(normalization="no"), "unknown normalization"),
    "layers of other sizes": (dict(hidden_layers=[6, 6]), "is not as the config"),
    "places that it does not have": (dict(n_places=5), "is not as the config"),
    "no places": (dict(n_places=0), "'n_places' must be an integer of at least 1"),
    "ten million places": (dict(n_places=10**7), "more weights than the file"),
    "ten million units": (dict(hidden_layers=[10**7, 10**7]), "more weights than the file"),
    "a hundred thousand layers": (dict(hidden_layers=[1] * 10**5), "more layers than the file"),
}


@pytest.mark.parametrize("what", NETWORKS)
def test_a_forged_network(what, saved_models, tmp_path):
    changes, match = NETWORKS[what]
    config, tensors = read(saved_models / "DtSEE")
    network = {"kind": "DeepNetwork", "config": {**config["network"]["config"], **changes}}
    write(tmp_path / "model", {**config, "network": network}, tensors)
    refused(tmp_path / "model", match)


def test_a_bomb_is_refused_before_anything_is_built(saved_models, tmp_path, monkeypatch):
    config, tensors = read(saved_models / "HotSEE")
    network = {"kind": "HighOrderNetwork", "config": {**config["network"]["config"], "n_factors": 10**12}}
    write(tmp_path / "model", {**config, "network": network}, tensors)
    monkeypatch.setitem(tsee.fitted.NETWORKS, "HighOrderNetwork", lambda **config: pytest.fail("it was built"))
    refused(tmp_path / "model", "more weights than the file")


@pytest.mark.parametrize("text", ["[" * 10**5 + "]" * 10**5, '{"a":' * 10**5, '{"format": ' + "9" * 10**5 + "}"])
def test_deep_and_endless_json(text, saved_models, tmp_path):
    config, tensors = read(saved_models / "DtSEE")
    write(tmp_path / "model", config, tensors)
    (tmp_path / "model" / "config.json").write_text(text)
    refused(tmp_path / "model", "config.json in .* is damaged|not a tsee model")


def test_a_configuration_of_gigabytes_is_not_read(saved_models, tmp_path):
    config, tensors = read(saved_models / "DtSEE")
    write(tmp_path / "model", config, tensors)
    with open(tmp_path / "model" / "config.json", "r+b") as file:
        file.truncate(2**40)  # a hole: it takes no room
    refused(tmp_path / "model", "config.json in .* is damaged: it has 1,099,511,627,776 bytes")


def change_of(name, function):
    def changed(tensors):
        return {**tensors, name: function(tensors[name])}

    return changed


def without(*names):
    return lambda tensors: {name: value for name, value in tensors.items() if name not in names}


def set_first(value):
    def changed(tensor):
        tensor = tensor.clone()
        tensor.view(-1)[0] = value
        return tensor

    return changed


WEIGHT = "network.layers.0.weight"
TENSORS = {
    "no mean": (without("preprocessing.mean"), "lacks 'preprocessing.mean'"),
    "a single mean": (change_of("preprocessing.mean", torch.Tensor.float), "has type torch.float32"),
    "means in rows": (change_of("preprocessing.mean", lambda t: t[:, None]), "'preprocessing.mean' has shape"),
    "a mean of NaN": (change_of("preprocessing.mean", set_first(math.nan)), "'preprocessing.mean' holds NaN"),
    "a basis of another size": (change_of("preprocessing.basis", lambda t: t[:, :7]), "has shape"),
    "a margin of another size": (lambda tensors: {**tensors, "preprocessing.margin": torch.zeros(3)}, "has shape"),
    "no exemplars": (without("exemplars.inputs"), "lacks exemplars"),
    "no positions": (without("exemplars.positions"), "lacks exemplars"),
    "no novelty": (without("novelty.distances"), "lacks exemplars"),
    "fewer positions": (change_of("exemplars.positions", lambda t: t[1:]), "'exemplars.positions' has shape"),
    "no rows": (change_of("exemplars.positions", lambda t: t[:0]), "'exemplars.positions' has shape"),
    "positions of infinity": (change_of("exemplars.positions", set_first(math.inf)), "holds NaN or infinity"),
    "indices below 0": (change_of("exemplars.indices", lambda t: t - 1), "must ascend from 0"),
    "indices twice": (change_of("exemplars.indices", lambda t: t // 2), "must ascend from 0"),
    "novelty out of order": (change_of("novelty.distances", lambda t: t.flip(0)), "must ascend from 0"),
    "an embedding in a volume": (
        change_of("embedding", lambda t: torch.cat([t, t[:, :1]], 1)),
        "'embedding' has shape",
    ),
    "a double embedding": (change_of("embedding", torch.Tensor.double), "'embedding' has type torch.float64"),
    "one more tensor": (lambda tensors: {**tensors, "more": torch.zeros(3)}, "'more' is not part of a model"),
    "a weight less": (without(WEIGHT), "more weights than the file"),
    "a weight more": (lambda tensors: {**tensors, "network.more": torch.zeros(3)}, "is not as the config"),
    "another weight": (change_of(WEIGHT, lambda t: t[:, :-1].contiguous()), "is not as the config"),
    "a weight of NaN": (change_of(WEIGHT, set_first(math.nan)), "holds NaN or infinity"),
    "integer weights": (change_of(WEIGHT, torch.Tensor.int), "is not as the config"),
}


@pytest.mark.parametrize("what", TENSORS)
def test_forged_tensors(what, saved_models, tmp_path):
    change, match = TENSORS[what]
    config, tensors = read(saved_models / "DtSEE")
    write(tmp_path / "model", config, {name: value.contiguous() for name, value in change(tensors).items()})
    refused(tmp_path / "model", match)


def test_exemplars_of_a_method_that_has_none(saved_models, tmp_path):
    _, exemplars = read(saved_models / "DtSEE")
    config, tensors = read(saved_models / "PtSNE")
    tensors["exemplars.indices"] = exemplars["exemplars.indices"]
    write(tmp_path / "model", config, tensors)
    refused(tmp_path / "model", "a PtSNE has no exemplars")


def test_a_spread_of_0(saved_models, tmp_path):
    config, tensors = read(saved_models / "centers")
    tensors["preprocessing.spread"][3] = 0
    write(tmp_path / "model", config, tensors)
    refused(tmp_path / "model", "'preprocessing.spread' must be above 0")


def test_a_margin_below_0(saved_models, tmp_path):
    config, tensors = read(saved_models / "DtSEE")
    tensors["preprocessing.margin"] = torch.full(tensors["exemplars.inputs"].shape[1:], -1.0)
    write(tmp_path / "model", config, tensors)
    refused(tmp_path / "model", "'preprocessing.margin' must not be below 0")


def test_a_header_that_lies(saved_models, tmp_path):
    config, _ = read(saved_models / "DtSEE")
    content = (saved_models / "DtSEE" / "model.safetensors").read_bytes()
    n = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + n])
    header["embedding"]["dtype"] = "F99"
    changed = json.dumps(header).encode()
    write(tmp_path / "model", config, len(changed).to_bytes(8, "little") + changed + content[8 + n :])
    refused(tmp_path / "model", "inconsistent")


# For each kind of model.
MUTATIONS = 50


def mutated(rng, value):
    """Another value instead of ``value``, or near it."""
    odd = [None, True, -1, 0, 1, 2**62, 10**30, 1e308, math.nan, math.inf, "", "a", "\ud800", [], [1], {}, {"a": 1}]
    if isinstance(value, dict) and value and rng.random() < 0.8:
        name = str(rng.choice(sorted(value)))
        changed = {key: mutated(rng, item) if key == name else item for key, item in value.items()}
        if rng.random() < 0.1:
            del changed[name]
        return changed
    if isinstance(value, list) and value and rng.random() < 0.8:
        changed = list(value)
        i = int(rng.integers(len(value)))
        changed[i : i + 1] = [[], [mutated(rng, value[i])], [value[i], value[i]]][rng.integers(3)]
        return changed
    return odd[rng.integers(len(odd))]


def mutated_tensor(rng, tensor):
    choice = rng.integers(8)
    if choice == 0:
        return (
            set_first([math.nan, math.inf, -1e30, 1e30][rng.integers(4)])(tensor)
            if tensor.is_floating_point()
            else -tensor
        )
    if choice == 1:
        return tensor.to([torch.float16, torch.float64, torch.int64, torch.bool, torch.bfloat16][rng.integers(5)])
    if choice == 2:
        return tensor[:-1]
    if choice == 3:
        return tensor[:0]
    if choice == 4:
        return torch.cat([tensor, tensor[-1:]])
    if choice == 5:
        return tensor[None]
    if choice == 6:
        return tensor.reshape(-1)
    return tensor.flip(0)


@pytest.mark.parametrize("kind", ["DtSEE", "centers", "own", "HotSEE", "PtSNE", "HotSNE"])
def test_random_forgeries_are_refused_or_usable(kind, saved_models, tmp_path, digits):
    """Whatever was changed, a model is refused with a ModelError, or it places rows and describes itself.

    With other numbers, which are as good as any, rows may be too far away, and are refused by their number.
    """
    rng = np.random.default_rng(0)
    own = torch.nn.Sequential(torch.nn.Linear(64, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)) if kind == "own" else None
    outcomes = {"refused": 0, "usable": 0}
    for _ in range(MUTATIONS):
        config, tensors = read(saved_models / kind)
        if rng.random() < 0.5:
            config = mutated(rng, config)
            if not isinstance(config, dict):
                continue
        else:
            name = str(rng.choice(sorted(tensors)))
            tensors[name] = mutated_tensor(rng, tensors[name]).contiguous()
        write(tmp_path / "model", config, tensors)
        try:
            see = tsee.load(tmp_path / "model", network=own)
        except ModelError:
            outcomes["refused"] += 1
            continue
        with contextlib.suppress(RowError):
            assert np.isfinite(see.transform(digits[0][:3])).all()
        said = CliRunner().invoke(main, ["info", str(tmp_path / "model")])
        assert said.exit_code == 0, said.output
        outcomes["usable"] += 1
    assert outcomes["refused"] > outcomes["usable"] > 0
