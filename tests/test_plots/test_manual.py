"""The manual of the plots."""

from __future__ import annotations

import re
from pathlib import Path


def test_the_manual(tmp_path, monkeypatch):
    """The calls of docs/plots.md, in order."""
    text = (Path(__file__).parents[2] / "docs" / "plots.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec("\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)), {})
    assert {file.name for file in tmp_path.iterdir()} == set(re.findall(r'path="(.*?)"', text))
