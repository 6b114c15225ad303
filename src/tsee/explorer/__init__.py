"""The map as an interactive page: one HTML file that opens offline and places new rows."""

from tsee.explorer.page import write_map_page

__all__ = ["write_map_page"]
