"""Messages about files that cannot be read or written."""

from __future__ import annotations

import difflib
import errno
import importlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tsee.exceptions import DataFileError

__all__ = ["check_different", "check_known", "listed", "obstacle", "reading", "require", "unwritable"]


def obstacle(path: Path) -> str | None:
    """Why no file can be created at ``path``, as far as can be seen without trying; None if nothing prevents it."""
    folder = path.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        return os.strerror(errno.ENOTDIR)
    if path.exists() and not (path.is_file() or path.is_dir()):
        return "it is not a plain file"
    return None if os.access(folder, os.W_OK | os.X_OK) else os.strerror(errno.EACCES)


def unwritable(what: str, path: Any, reason: Any) -> DataFileError:
    """The error to raise if a file cannot be written; ``reason`` is a text or an error."""
    reason = getattr(reason, "strerror", None) or (str(reason).splitlines() or [type(reason).__name__])[0]
    return DataFileError(
        f"{what} cannot be written to {str(path)!r} ({reason}), and an existing file is unchanged: choose a folder "
        "that you can write to, with room on its disk."
    )


def require(module: str, extra: str, path: Any) -> Any:
    """Import an optional library, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise DataFileError(f"{str(path)!r} needs {library}: pip install 'tsee[{extra}]'.") from error


@contextmanager
def reading(path: Any, what: str) -> Iterator[None]:
    """Turn a library's error about a bad file into a `DataFileError`."""
    try:
        yield
    except DataFileError:
        raise
    except MemoryError as error:
        raise DataFileError(
            f"There is not enough memory to read {str(path)!r} ({error or 'it ran out'}): write it with fewer columns; "
            "if it should not be that large, it is damaged."
        ) from error
    except FileNotFoundError as error:
        raise DataFileError(f"There is no file {str(path)!r}: check the path.") from error
    except PermissionError as error:
        raise DataFileError(f"You do not have permission to read {str(path)!r}: change its permissions.") from error
    except UnicodeDecodeError as error:
        raise DataFileError(
            f"{str(path)!r} is not text in UTF-8 (byte {error.object[error.start]:#04x}): save it as UTF-8."
        ) from error
    except Exception as error:  # on a damaged file, libraries raise any kind of error
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(". ")
        raise DataFileError(
            f"{str(path)!r} is damaged, cut off, or not {what} ({reason}): copy or write it again."
        ) from error


def listed(names: Iterable[Any], most: int = 8) -> str:
    """Names in quotes; if there are many, the first few.

    >>> listed(["a", "b"])
    "'a', 'b'"
    """
    names = [repr(str(name)) for name in names]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def check_known(wanted: Sequence[str], known: Sequence[str], path: Any, what: str = "column") -> None:
    """Refuse names that are not among ``known``, and suggest names that may have been meant."""
    names = set(known)
    missing = [name for name in wanted if name not in names]
    if not missing:
        return
    asked = set(wanted)
    others = [name for name in known if name not in asked]
    close = dict.fromkeys(match for name in missing[:8] for match in difflib.get_close_matches(name, others, n=2))
    if close:
        hint = f"did you mean {listed(close)}?"
    else:
        hint = f"it has {listed(known)}." if known else "it has none."
    raise DataFileError(f"{str(path)!r} has no {what}{'s' if len(missing) > 1 else ''} {listed(missing)}: {hint}")


def check_different(names: Sequence[str], path: Any, *, where: str = "") -> None:
    """Refuse columns of the same name: nobody could tell which of them a model means."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise DataFileError(
            f"{str(path)!r} has several columns named {listed(repeated)}: rename them{where} so that all names differ."
        )
