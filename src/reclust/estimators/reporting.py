"""Reports, descriptions, drift and export of fitted estimators."""

import json
import os
from typing import Any

import torch
from sklearn.utils.validation import check_is_fitted

from ..report.card import as_html, card
from ..report.drift import drift
from ..utils.exceptions import require


class Reporting:
    """Mixin of fitted estimators: their pages, tables and exports."""

    def report(self: Any, path: str | os.PathLike[str], X: Any, y: Any = None, *,
               title: str | None = None) -> None:
        """Write an HTML page about the fit: clusters, curves, replicas, k-means and warnings.

        X are the samples of `fit` in the same order, and y (n,) known classes to compare with.
        """
        from ..report.fit import write_fit_report

        check_is_fitted(self, "labels_")
        write_fit_report(self, path, X, y, title=title)

    def describe(self: Any, X: Any) -> Any:
        """Describe each cluster of X in a line, in original units.

        Parameters
        ----------
        X : array, DataFrame, path, texts, ...
            Samples of `fit` or new ones.

        Returns
        -------
        DataFrame
            A row per cluster: size, share, a rule in words with its coverage (share of the cluster
            that it holds for) and precision (share of its rows that are in the cluster), mean
            confidence, typical and doubtful members, and the median or commonest value of columns.
            The description of texts is the words that a cluster has more of (class-based TF-IDF).

        Examples
        --------
        >>> import pandas as pd
        >>> from reclust import Reclust
        >>> table = pd.DataFrame({"age": [20, 21, 60, 61] * 10, "visits": [1, 2, 9, 8] * 10})
        >>> model = Reclust(2, effort="quick", random_state=0).fit(table)
        >>> sorted(model.describe(table)["description"])
        ['age from 60', 'age up to 21']
        """
        from ..report.describe import describe

        pandas = require("pandas", purpose="Describing clusters")
        return pandas.DataFrame(describe(self, self.check_input(X))).set_index("cluster")

    def plot(self: Any, X: Any = None, *, ax: Any = None) -> Any:
        """Draw the embedding in two dimensions by cluster, doubtful samples fainter.

        Parameters
        ----------
        X : array, DataFrame, path, ..., optional
            Samples to draw; by default 2,000 of those of the fit.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib Axes
            Axes are those of UMAP where umap-learn is installed, otherwise principal components.
        """
        from ..report.plot import plot

        check_is_fitted(self, "labels_")
        if X is None:
            self._need("sample_embedding_")
        z = self.sample_embedding_ if X is None else self.transform(X)
        soft = self.soft_labels(self._model, torch.from_numpy(z).double())
        return plot(z, soft.numpy(), ax)

    def _need(self, attribute: str) -> None:
        if not hasattr(self, attribute):
            raise ValueError("A model of version 0.1 has nothing to compare or draw: fit it again.")

    def drift(self: Any, X: Any) -> Any:
        """Compare new samples with those of the fit.

        Parameters
        ----------
        X : array, DataFrame, path, ...
            New samples; one is enough.

        Returns
        -------
        DataFrame
            Rows for the share of each cluster, the distances to their means and each feature of a
            table of at most 200: mean in the fit and now, the difference (of shares, or the largest
            between distribution functions), its p-value by Fisher's or the Kolmogorov-Smirnov test,
            and the p-value adjusted for the number of rows (Benjamini-Hochberg).

        Examples
        --------
        >>> from sklearn.datasets import make_blobs
        >>> from reclust import Reclust
        >>> X, _ = make_blobs(200, 2, centers=2, random_state=0)
        >>> model = Reclust(2, effort="quick", random_state=0).fit(X)
        >>> changes = model.drift(X + [0, 20])
        >>> list(changes.index[changes["adjusted"] < 0.01])[-1]
        'feature 1'
        """
        check_is_fitted(self, "labels_")
        self._need("reference_")
        return drift(self, X, self.reference_)

    def export_onnx(self: Any, path: str | os.PathLike[str]) -> None:
        """Write one ONNX graph, X -> label (n,), embedding (n, d), probability (n, k).

        X (n, features) is float32. Images are flat rows of height × width × channels, mixed tables
        the columns of `preparation_.encoder.encode(frame)`. The metadata of the graph are
        the model's card (`reclust show`) as JSON. Needs the extra `onnx`.
        """
        from .onnx import export_onnx

        check_is_fitted(self, "labels_")
        encoder = self.preparation_.encoder
        metadata = {name: json.dumps(entry) for name, entry in card(self).items()}
        export_onnx(self._model, self.preparation_, self.soft_labels, metadata,
                    len(encoder.features) if encoder else self.n_features_in_, path)

    def _repr_mimebundle_(self: Any, **options: Any) -> dict[str, str]:
        if not hasattr(self, "labels_"):
            return super()._repr_mimebundle_(**options)  # type: ignore[misc, no-any-return]
        return {"text/plain": repr(self), "text/html": as_html(self)}
