"""How much memory is free, from files as Linux writes them."""

import subprocess
import sys

import pytest

from tsee.memory import free_memory


def test_the_limit_of_a_control_group_counts(tmp_path):
    machine = tmp_path / "meminfo"
    machine.write_text("MemTotal:       2048 kB\nMemAvailable:   1000 kB\n")
    assert free_memory(machine, tmp_path) == 1_024_000
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("5\n")
    assert free_memory(machine, tmp_path) == 1_024_000
    (tmp_path / "memory.max").write_text("500005\n")
    assert free_memory(machine, tmp_path) == 500_000
    (tmp_path / "memory.max").write_text("4\n")
    assert free_memory(machine, tmp_path) == 0


def test_a_system_that_does_not_say_counts_as_half_free(tmp_path):
    assert free_memory(tmp_path / "none", tmp_path) > 2**28


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say how much is used")
def test_the_limit_of_the_process_counts():
    code = """
import resource
from tsee.memory import free_memory
resource.setrlimit(resource.RLIMIT_AS, (2**35, 2**35))
before = free_memory()
resource.setrlimit(resource.RLIMIT_AS, (2**28, 2**28))
print(before, free_memory())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert after < 2**28 < before
