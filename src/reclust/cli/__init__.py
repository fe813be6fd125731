"""The command line: reclust fit | predict | suggest-k | study | table | figure | report | …

Arguments are read without numpy or torch: a command imports what it needs when it runs.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from ..version import __version__
from . import completion, data, doctor, figure, fit, report, study, suggest_k, table
from .output import plain_warnings

COMMANDS = (fit, suggest_k, study, table, figure, report, data, doctor, completion)
"""Modules with `add(commands)`, which adds parsers with a default `run`: arguments -> exit code."""

EPILOG = """exit codes: 0 all is done; 1 something failed; 2 wrong usage; 3 stopped before the end, call again to go on"""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="reclust", description="Deep clustering that does not get stuck.", epilog=EPILOG)
    made.add_argument("--version", action="version", version=f"reclust {__version__}")
    made.add_argument("--traceback", action="store_true", help="show where in the program an error came from")
    made.add_argument("--import", action="append", default=[], metavar="MODULE", dest="modules",
                      help="import a module of yours first, of this folder or installed, for values that it defines")
    made.set_defaults(stopped="stopped", whole=made)  # commands that can go on where they were say so
    commands = made.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in COMMANDS:
        module.add(commands)
    return made


def main(given: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    arguments = parser().parse_args(given)
    try:
        if arguments.modules:
            sys.path.insert(0, os.getcwd())
        for module in arguments.modules:
            importlib.import_module(module)
        with plain_warnings():
            return arguments.run(arguments)
    except KeyboardInterrupt:
        print(f"reclust: {arguments.stopped}", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, LookupError, OSError, ImportError, RuntimeError) as error:
        if arguments.traceback:
            raise
        message = error.args[0] if isinstance(error, KeyError) and error.args else error
        print(f"reclust: error: {message}", file=sys.stderr)
        return 1
