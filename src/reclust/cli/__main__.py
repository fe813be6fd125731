"""Run the command line with `python -m reclust.cli`."""

import sys

from . import main

sys.exit(main())
