"""Formulas as pictures in the page, drawn while the site is built: a reader needs no network and no script."""

from __future__ import annotations

import html
import re
from typing import Any

import ziamath
from docutils import nodes
from sphinx.application import Sphinx

SIZE = 17  # pixels of a letter of height 1, as in the text


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer that ``html_math_renderer = "svg"`` asks for."""
    ziamath.config.svg2 = False  # plain paths, which need no definitions shared between pictures
    app.add_html_math_renderer("svg", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def drawn(latex: str, *, inline: bool) -> str:
    """A formula as an ``<svg>`` in the color of the text around it, with the formula itself for screen readers."""
    formula = ziamath.Latex(latex.strip(), size=SIZE, inline=inline)
    svg = formula.svg()
    down = formula.getyofst()
    label = html.escape(re.sub(r"\s+", " ", latex.strip()), quote=True)
    style = f"vertical-align:{down:.2f}px" if inline else ""
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{label}" style="{style}" fill="currentColor" ', 1)
    return re.sub(r'(fill|stroke)="(black|#000000|#000)"', r'\1="currentColor"', svg)


def _inline(writer: Any, node: Any) -> None:
    writer.body.append(f'<span class="formula">{drawn(node.astext(), inline=True)}</span>')
    raise nodes.SkipNode


def _block(writer: Any, node: Any) -> None:
    writer.body.append(f'<div class="formula">{drawn(node.astext(), inline=False)}</div>\n')
    raise nodes.SkipNode
