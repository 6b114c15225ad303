"""``python -m tsee``."""

from tsee.cli import main

if __name__ == "__main__":
    main(prog_name="tsee")
