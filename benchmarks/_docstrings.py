"""A labeled text set that every installation has: docstrings of the standard library and of torch's and our dependencies.

A sample is the beginning of a docstring, its class the package it comes from. Files are parsed, never imported.
"""

from __future__ import annotations

import ast
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import numpy as np

TOPICS: dict[str, tuple[str, ...]] = {
    "statistics": ("scipy/stats",),
    "signals": ("scipy/signal",),
    "optimisation": ("scipy/optimize",),
    "sparse matrices": ("scipy/sparse",),
    "interpolation": ("scipy/interpolate",),
    "linear algebra": ("scipy/linalg", "numpy/linalg"),
    "graphs": ("networkx",),
    "neural networks": ("torch/nn",),
    "many machines": ("torch/distributed",),
    "trees": ("sklearn/tree", "sklearn/ensemble"),
    "linear models": ("sklearn/linear_model",),
    "physics": ("sympy/physics",),
    "polynomials": ("sympy/polys",),
    "combinatorics": ("sympy/combinatorics",),
    "number theory": ("sympy/ntheory",),
    "email": ("email",),
    "asyncio": ("asyncio",),
    "http": ("http", "urllib"),
    "windows": ("tkinter",),
    "xml": ("xml",),
}
OTHERS: dict[str, tuple[str, ...]] = {
    "tables": ("pandas/core",),
    "plots": ("matplotlib",),
    "scores": ("sklearn/metrics",),
    "geometry": ("scipy/spatial",),
    "images": ("skimage",),
    "testing": ("unittest",),
    "clustering": ("sklearn/cluster",),
    "logic": ("sympy/logic",),
}
"""A second set, of packages that had no part in any choice made with the first."""
SHORTEST, LONGEST = 50, 300
"""Characters of a sample; shorter docstrings say too little, of longer ones the beginning is taken."""


def docstrings(topics: dict[str, tuple[str, ...]] = TOPICS, *, most: int = 300) -> tuple[list[str], np.ndarray]:
    """Return at most `most` texts per topic, evenly spread over its files, and their topics (n,)."""
    texts: list[str] = []
    labels: list[int] = []
    for label, folders in enumerate(topics.values()):
        found = list(dict.fromkeys(text for folder in folders for text in _texts(_root(folder))))
        rows = np.unique(np.linspace(0, len(found) - 1, most).round().astype(int))
        texts += [found[row] for row in rows]
        labels += [label] * len(rows)
    return texts, np.array(labels)


def _root(folder: str) -> Path:
    places = [Path(sysconfig.get_path(name)) / folder for name in ("stdlib", "purelib", "platlib")]
    return next(place for place in places if place.is_dir())


def _texts(root: Path) -> Iterator[str]:
    for path in sorted(root.rglob("*.py")):
        if "test" in str(path.relative_to(root)):
            continue
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                paragraphs = (ast.get_docstring(node) or "").split("\n\n")
                text = " ".join(" ".join(paragraphs[:2]).split())
                if len(text) >= SHORTEST:
                    yield text[:LONGEST]
