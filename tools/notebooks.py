"""Write examples/notebooks/ from the scripts in examples/: `python tools/notebooks.py`.

Scripts use the percent format: `# %%` begins a code cell, `# %% [markdown]` a text cell in comments. The module docstring
becomes the first cell. Scripts without such lines have no notebook.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"
NOTEBOOKS = EXAMPLES / "notebooks"
METADATA = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"}}


def cells(source: str) -> list[tuple[str, str]]:
    """Return pairs of "markdown" or "code" and the text of the cell."""
    opening = ast.parse(source).body[0]
    prose = ast.get_docstring(ast.parse(source)) or ""
    rest = "\n".join(source.splitlines()[opening.end_lineno :])
    title, _, text = prose.partition("\n")
    cells = [("markdown", f"# {title.rstrip('.')}\n{text}".strip())]
    before, *parts = re.split(r"^# %%(.*)\n", rest, flags=re.MULTILINE)
    if before.strip():
        cells.append(("code", before.strip()))
    for mark, part in zip(parts[::2], parts[1::2], strict=True):
        if "[markdown]" in mark:
            cells.append(("markdown", re.sub(r"^# ?", "", part.strip(), flags=re.MULTILINE)))
        else:
            cells.append(("code", part.strip()))
    return cells


def notebook(source: str) -> str:
    """Return the text of the .ipynb file, without outputs."""
    entries = []
    for number, (kind, text) in enumerate(cells(source)):
        cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text.splitlines(keepends=True)}
        entries.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))
    whole = {"cells": entries, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def scripts() -> list[Path]:
    return sorted(path for path in EXAMPLES.glob("*.py") if "\n# %%" in path.read_text())


def main() -> None:
    NOTEBOOKS.mkdir(exist_ok=True)
    for path in scripts():
        (NOTEBOOKS / f"{path.stem}.ipynb").write_text(notebook(path.read_text()))
        print(f"examples/notebooks/{path.stem}.ipynb")


if __name__ == "__main__":
    main()
