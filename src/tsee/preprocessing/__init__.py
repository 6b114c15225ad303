"""Rows of data as inputs of the network: centering, scale, standardization, and the principal axes."""

from tsee.preprocessing.fitting import Inputs, Preprocessing, fit_preprocessing

__all__ = ["Inputs", "Preprocessing", "fit_preprocessing"]
