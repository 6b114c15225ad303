"""What tsee takes from scikit-learn, imported in a fraction of the time.

scikit-learn's base classes import scipy.stats, pandas and narwhals, for helpers that tsee does not call: as long as
torch itself. Here they are imported when something of them is first used.
"""

from __future__ import annotations

from tsee.later import later

with later("numpy.f2py", "scipy.stats", "scipy.special", "pandas", "narwhals", "narwhals.stable", "narwhals.stable.v2"):
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils import Tags, check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data

__all__ = [
    "BaseEstimator",
    "ClassNamePrefixFeaturesOutMixin",
    "Tags",
    "TransformerMixin",
    "check_is_fitted",
    "check_random_state",
    "validate_data",
]
