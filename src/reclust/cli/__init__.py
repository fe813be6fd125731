"""The command line; parsing imports neither numpy nor torch, each command what it needs."""

import argparse
import os
import sys
import warnings
from collections.abc import Sequence

from ..utils.exceptions import printable
from ..utils.version import __version__
from . import fit, installation, study
from .common import tell


def parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(
        prog="reclust", description="Deep clustering that does not get stuck.",
        epilog="exit codes: 0 success, 1 error, 2 wrong usage, 3 stopped early (run again)")
    option = root.add_argument
    option("--version", action="version", version=f"reclust {__version__}")
    option("--traceback", action="store_true", help="show the traceback of an error")
    option("--import", action="append", default=[], metavar="MODULE", dest="modules",
           help="import a module first, for custom classes that it defines")
    root.set_defaults(interrupted="interrupted", root=root)
    commands = root.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (fit, study, installation):
        module.add(commands)
    return root


def main(argv: Sequence[str] | None = None) -> int:
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed
            setattr(sys, name, open(os.devnull, "w"))
        if hasattr(stream := getattr(sys, name), "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    arguments = parser().parse_args(argv)
    try:
        if arguments.modules:
            sys.path.insert(0, os.getcwd())
        for module in arguments.modules:
            __import__(module)
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: tell(  # without a line of code
                f"reclust: warning: {message}", sys.stderr)
            code = arguments.run(arguments) or 0
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print(f"reclust: {arguments.interrupted}", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader closed the pipe, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if arguments.traceback:
            raise
        expected = (ValueError, LookupError, OSError, ImportError, RuntimeError)
        message = error.args[0] if isinstance(error, KeyError) and error.args else error
        kind = "" if isinstance(error, expected) and str(message) else f"{type(error).__name__}: "
        print(f"reclust: error: {kind}{printable(str(message))}".rstrip(": "), file=sys.stderr)
        return 1
