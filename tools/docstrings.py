"""How the API reference reads this project's docstrings: an extension of griffe, used by mkdocs.yml.

Fields and parameters are described in lines "name: what it is" or, under a heading, "name, other : what they are", whose
continuation is indented. In the reference each becomes an item of a list; everything else is Markdown already.
"""

from __future__ import annotations

import re

import griffe

ITEM = re.compile(r"^([\w`*][\w`*, ()\[\].×…/-]*?) ?: (\S.*)$")
HEADING = re.compile(r"^(Parameters|Attributes)\n-+\n", flags=re.MULTILINE)


def as_markdown(text: str) -> str:
    """The docstring with its descriptions of fields as Markdown lists."""
    first, *rest = HEADING.sub(r"**\1**\n", text).splitlines()
    lines, listing = [first], False
    for line in rest:
        item = ITEM.match(line)
        if item and len(item[1].split()) <= 8:
            lines += [*([] if listing else [""]), f"- **{item[1]}**: {item[2]}"]
            listing = True
        else:
            listing = listing and line.startswith("    ")
            lines.append(line)
    return "\n".join(lines)


class PlainDocstrings(griffe.Extension):
    def on_instance(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
