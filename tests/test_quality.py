"""How good the maps are, read from the output of the demonstration."""

import re

from click.testing import CliRunner

from tsee.cli import main


def test_the_demonstration_keeps_its_promises(tmp_path):
    """A third of the digits held out, defaults, median of three seeds: DtSEE has at most 5 % error, HotSEE 8 %."""
    result = CliRunner().invoke(main, ["demo", "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    medians = dict(re.findall(r"^(\w+) median +([\d.]+)%", result.output, flags=re.MULTILINE))
    assert float(medians["DtSEE"]) <= 5.0
    assert float(medians["HotSEE"]) <= 8.0
