"""`reclust completion`: print a shell completion script."""

from __future__ import annotations

import argparse

from ..utils.exceptions import require
from .arguments import add_command

PATH_METAVARS = ("FILE", "STORE", "DATA", "MODEL", "FOLDER", "NAME_OR_FILE")


def add(commands: argparse._SubParsersAction) -> None:
    parser = add_command(commands, "completion", _completion, "print a shell completion script",
                         "For bash: reclust completion bash >> ~/.bash_completion")
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"))


def _completion(arguments: argparse.Namespace) -> int:
    shtab = require("shtab", purpose="Shell completion", extra="cli")
    _complete_paths(arguments.root, shtab.FILE)
    print(shtab.complete(arguments.root, arguments.shell))
    return 0


def _complete_paths(parser: argparse.ArgumentParser, rule: object) -> None:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                _complete_paths(child, rule)
        elif action.metavar in PATH_METAVARS:
            action.complete = rule  # type: ignore[attr-defined]
