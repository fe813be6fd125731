"""reclust completion: a script that completes commands in a shell."""

from __future__ import annotations

import argparse

from ..data.errors import require

PATHS = ("FILE", "STORE", "DATA", "MODEL", "FOLDER", "NAME_OR_FILE")
"""Metavars of arguments that are paths."""


def add(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "completion", help="print a script that completes commands in your shell",
        description="Print a script that completes commands. For bash: reclust completion bash >> ~/.bash_completion")
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"))
    parser.set_defaults(run=_completion)


def _completion(arguments: argparse.Namespace) -> int:
    shtab = require("shtab", purpose="Making completions", extra="cli")
    _mark_paths(arguments.whole, shtab.FILE)
    print(shtab.complete(arguments.whole, arguments.shell))
    return 0


def _mark_paths(parser: argparse.ArgumentParser, how: object) -> None:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                _mark_paths(child, how)
        elif action.metavar in PATHS:
            action.complete = how  # type: ignore[attr-defined]
