"""How good the maps are: what the demonstration promises, read from its own output."""

import re

from click.testing import CliRunner

from tsee.cli import main


def test_the_demonstration_keeps_its_promises(tmp_path):
    """Digits, a third held out, defaults, median of three seeds: DtSEE within 5 % error, HotSEE within 8 %."""
    result = CliRunner().invoke(main, ["demo", "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    medians = dict(re.findall(r"^(\w+) median +([\d.]+)%", result.output, flags=re.MULTILINE))
    assert float(medians["DtSEE"]) <= 5.0
    assert float(medians["HotSEE"]) <= 8.0
