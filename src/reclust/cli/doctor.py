"""reclust doctor: whether this installation is well."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from .output import add_json, show


def add(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "doctor", help="look at this installation: versions, devices, folders, data, extras",
        description="Look at this installation. Exit code 0: nothing is broken, though optional things may be missing; 1: "
                    "something needed is broken, and the note says what to do.")
    parser.add_argument("--folder", metavar="FOLDER", help="where data lives (default: RECLUST_DATA, or your cache)")
    add_json(parser)
    parser.set_defaults(run=_doctor)


def _doctor(arguments: argparse.Namespace) -> int:
    from .installation import examine

    findings = examine(folder=arguments.folder)
    show([asdict(finding) for finding in findings], as_json=arguments.json)
    broken = [finding.name for finding in findings if finding.state == "broken"]
    if not arguments.json:
        print(f"\nbroken: {', '.join(broken)}" if broken else "\nnothing is broken")
    return 1 if broken else 0
