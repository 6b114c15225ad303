"""A module of torch as an ONNX graph, which can work through the rows in blocks."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

__all__ = ["graph_of", "in_blocks"]

INPUT, OUTPUT = "rows", "positions"
BLOCK_INPUT, BLOCK_OUTPUT = "block", "placed"
# The version of the ONNX operators: the one that torch's exporter is written for.
OPSET = 18

# Rows in as few blocks as possible, all of one length; the last one is padded by zeros. No block is empty.
BLOCKS = """
in_blocks (float[n, {n_features}] rows) => (float[n, {n_components}] positions) {{
    number_0 = Constant <value_ints = [0]> ()
    number_1 = Constant <value_ints = [1]> ()
    most_rows = Constant <value_ints = [{most_rows}]> ()
    row_shape = Constant <value_ints = [{n_features}]> ()
    flat_shape = Constant <value_ints = [-1, {n_components}]> ()
    n_rows = Shape <end = 1> (rows)
    at_least_one = Max(n_rows, number_1)
    last_row = Sub(at_least_one, number_1)
    last_block = Div(last_row, most_rows)
    n_blocks = Add(last_block, number_1)
    last_block_row = Div(last_row, n_blocks)
    block_rows = Add(last_block_row, number_1)
    n_padded = Mul(n_blocks, block_rows)
    n_missing = Sub(n_padded, n_rows)
    padding = Concat <axis = 0> (number_0, number_0, n_missing, number_0)
    padded_rows = Pad(rows, padding)
    blocks_shape = Concat <axis = 0> (n_blocks, block_rows, row_shape)
    row_blocks = Reshape(padded_rows, blocks_shape)
    position_blocks = Scan <num_scan_inputs = 1> (row_blocks)
    padded_positions = Reshape(position_blocks, flat_shape)
    positions = Slice(padded_positions, number_0, n_rows)
}}
"""


def graph_of(module: nn.Module, n_features: int, names: tuple[str, str] = (INPUT, OUTPUT)) -> Any:
    """An ONNX model that does what a module does, for any number of rows of ``n_features`` numbers.

    ``names`` are the names of its input and its output.
    """
    example = (torch.zeros(2, n_features),)
    with _quiet():
        # In two steps: on its own, torch.onnx.export falls back to code that holds for some numbers of rows only.
        program = torch.export.export(module, example, dynamic_shapes=({0: torch.export.Dim("n")},), strict=False)
        exported = torch.onnx.export(
            program,
            dynamo=True,
            verbose=False,
            opset_version=OPSET,
            input_names=names[:1],
            output_names=names[1:],
            dynamic_shapes=({0: "n"},),
            custom_translation_table={torch.ops.aten.sort.stable: _stable_sort},
        )
    assert exported is not None
    model: Any = exported.model_proto
    _forget_how(model.graph)
    return model


def in_blocks(module: nn.Module, n_features: int, n_components: int, most_rows: int) -> Any:
    """What `graph_of` returns, for at most ``most_rows`` rows at a time: memory does not grow with their number.

    What does not depend on the rows is computed once, before the first block.
    """
    from onnx import helper, parser

    model = graph_of(module, n_features, (BLOCK_INPUT, BLOCK_OUTPUT))
    body = model.graph
    outer = parser.parse_graph(BLOCKS.format(n_features=n_features, n_components=n_components, most_rows=most_rows))
    outer.initializer.extend(body.initializer)
    known = {constant.name for constant in body.initializer}
    del body.initializer[:]
    before: list[Any] = []
    within: list[Any] = []
    for node in body.node:
        fixed = len(node.input) > 0 and known.issuperset(node.input)
        (before if fixed else within).append(node)
        known.update(node.output if fixed else ())
    del body.node[:]
    body.node.extend(within)
    scan = next(node for node in outer.node if node.op_type == "Scan")
    scan.attribute.append(helper.make_attribute("body", body))
    nodes = [*before, *outer.node]
    del outer.node[:]
    outer.node.extend(nodes)
    model.graph.CopyFrom(outer)
    return model


def _stable_sort(values: Any, *, stable: bool | None = None, dim: int = -1, descending: bool = False) -> Any:
    """torch's stable sort in ONNX, whose TopK puts the first of equal values first."""
    from onnxscript import opset18

    op: Any = opset18
    size = op.Gather(op.Shape(values), op.Constant(value_ints=[dim]))
    return op.TopK(values, size, axis=dim, largest=int(descending), sorted=1)


def _forget_how(graph: Any) -> None:
    """Drop torch's notes on the origin of each part: they hold paths of this computer."""
    for part in (graph, *graph.node, *graph.input, *graph.output, *graph.value_info, *graph.initializer):
        del part.metadata_props[:]
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _forget_how(attribute.g)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter: it reports on itself, on libraries that are not needed, and on each step that failed."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.fx")]
    levels = [logger.level for logger in loggers]
    with contextlib.ExitStack() as stack:
        for logger, level in zip(loggers, levels, strict=True):
            stack.callback(logger.setLevel, level)
            logger.setLevel(logging.ERROR)
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        yield
