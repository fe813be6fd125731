"""Run the command line with `python -m reclust.cli`."""

from . import main

raise SystemExit(main())
