"""The command: ``tsee``, and ``python -m tsee``."""

from __future__ import annotations

import atexit
import gc
import os
import signal
from types import FrameType

# New objects between two searches for garbage; Python's own setting is 700.
NEW_OBJECTS = 20_000


def main() -> None:
    """Run the command. Ctrl-C ends it at any time with exit code 130 and without a traceback."""
    # torch and scikit-learn make hundreds of thousands of objects that stay. To search them for garbage again and again
    # while they are imported, and once more at the end, would take a third of the time of a short command.
    gc.set_threshold(NEW_OBJECTS)
    atexit.register(gc.freeze)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a background job of a shell ignores it
        signal.signal(signal.SIGINT, _interrupt)
    from tsee.cli import main

    main(prog_name="tsee")


def _interrupt(number: int, frame: FrameType | None) -> None:
    """End at once while modules are imported: an import cannot be undone, and shows a traceback or goes on."""
    place = frame
    while place is not None:
        if place.f_code.co_filename == "<frozen importlib._bootstrap>":
            os.write(2, b"Interrupted.\n")
            os._exit(130)  # `tsee.cli.group.INTERRUPTED`, which may not be there yet
        place = place.f_back
    signal.default_int_handler(number, frame)


if __name__ == "__main__":
    main()
