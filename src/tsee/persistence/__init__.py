"""A fitted map as a folder: ``config.json`` says what it is, ``model.safetensors`` holds the numbers."""

from tsee.persistence.folder import (
    CONFIG,
    TENSORS,
    ModelFiles,
    SavedModel,
    check_target,
    inconsistent,
    read_files,
    read_model,
    save_model,
)

__all__ = [
    "CONFIG",
    "TENSORS",
    "ModelFiles",
    "SavedModel",
    "check_target",
    "inconsistent",
    "read_files",
    "read_model",
    "save_model",
]
