"""Run the baselines of the best preset: python -m reproduction.baselines --store FILE.

K-means on the pixels, UMAP with a mixture, and k-means on pretrained autoencoders.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from reclust.cli.common import CONDITIONS, add_options, show
from reclust.cli.study import STOPPED, conditions_of
from reclust.studies import Store
from reclust.studies.baselines import (
    ALWAYS,
    BaselineInput,
    BaselinePart,
    Baselines,
    EncodedKMeans,
    PixelKMeans,
    run_baselines,
)
from reclust.studies.catalog import named
from reclust.studies.tables.scores import BASELINES
from reclust.utils.exceptions import require
from reclust.utils.values import value

COLOUR_BASELINES = f"{BASELINES}-of-colours"  # of the samples of `best-of-colours`


@value
class UmapMixture:
    """UMAP of the raw pixels, then a Gaussian mixture; needs umap-learn."""

    neighbors: int = 20
    dimensions: int = 10
    algorithm: ClassVar[str] = "UMAP + mixture"
    pretrained: ClassVar[bool] = False

    def labels(self, inputs: BaselineInput, seed: int) -> np.ndarray:
        from sklearn.mixture import GaussianMixture

        umap = require("umap", purpose="The baseline UMAP + mixture", extra="umap")
        reducer = umap.UMAP(n_neighbors=self.neighbors, n_components=self.dimensions, min_dist=0.0,
                            random_state=seed, n_jobs=1)
        mixture = GaussianMixture(inputs.pretraining.settings.n_clusters, n_init=5, reg_covar=1e-5,
                                  random_state=seed)
        return mixture.fit_predict(reducer.fit_transform(inputs.pixels.cpu().numpy()))


METHODS = {"pixels": PixelKMeans(), "umap": UmapMixture(), "autoencoder": EncodedKMeans()}


def best_baselines() -> tuple[Baselines, ...]:
    """Plan the baselines of `preset="best"`, with the encoders of the main table."""
    main, colours = named("acc-table"), named("best-of-colours")
    small = (*named("best").datasets, *named("best-of-few-samples").datasets)
    large = named("best-of-many-samples").datasets

    def parts(datasets: tuple[str, ...], umap_seeds: int) -> tuple[BaselinePart, BaselinePart]:
        return (BaselinePart(ALWAYS, datasets, main.seeds, main.pretraining_seeds),
                BaselinePart((UmapMixture(),), datasets, main.seeds[:umap_seeds]))

    grey = (*parts(small, 5), *parts(large, 2))  # UMAP of 70,000 samples takes minutes
    return (Baselines(BASELINES, grey, main.protocol, main.precision),
            Baselines(COLOUR_BASELINES, parts(colours.datasets, 5), colours.protocol,
                      main.precision))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m reproduction.baselines", description=__doc__)
    parser.add_argument("--methods", nargs="+", choices=METHODS, help="only these methods")
    add_options(parser, "--datasets", *CONDITIONS, "--json")
    arguments = parser.parse_args(argv)
    conditions, rows, left = conditions_of(arguments), [], 0
    methods = None if arguments.methods is None else [METHODS[name] for name in arguments.methods]
    with Store(arguments.store) as store:
        for baselines in best_baselines():
            finished, waiting = run_baselines(baselines, store, conditions, methods=methods,
                                              datasets=arguments.datasets)
            (status,) = store.status(baselines.name)
            left += waiting
            rows.append({"study": status.study, "finished now": finished,
                         "finished": status.finished, "waiting": status.waiting})
    show(rows, as_json=arguments.json)
    if left:
        print(STOPPED, file=sys.stderr)
    return 3 if left else 0


if __name__ == "__main__":
    sys.exit(main())
