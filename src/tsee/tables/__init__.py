"""Tables as they are: columns of numbers, categories, dates, tags and text, with gaps, as rows of numbers."""

from tsee.tables.encoding import EncodedRows, TableEncoder, learn_table
from tsee.tables.frames import Frame, as_frame, is_frame
from tsee.tables.kinds import KINDS, Choice, check_columns
from tsee.tables.recognition import encode_new, encoded_file, encoded_rows, open_encoded, table_of

__all__ = [
    "KINDS",
    "Choice",
    "EncodedRows",
    "Frame",
    "TableEncoder",
    "as_frame",
    "check_columns",
    "encode_new",
    "encoded_file",
    "encoded_rows",
    "is_frame",
    "learn_table",
    "open_encoded",
    "table_of",
]
