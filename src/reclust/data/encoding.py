"""Tables of mixed columns as numbers, learned in `fit` and repeated in `predict`."""

import datetime
import re
from dataclasses import replace
from math import inf, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from ..utils.exceptions import require
from ..utils.values import choice, value
from .errors import DataError, listed
from .formats.tables import row_numbers

MAX_LEVELS, RARE = 30, 0.01  # levels of a category; those of a smaller share become "other"
FLAG_SCALE = 0.5  # of 0/1 columns: standardized if both are equally common, else smaller
MAX_WORDS, TOPICS = 200, 8  # of a column of free text
MIN_WORDS = 3.0  # words per cell of free text
MIN_KNOWN = 0.1  # share of cells whose level is common, in a category
MOSTLY = 0.9  # share of cells that are numbers in a column of numbers with remarks
SURPRISE = 5.0  # standard errors by which missing cells are related to another column
YEAR = 365.2425 * 86400
_DATE = re.compile(r"^(\d{1,4}[-/.])\d{1,2}[-/.]\d{1,4}(?:[T ].*)?$")


class Feature(NamedTuple):
    """An encoded column; scale: what it is divided by, NaN for its standard deviation."""

    name: str
    kind: str  # "number", "date", "flag" (0 or 1), "level" of a category, or "topic" of a text
    scale: float = nan


@value
class NumberColumn:
    """Numbers, flags, or dates as years such as 2024.5; missing ones become the median."""

    name: str
    kind: str = choice("number", "flag", "date", default="number")
    fill: float = 0.0
    day_first: bool = False
    marked: bool = False  # adds a column that tells the missing ones

    @property
    def features(self) -> list[Feature]:
        return [Feature(self.name, self.kind, FLAG_SCALE if self.kind == "flag" else nan)]

    def parse(self, cells: Any) -> Any:
        if self.kind != "date":
            numbers = _pandas().to_numeric(_plain(cells), errors="coerce").astype(np.float64)
            return numbers.where(np.isfinite(numbers))
        dates = _pandas().to_datetime(_plain(cells), errors="coerce", utc=True, format="mixed",
                                      dayfirst=self.day_first)
        since = dates.dt.as_unit("us") - _pandas().Timestamp(0, tz="UTC").as_unit("us")  # any year
        return 1970 + since.dt.total_seconds() / YEAR

    def encode(self, cells: Any) -> NDArray[Any]:
        return self.parse(cells).fillna(self.fill).to_numpy()[:, None]  # type: ignore[no-any-return]


@value
class CategoryColumn:
    """A 0/1 column for each level; missing cells become the levels' shares.

    All levels together count as much as one standardized column if they are equally common, and
    less if most cells are the same.
    """

    name: str
    levels: tuple[str, ...]
    shares: tuple[float, ...]  # one more than levels if there are others
    marked: bool = False

    @classmethod
    def learn(cls, name: str, text: Any) -> "CategoryColumn | None":
        shares = text.value_counts(normalize=True)
        shares = shares[(shares >= RARE) & (shares * len(text) > 1.5)][:MAX_LEVELS]
        levels, known = sorted(shares.index), float(shares.sum())
        if known < MIN_KNOWN:
            return None
        rest = [1 - known] if known < 1 - 1e-9 else []
        return cls(name, tuple(levels), (*shares[levels].tolist(), *rest))

    @property
    def features(self) -> list[Feature]:
        scale = sqrt(1 - 1 / len(self.shares)) or 1.0
        names = [*self.levels, "other"][: len(self.shares)]
        return [Feature(f"{self.name}={level}", "level", scale) for level in names]

    def parse(self, cells: Any) -> Any:
        return _text(cells)

    def encode(self, cells: Any) -> NDArray[Any]:
        text = _text(cells)
        codes = _pandas().Index(self.levels).get_indexer(text)
        codes = np.where(codes < 0, len(self.levels), codes)  # "other", or the shares
        choices = np.vstack([np.eye(min(len(self.shares), MAX_LEVELS + 1)), self.shares])
        return choices[np.where(text.isna(), -1, codes)]  # type: ignore[no-any-return]


@value
class TextColumn:
    """Leading principal components of the words' TF-IDF weights."""

    name: str
    words: tuple[str, ...]
    weights: tuple[float, ...]
    components: tuple[tuple[float, ...], ...]
    scale: float
    marked: bool = False

    @classmethod
    def learn(cls, name: str, text: Any) -> "TextColumn | None":
        words = TfidfVectorizer(max_features=MAX_WORDS, min_df=2)
        try:
            weights = words.fit_transform(text)
            topics = TruncatedSVD(min(TOPICS, weights.shape[1]), random_state=0)
            with np.errstate(invalid="ignore", divide="ignore"):
                spread = topics.fit_transform(weights).std(0)
        except ValueError:  # at most one word is common
            return None
        if spread.max() < 1e-9:  # all rows have the same words
            return None
        return cls(name, tuple(words.get_feature_names_out()), tuple(words.idf_.tolist()),
                   tuple(map(tuple, topics.components_.tolist())), float(np.hypot.reduce(spread)))

    @property
    def features(self) -> list[Feature]:
        strongest = np.argsort(-np.abs(self.components), axis=1, kind="stable")[:, :3]
        return [Feature(f"{self.name}: {', '.join(self.words[i] for i in indices)}", "topic",
                        self.scale) for indices in strongest]

    def parse(self, cells: Any) -> Any:
        return _text(cells)

    def encode(self, cells: Any) -> NDArray[Any]:
        words = TfidfVectorizer(vocabulary=self.words)
        words.idf_ = np.array(self.weights)
        return words.transform(_text(cells).fillna("")) @ np.array(self.components).T  # type: ignore[no-any-return]


Column = NumberColumn | CategoryColumn | TextColumn


@value
class TableEncoder:
    """Turn a DataFrame into numbers; `left_out` are columns that name the rows or hold nothing."""

    columns: tuple[Any, ...]
    left_out: tuple[str, ...] = ()

    @classmethod
    def fit(cls, frame: Any) -> "TableEncoder":
        numbered = set(row_numbers(frame))
        learned = {str(name): None if name in numbered else _learn(str(name), frame[name])
                   for name in frame}
        columns = [column for column in learned.values() if column is not None]
        if not columns:
            raise DataError(f"No column to cluster: {listed(map(repr, learned))} name the rows or "
                            "are empty.")
        left_out = tuple(name for name, column in learned.items() if column is None)
        return cls(_mark(columns, frame), left_out)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def features(self) -> list[Feature]:
        return [feature for column in self.columns for feature in column.features
                + [Feature(f"{column.name} missing", "flag", FLAG_SCALE)] * column.marked]

    def encode(self, frame: Any) -> NDArray[np.float64]:
        """(n, columns) -> (n, features); other columns of the frame are ignored."""
        cells = {str(name): frame[name] for name in frame}
        absent = [repr(name) for name in self.names if name not in cells]
        if absent:
            raise DataError(f"The table lacks columns of the fit: {listed(absent)}.")
        parts = []
        for column in self.columns:
            values = cells[column.name]
            parts += [column.encode(values)] + [column.parse(values).isna().to_numpy()[:, None]] * (
                column.marked)
        return np.concatenate(parts, axis=1, dtype=np.float64)


def _learn(name: str, cells: Any) -> Column | None:
    """Choose the kind of a column; None if it names the rows or holds nothing."""
    types, kind, known = _pandas().api.types, cells.dtype, cells.dropna()
    if not len(known) or (len(known) == len(cells) and (known == known.iloc[0]).all()):
        return None
    column = NumberColumn(name)
    if types.is_datetime64_any_dtype(kind) or isinstance(known.iloc[0], datetime.date):
        column = NumberColumn(name, "date")
    elif not (types.is_numeric_dtype(kind) or types.is_bool_dtype(kind) or kind.kind == "m"):
        text = _text(known).dropna()
        first = text.str.extract(_DATE)[0]
        declared = kind.name == "category" and types.is_numeric_dtype(kind.categories.dtype)
        if first.notna().all():  # 25/12/2024, 25.12.2024 and 1.12.2024 begin with the day
            day_first = first.str[:-1].astype(int).between(13, 31) | first.str.endswith(".")
            column = NumberColumn(name, "date", day_first=bool(day_first.any()))
        elif declared or column.parse(known).notna().mean() < MOSTLY:
            long = text.str.split().str.len().mean() >= MIN_WORDS and text.nunique() > MAX_LEVELS
            return (TextColumn if long else CategoryColumn).learn(name, text)  # type: ignore
    numbers = column.parse(cells).dropna()
    if numbers.empty:  # infinite, or dates that do not exist
        return None
    is_flag, middle = numbers.isin((0, 1)).all(), float(numbers.median())
    return NumberColumn(name, "flag", round(middle)) if is_flag else replace(column, fill=middle)


def _mark(columns: list[Any], frame: Any) -> tuple[Any, ...]:
    """Mark columns whose missing cells are related to what other columns hold."""
    parts = [column.encode(frame[column.name]) for column in columns]
    gaps = np.stack([column.parse(frame[column.name]).isna() for column in columns], 1)
    x, y = gaps.astype(float), np.concatenate([*parts, gaps], 1, dtype=float)
    x, y = ((a - a.mean(0)) / np.where(a.std(0) > 0, a.std(0), inf) for a in (x, y))
    numbers = np.arange(len(columns))
    owner = np.concatenate([numbers.repeat([part.shape[1] for part in parts]), numbers])
    related = set()
    for i in np.flatnonzero(gaps.mean(0) >= RARE):  # one by one: there may be many columns
        correlations = np.where(owner == i, 0, np.abs(x[:, i] @ y)) / sqrt(len(frame))
        if correlations.max() > SURPRISE:
            related.add(i)
    return tuple(replace(column, marked=i in related) for i, column in enumerate(columns))


def _plain(cells: Any) -> Any:
    """Text without blanks, durations as days, and other cells as they are."""
    if cells.dtype.kind == "m":
        return cells.dt.total_seconds() / 86400
    if cells.dtype.name == "category" or cells.dtype.kind == "O":
        cells = cells.astype(object)
        return cells.map(lambda cell: cell.strip() if isinstance(cell, str) else cell)
    return cells


def _text(cells: Any) -> Any:
    text = cells.astype(object).map(lambda cell: str(cell).strip(), na_action="ignore")
    return text.where(text != "")


def _pandas() -> Any:
    return require("pandas", purpose="Tables of mixed columns")
