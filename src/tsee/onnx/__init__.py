"""A fitted model as one ONNX file, for programs without Python. onnx is imported only when one is written."""

from tsee.onnx.writing import export

__all__ = ["export"]
