"""Placing many rows with a saved model: the rows of a file, of a folder of files, or of an engine's batches."""

from tsee.serving.batches import transform_batches
from tsee.serving.evaluation import Evaluation, evaluate_map
from tsee.serving.matching import ReadOptions, open_for_fit, open_matching
from tsee.serving.placing import PlacedBlock, check_map_path, load_model, place_blocks, place_table
from tsee.serving.shards import FolderResult, becomes_folder_of_maps, place_folder

__all__ = [
    "Evaluation",
    "FolderResult",
    "PlacedBlock",
    "ReadOptions",
    "becomes_folder_of_maps",
    "check_map_path",
    "evaluate_map",
    "load_model",
    "open_for_fit",
    "open_matching",
    "place_blocks",
    "place_folder",
    "place_table",
    "transform_batches",
]
