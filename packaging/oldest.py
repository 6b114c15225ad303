"""Print the lowest versions that pyproject.toml allows, as requirements: what `make test-oldest` installs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
# Tools that run the tests, and what only draws or documents: their newest versions do.
TOOLS = ("docs", "test")


def oldest(project: dict) -> list[str]:
    """Requirements of exactly the lower bounds; an extra's own extras (`tsee[plot]`) are left out."""
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(line for name in extras if name not in TOOLS for line in extras[name])]
    lowest = [re.sub(r">=\s*", "==", line) for line in wanted if not line.startswith("tsee[")]
    return sorted(set(lowest))


if __name__ == "__main__":
    print("\n".join(oldest(tomllib.loads(PROJECT.read_text())["project"])))
