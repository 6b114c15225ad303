"""``tsee info`` and ``tsee export``: the description of a model, and a file for other programs."""

import json
import shutil

import onnx
import pytest
import torch

import tsee
import tsee.persistence


def test_info(run, model):
    lines = dict(line.split(maxsplit=1) for line in run("info", model).stdout.splitlines())
    assert lines["method"] == "dt-see"
    assert lines["rows"] == lines["exemplars"] == "90"
    assert lines["features"] == "4, 'width' to 'weight'"
    assert lines["inputs"] == "4"
    assert lines["parameters"] == "hidden_layers=[8], max_epochs=1, random_state=0, refinement=5"
    assert lines["placement"] == tsee.load(model).map_.placement
    assert lines["saved"].endswith(f" by tsee {tsee.__version__}")


def test_info_as_json(run, model, tmp_path):
    told = json.loads(run("info", model, "--json").stdout)
    see = tsee.load(model)
    assert told["feature_names"] == list(see.feature_names_in_)
    assert told["loss"] == see.history_["loss"][-1]
    assert told["perplexity"] == see.perplexity_
    assert told["bytes"] == sum(path.stat().st_size for path in model.iterdir())
    # A method without exemplars, and a network that only its owner has.
    X = torch.rand(40, 3)
    tsee.PtSNE(network=torch.nn.Linear(3, 2), max_epochs=1, random_state=0).fit(X).save(tmp_path / "own")
    told = json.loads(run("info", tmp_path / "own", "--json").stdout)
    assert (told["method"], told["network"], told["exemplars"], told["placement"]) == (
        "pt-sne",
        "Linear",
        None,
        "forward",
    )
    assert told["feature_names"] is None
    assert "give such a module" in run("transform", tmp_path / "own", tmp_path, "-o", tmp_path / "a.csv", code=1).stderr


def test_a_model_without_positions_of_its_rows(run, model_without_positions):
    assert "embedding" not in tsee.persistence.read_model(model_without_positions).tensors
    lines = dict(line.split(maxsplit=1) for line in run("info", model_without_positions).stdout.splitlines())
    assert lines["rows"] == "unknown: their positions were not kept"
    assert lines["dimensions"] == "2"
    told = json.loads(run("info", model_without_positions, "--json").stdout)
    assert (told["rows"], told["dimensions"]) == (None, 2)


def test_damaged_models(run, model, tmp_path):
    copy = shutil.copytree(model, tmp_path / "model")
    (copy / "model.safetensors").write_bytes((model / "model.safetensors").read_bytes()[:-1])
    assert "model.safetensors in" in run("info", copy, code=1).stderr
    (copy / "config.json").write_text("{")
    assert "config.json in" in run("info", copy, code=1).stderr


@pytest.mark.skipif(torch.__version__.startswith("2.6."), reason="torch 2.6 cannot trace a search")
def test_export(run, model, tmp_path):
    placements = []
    for options in ([], ["--placement", "forward"]):
        run("export", model, "-o", tmp_path / "model.onnx", *options)
        said = {entry.key: entry.value for entry in onnx.load(tmp_path / "model.onnx").metadata_props}
        placements.append(said["placement"])
    assert placements == ["refined", "forward"]


def test_a_save_that_was_cut_off_between_its_two_renames(run, model, tmp_path):
    """The old model is then under its temporary name: `load` finds it, and so does `info`."""
    copy = shutil.copytree(model, tmp_path / "model")
    expected = run("info", copy, "--json").stdout
    copy.rename(tmp_path / ".model.replaced")
    assert run("info", copy, "--json").stdout == expected
    assert tsee.load(copy).map_.method == "DtSEE"
