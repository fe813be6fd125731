"""Run the command line with `python -m reclust`."""

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())
