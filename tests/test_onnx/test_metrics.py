"""Files of models with any metric: they place rows as ``transform`` does."""

import numpy as np
import pytest

from tests.test_onnx.test_refined import QUICK, assert_same_map, assert_same_positions, export
from tsee import DtSEE
from tsee.metric import METRICS


@pytest.mark.parametrize("placement", ["refined", "forward"])
@pytest.mark.parametrize("metric", METRICS[1:])
def test_every_metric(metric, placement, digits, tmp_path):
    X, _, X_new, _ = digits
    if metric in ("hamming", "jaccard"):  # with many distances that tie
        X, X_new = (X > 7).astype(np.float32), (X_new > 7).astype(np.float32)
    elif metric == "manhattan":  # without, where rounding would decide
        X, X_new = (rows + np.random.default_rng(0).uniform(size=rows.shape) for rows in (X, X_new))
    see = DtSEE(**{**QUICK, "metric": metric, "placement": placement}).fit(X)
    place = export(see, tmp_path)
    assert_same_map(place, see, X_new)
    assert_same_positions(place(X), see.transform(X), see)


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
def test_a_row_without_a_direction_has_no_position(metric, digits, tmp_path):
    X = digits[0]
    place = export(DtSEE(**{**QUICK, "metric": metric}).fit(X), tmp_path)
    found = place(np.stack([X[0], np.zeros(64), X[1]]))
    assert np.isnan(found[1]).all()
    assert np.isfinite(found[[0, 2]]).all()
