"""How Sphinx builds the site: `make docs`."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))

import tsee  # noqa: E402

project = "tsee"
author = "the tsee developers"
copyright = author
version = release = tsee.__version__

extensions = [
    "myst_nb",  # pages and tutorials in Markdown; the code cells of a tutorial are run
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    # In the folder `extensions`:
    "formulas",
    "links",
    "reference",
]
exclude_patterns = ["extensions", "theme"]

myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = os.environ.get("TSEE_DOCS_EXECUTION", "cache")
if nb_execution_mode == "off":  # only a run says in which language the cells are
    suppress_warnings = ["myst-nb.lexer"]
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 600
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say more than the types
autodoc_class_signature = "mixed"
default_role = "py:obj"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = "tsee"
html_static_path = ["theme"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_math_renderer = "svg"
html_theme_options = {"source_directory": "docs/"}
templates_path: list[str] = []
pygments_style = "friendly"
pygments_dark_style = "monokai"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
