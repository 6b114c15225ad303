"""How much memory there is: of the machine, and within the limits of its control group."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["free_memory"]

GROUPS = Path("/sys/fs/cgroup")
# The files of a limit and of what is used of it, of both versions of control groups.
LIMITS = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))


def free_memory(machine: Path = Path("/proc/meminfo"), groups: Path = GROUPS) -> int:
    """The bytes that this process can still take before the system would have to swap, or to end a process.

    Parameters
    ----------
    machine : path
        What Linux says of the machine's memory. On other systems half of the memory counts as free.
    groups : path
        The limits of the control group, which containers and Slurm set.

    Examples
    --------
    >>> free_memory() > 0
    True
    """
    free = [_of_machine(machine), *_of_process()]
    for limit, used in LIMITS:
        try:
            free.append(int((groups / limit).read_text()) - int((groups / used).read_text()))
        except (OSError, ValueError):  # there is no such file, or no limit ("max")
            continue
    return max(0, min(free))


def _of_process() -> list[int]:
    """What is left of the limit on this process's addresses (``ulimit -v``), if there is one."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except (ImportError, OSError, ValueError):  # not Linux
        return []
    return [] if limit == resource.RLIM_INFINITY else [limit - used]


def _of_machine(machine: Path) -> int:
    try:
        lines = dict(line.split(":", 1) for line in machine.read_text().splitlines())
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        names = getattr(os, "sysconf_names", {})
        if "SC_PAGE_SIZE" in names and "SC_PHYS_PAGES" in names:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
        return 2**32
