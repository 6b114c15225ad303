"""What all commands share: help, completion, errors and exit codes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from click.shell_completion import BashComplete

import tsee
import tsee.persistence
from tsee.cli import main


def test_help_fits_a_screen(run):
    lines = run("--help").output.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    first = lines.index("Commands:") + 1
    assert [line.split()[0] for line in lines[first : first + len(main.commands)]] == list(main.commands)
    for line in ("Exit codes: 0 done", "_TSEE_COMPLETE=bash_source"):
        assert line in "\n".join(lines)


@pytest.mark.parametrize("name", main.commands)
def test_every_command_has_help(run, name):
    output = run(name, "--help").output
    assert output.startswith(f"Usage: main {name}")
    assert max(map(len, output.splitlines())) <= 80


def test_help_and_completion_need_no_torch(process):
    code = """
        import os, sys
        from tsee.cli import main
        for arguments, words in (
            (["--help"], None), (["transform", "--help"], None), (["--version"], None),
            ([], "tsee "), ([], "tsee fit "), ([], "tsee fit --label a fl"), ([], "tsee plot m --pl"),
        ):
            if words is not None:
                os.environ.update(_TSEE_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(words.count(" ")))
            try:
                main(arguments, prog_name="tsee")
            except SystemExit as exit:
                assert not exit.code, exit.code
        print([name for name in ("torch", "sklearn", "numpy") if name in sys.modules])
    """
    lines = process(code, stdout=subprocess.PIPE).communicate()[0].decode().splitlines()
    assert lines[-1] == "[]"
    assert {"plain,evaluate", "file,fl", "plain,--placement"} <= set(lines)


def test_a_short_command_leaves_out_what_takes_long(process, model):
    """sympy comes with parts of torch that are for compilers."""
    code = f"""
        import sys
        from tsee.cli import main
        main(["info", {str(model)!r}], standalone_mode=False)
        print([name for name in ("sympy", "matplotlib", "onnx") if name in sys.modules])
    """
    lines = process(code, stdout=subprocess.PIPE).communicate()[0].decode().splitlines()
    assert lines[-1] == "[]"
    assert lines[0].split() == ["method", "dt-see"]


def test_completion(monkeypatch):
    def complete(words):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
        return BashComplete(main, {}, "tsee", "_TSEE_COMPLETE").complete().splitlines()

    assert complete("tsee tr") == ["plain,transform"]
    assert complete("tsee fit --meth") == ["plain,--method"]
    assert complete("tsee fit --method hot") == ["plain,hot-see", "plain,hot-sne"]
    assert complete("tsee fit --n-fa") == ["plain,--n-factors"]
    assert complete("tsee fit --contrast ") == ["plain,sampled", "plain,full", "plain,noise"]
    assert complete("tsee fit fl") == ["file,fl"]
    assert "plain,--n-inputs" not in complete("tsee fit --n-inputs 3 --n-")


def test_as_a_module(process):
    code = "import runpy, sys; sys.argv[1:] = ['--version']; runpy.run_module('tsee', run_name='__main__')"
    output, _ = process(code, stdout=subprocess.PIPE).communicate()
    assert output.decode() == f"tsee, version {tsee.__version__}\n"


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent as on Linux and macOS")
@pytest.mark.parametrize("module", ["click", "torch"])
def test_ctrl_c_while_modules_are_imported_shows_no_traceback(process, folder, tmp_path, module):
    (tmp_path / f"{module}.py").write_text("import time\nprint('importing', flush=True)\ntime.sleep(60)\n")
    code = """
        import sys
        sys.path.insert(0, sys.argv.pop())
        from tsee.__main__ import main
        main()
    """
    given = ("fit", folder / "flowers.csv", "-o", tmp_path / "model", tmp_path)
    started = process(code, *given, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert started.stdout.readline() == b"importing\n"
    started.send_signal(signal.SIGINT)
    output, errors = started.communicate(timeout=30)
    assert (started.returncode, output, errors) == (130, b"", b"Interrupted.\n")


def test_a_pipe_that_is_closed_shows_no_traceback(process, model):
    reading, writing = os.pipe()
    os.close(reading)  # as `head` does when it has seen enough
    started = process("from tsee.__main__ import main; main()", "info", model, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert started.stderr.read() == b""
    assert started.wait(30) == 1


@pytest.mark.parametrize("name", main.commands)
def test_every_command_speaks_json(run, folder, model, tmp_path, name):
    """One object on standard output, and nothing else; `test_demo` runs the one that takes long."""
    if name == "export" and torch.__version__.startswith("2.6."):
        pytest.skip("torch 2.6 cannot trace a search")
    given = {
        "fit": [folder / "flowers.csv", "--dry-run"],
        "transform": [model, folder / "flowers.csv", "-o", tmp_path / "map.csv"],
        "update": [model, folder / "flowers.csv", "-o", tmp_path / "model"],
        "evaluate": [model, folder / "flowers.csv"],
        "plot": [model, "-o", tmp_path / "map.png"],
        "map": [model, folder / "flowers.csv", "-o", tmp_path / "map.html"],
        "info": [model],
        "export": [model, "-o", tmp_path / "model.onnx"],
    }
    assert "--json" in run(name, "--help").stdout
    if name == "demo":
        return
    told = json.loads(run(name, *given[name], "--json").stdout)
    assert isinstance(told, dict)
    if "rows" in told:
        assert told["rows"] == (180 if name == "update" else 90)
    for what in ("map", "picture", "page", "onnx"):
        if told.get(what):
            assert Path(told[what]).is_file()
    if "bytes" in told and name != "info":
        assert told["bytes"] == Path(told.get("page") or told["onnx"]).stat().st_size


def test_wrong_usage(run, folder):
    assert "No such command 'fitt'" in run("fitt", code=2).stderr
    assert "Missing option '-o'" in run("fit", folder / "flowers.csv", code=2).stderr
    assert "No such option" in run("info", folder, "--color", code=2).stderr


def test_errors_in_a_sentence_or_with_their_traceback(run, folder, tmp_path, monkeypatch):
    result = run("info", folder, code=1)
    assert "is not a tsee model" in result.stderr
    with pytest.raises(tsee.ModelError):
        main(["--debug", "info", str(folder)], standalone_mode=False)

    def broken(*given, **named):
        raise RuntimeError("a leak\nin the pipe")

    monkeypatch.setattr(tsee.persistence, "read_files", broken)
    assert "Error: RuntimeError: a leak in the pipe. This is unexpected" in run("info", folder, code=1).stderr
    monkeypatch.setattr(tsee.persistence, "read_files", lambda path: (tmp_path / "none").read_text())
    assert f"No such file or directory: '{tmp_path / 'none'}'." in run("info", folder, code=1).stderr


def test_warnings_are_lines(run, folder, tmp_path, quick):
    result = run("fit", folder / "flowers.csv", "-o", tmp_path / "m", *quick, "--n-exemplars", 1000, "--quiet")
    assert result.stderr.splitlines() == [
        "Warning: --n-exemplars is 1000, but the data hold only 90 rows: 90 exemplars are used."
    ]
    assert result.stdout == ""
