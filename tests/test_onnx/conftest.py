"""What holds for every export."""

import pytest


@pytest.fixture(autouse=True)
def _say_nothing_unasked(recwarn, capfd):
    """No export in these tests may warn, print or log, unless a test expects it."""
    yield
    assert [str(warning.message) for warning in recwarn if "perplexity" not in str(warning.message)] == []
    assert capfd.readouterr() == ("", "")
