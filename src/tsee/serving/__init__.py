"""Placing many rows with a saved model: the rows of a file, of a folder of files, or of an engine's batches."""

from tsee.serving.batches import transform_batches
from tsee.serving.evaluation import Evaluation, evaluate_map
from tsee.serving.matching import ReadOptions, open_matching
from tsee.serving.placing import PlacedBlock, load_model, place_blocks, place_table
from tsee.serving.shards import FolderResult, place_folder

__all__ = [
    "Evaluation",
    "FolderResult",
    "PlacedBlock",
    "ReadOptions",
    "evaluate_map",
    "load_model",
    "open_matching",
    "place_blocks",
    "place_folder",
    "place_table",
    "transform_batches",
]
