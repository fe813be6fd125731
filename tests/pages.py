"""The code of Markdown pages, as a reader meets it."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

BLOCK = re.compile(r"^( *)```(\w*)(.*?)\n(.*?)^\1```$|^<!-- test\n(.*?)^-->$", flags=re.DOTALL | re.MULTILINE)


def name(page):
    return str(page.relative_to(ROOT))


def blocks(page):
    """(line, language, rest of the info string, text) of each block; hidden lines that only the test needs are "python" too."""
    text = page.read_text()
    found = []
    for match in BLOCK.finditer(text):
        line = text[: match.start()].count("\n") + 1
        indent, language, info, code, hidden = match.groups()
        if hidden is not None:
            found.append((line, "python", "", hidden))
        else:
            found.append((line, language, info.strip(), re.sub(f"^{indent}", "", code, flags=re.MULTILINE)))
    return found


def programs(page):
    """(line, code) of the Python blocks that can run here; those that cannot say so to the reader in their title."""
    return [(line, code) for line, language, info, code in blocks(page)
            if language == "python" and "Not run" not in info and not code.startswith("--8<--")]


def commands(page):
    """(line, command) of every call of reclust in a block that is not Python."""
    found = []
    for start, language, _, code in blocks(page):
        if language in ("", "sh", "bash", "console"):
            joined = code.replace("\\\n", " ")
            found += [(start, command.strip()) for command in re.findall(r"^\s*(reclust [^#\n]*)", joined, flags=re.MULTILINE)]
    return found
