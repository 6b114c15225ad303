"""The API reference: a page for each class, and one for each module, with every name that is public."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

from sphinx.application import Sphinx

import tsee

FOLDER = "reference"


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before Sphinx looks for pages."""
    app.connect("builder-inited", lambda app: write_pages(Path(app.srcdir) / FOLDER))
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-docstring", _keep_underscores, priority=400)  # before napoleon reads it
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _skip(app: Sphinx, what: str, name: str, member: object, skip: bool, options: object) -> bool | None:
    """Leave out what estimators have from scikit-learn, and the fields of a tuple, which its own docstring lists."""
    home = getattr(member, "__module__", None)
    foreign = isinstance(home, str) and home.startswith("sklearn.")
    return True if foreign or (inspect.getdoc(member) or "").startswith("Alias for field") else None


def _keep_underscores(app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """In a shape, ``(n_exemplars_, 2)``, this is the name of an attribute, not a link."""
    for number, line in enumerate(lines):
        lines[number] = re.sub(r"\b(n_\w+)_(?=[,)])", r"\1\_", line)


def public_names() -> dict[str, list[str]]:
    """The public names of tsee and of each of its public modules."""
    modules = {name: import_module(f"tsee.{name}") for name in tsee.__all__ if _is_module(name)}
    found = {"tsee": [name for name in tsee.__all__ if name not in modules]}
    return found | {module.__name__: sorted(module.__all__) for module in modules.values()}


def write_pages(folder: Path) -> None:
    """Write ``index.rst`` and the pages that it lists; a page that did not change keeps its date."""
    pages = {}
    names = public_names()
    classes = [name for name in names["tsee"] if _is_estimator(name)]
    for name in classes:
        pages[name] = _page(f"tsee.{name}", [f".. autoclass:: tsee.{name}", "   :members:", "   :inherited-members:"])
    rest = [name for name in names["tsee"] if name not in classes]
    body = [line for name in rest for line in (*_entry(tsee, name), "")]
    pages["tsee"] = _page("tsee: loading, placing, errors", body)
    for module, public in names.items():
        if module != "tsee":
            found = import_module(module)
            summary = [f".. automodule:: {module}", "", f".. currentmodule:: {module}", ""]
            pages[module] = _page(module, [*summary, *(line for name in public for line in (*_entry(found, name), ""))])
    listed = [*sorted(classes, key=lambda name: name != "DtSEE"), "tsee", *(name for name in names if name != "tsee")]
    pages["index"] = _page(
        "API reference",
        ["Every public name; the examples are run as tests.", "", ".. toctree::", "   :maxdepth: 1", ""]
        + [f"   {name}" for name in listed],
    )
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        if path.stem not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def _page(title: str, lines: list[str]) -> str:
    return "\n".join([title, "=" * len(title), "", *lines]) + "\n"


def _entry(module: ModuleType, name: str) -> list[str]:
    value = getattr(module, name)
    full = f"{module.__name__}.{name}"
    if module is not tsee and value is getattr(tsee, name, None):
        return [f"{name}: see `tsee.{name}`."]
    if inspect.isclass(value):
        shown = [] if issubclass(value, Exception) else ["   :members:"]
        return [f".. autoclass:: {full}", *shown]
    return [f".. autofunction:: {full}"] if callable(value) else [f".. autodata:: {full}", "   :no-value:"]


def _is_module(name: str) -> bool:
    return inspect.ismodule(getattr(tsee, name))


def _is_estimator(name: str) -> bool:
    value = getattr(tsee, name)
    return inspect.isclass(value) and hasattr(value, "fit")
