"""``tsee fit`` started by torchrun, stopped, killed, and resumed: real processes throughout."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.datasets import load_digits

import tsee
from tsee.training.checkpoint import FILE_NAME

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are started and killed as on Linux")
OPTIONS = ["--hidden-layers", "32,32", "--refinement", "30", "--random-state", "0"]


@pytest.fixture
def often(tmp_path):
    """The command with a checkpoint every moment, as a script."""
    script = tmp_path / "tsee_often.py"
    script.write_text(
        "from tsee.training import checkpoint\ncheckpoint.INTERVAL = 0.2\nfrom tsee.cli import main\nmain()\n"
    )
    return script


@pytest.fixture
def data(tmp_path):
    np.save(tmp_path / "rows.npy", load_digits().data.astype(np.float32))
    return tmp_path / "rows.npy"


def torchrun(script, *arguments, restarts=0):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command += [f"--max-restarts={restarts}", "--monitor-interval=0.2", str(script), *map(str, arguments)]
    return subprocess.Popen(
        command,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finished(process, timeout=300):
    try:
        output, errors = process.communicate(timeout=timeout)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, errors
    return output


def workers(process):
    """The processes that a torchrun has started, by rank."""
    found = {}
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/stat") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
            with open(f"/proc/{entry}/environ", "rb") as file:
                said = dict(item.partition(b"=")[::2] for item in file.read().split(b"\0"))
        except (OSError, ValueError, IndexError):
            continue
        if parent == process.pid and b"RANK" in said:
            found[int(said[b"RANK"])] = int(entry)
    return found


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="finds the workers in /proc")
def test_a_killed_worker_is_restarted_and_the_fit_ends_as_without_the_kill(data, often, tmp_path):
    given = ["fit", data, *OPTIONS, "--max-epochs", 100, "--batch-size", 256]
    finished(torchrun(often, *given, "-o", tmp_path / "whole"))
    process = torchrun(often, *given, "-o", tmp_path / "broken", "--checkpoint", tmp_path / "state", restarts=1)
    begin = time.monotonic()
    while not (tmp_path / "state" / FILE_NAME).exists() and process.poll() is None and time.monotonic() - begin < 200:
        time.sleep(0.05)
    os.kill(workers(process)[1], signal.SIGKILL)
    output = finished(process)
    assert output.count("Learned a map of 1,797 rows") == 1  # only one of the two reports it
    assert not (tmp_path / "state" / FILE_NAME).exists()
    whole, broken = (tsee.load(tmp_path / name) for name in ("whole", "broken"))
    assert whole.map_.embedding is None
    assert len(broken.history_["loss"]) == 100
    np.testing.assert_allclose(broken.history_["loss"], whole.history_["loss"], rtol=1e-3)
    X = load_digits().data.astype(np.float32)
    np.testing.assert_allclose(broken.transform(X), whole.transform(X), atol=1e-3 * np.ptp(whole.transform(X)))


def test_a_stopped_fit_is_resumed_only_when_told_to(run, data, often, tmp_path):
    given = [str(part) for part in ("fit", data, "-o", tmp_path / "model", "--checkpoint", tmp_path / "state")]
    given += ["--hidden-layers", "16", "--refinement", "20", "--max-epochs", "200"]
    process = subprocess.Popen([sys.executable, str(often), *given], stderr=subprocess.PIPE, text=True)
    begin = time.monotonic()
    while not (tmp_path / "state" / FILE_NAME).exists() and process.poll() is None and time.monotonic() - begin < 200:
        time.sleep(0.05)
    process.terminate()
    process.communicate(timeout=120)
    assert process.returncode == 143
    assert not (tmp_path / "model").exists()
    assert "add --resume to continue it" in run(*given, code=2).stderr
    run(*given, "--resume")
    see = tsee.load(tmp_path / "model")
    assert len(see.history_["loss"]) == 200
    assert see.checkpoint is None
    assert not (tmp_path / "state" / FILE_NAME).exists()


@contextmanager
def two_by_hand(script, folder, port, *given):
    """Two processes of the command, started without torchrun, as soon as their training has begun."""
    given = ["fit", *given, *OPTIONS, "--max-epochs", 10_000, "-o", folder / "model", "--checkpoint", folder / "state"]
    known = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TSEE_TIMEOUT": "2"}
    processes = [
        subprocess.Popen(
            [sys.executable, str(script), *map(str, given)],
            env={**os.environ, **known, "RANK": str(rank), "OMP_NUM_THREADS": "1"},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        begin = time.monotonic()
        while not (folder / "state" / FILE_NAME).exists() and time.monotonic() - begin < 100:
            time.sleep(0.05)
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


@pytest.mark.parametrize(
    "number, says",
    [
        (signal.SIGKILL, "Error: Another process of the fit has ended or cannot be reached "),
        (signal.SIGSTOP, "Error: Process 1 of the fit does not answer "),
    ],
)
def test_a_process_that_was_started_by_hand_says_that_another_is_lost(number, says, data, often, free_port, tmp_path):
    with two_by_hand(often, tmp_path, free_port, data) as processes:
        processes[1].send_signal(number)
        _, errors = processes[0].communicate(timeout=60)
        assert processes[0].returncode == 1
        (line,) = errors.splitlines()
        assert line.startswith(says)
        assert line.endswith("(on the command line: --checkpoint, and --resume).")


@pytest.mark.parametrize("who", [(0,), (1,), (0, 1)])
def test_ctrl_c_in_any_process_ends_the_training_of_all(who, data, often, free_port, tmp_path):
    with two_by_hand(often, tmp_path, free_port, data) as processes:
        for rank in who:
            processes[rank].send_signal(signal.SIGINT)
        for process in processes:
            _, errors = process.communicate(timeout=60)
            assert process.returncode == 130, errors
            assert "Traceback" not in errors
    see = tsee.load(tmp_path / "model")
    assert len(see.history_["loss"]) < 10_000
    assert np.isfinite(see.transform(np.load(data)[:3])).all()


@pytest.mark.parametrize(
    ("rank", "size", "says"), [("0", "x", "WORLD_SIZE must be a number"), ("5", "2", "it must be 0 to 1")]
)
def test_an_environment_that_cannot_be(rank, size, says, run, data, tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", size)
    assert says in run("fit", data, "-o", tmp_path / "model", code=1).stderr


def test_resume_needs_a_folder(run, data, tmp_path):
    result = run("fit", data, "-o", tmp_path / "model", "--resume", code=2)
    assert "--resume needs --checkpoint" in result.stderr


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="finds the threads in /proc")
def test_no_thread_of_the_group_is_left_when_a_worker_ends(data, tmp_path):
    """Python sometimes crashes at its end if such a thread still runs."""
    script = tmp_path / "fit_and_look.py"
    script.write_text(
        "import os\n"
        "from tsee.cli import main\n"
        "main(standalone_mode=False)\n"
        "tasks = [open(f'/proc/self/task/{task}/comm').read() for task in os.listdir('/proc/self/task')]\n"
        "os.write(1, f'left: {sum(\"gloo\" in task for task in tasks)}\\n'.encode())\n"
    )
    output = finished(torchrun(script, "fit", data, *OPTIONS, "--max-epochs", 2, "-o", tmp_path / "model"))
    assert output.count("left: 0") == 2
