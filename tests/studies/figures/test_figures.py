"""Figures draw what is in the store: the data of lines, bars and points are compared, not pixels."""

import os
import pathlib
import re

import numpy as np
import pytest
from support import small_settings

from reclust import Curve
from reclust.studies import Outcome, PlannedRun, Store, StoreReader, named, tables
from reclust.studies.measures import MEASURES

matplotlib = pytest.importorskip("matplotlib")
from reclust.studies import figures  # noqa: E402
from reclust.studies.figures import FIGURES, Choice, MissingData, draw, figure, save  # noqa: E402
from reclust.studies.figures.panels import STYLE, panels  # noqa: E402
from reproduction.svg import renumber, rewrite  # noqa: E402

SEEDS, EPOCHS, RESETS, ROWS, BINS = (1, 2, 3), np.arange(-1, 5), np.array([2, 4]), 40, 20  # small_settings fire at 2 and 4
SINGLE = ("accuracy", "nmi", "label_change", "intra_class_distance", "inter_class_distance", "silhouette",
          "silhouette_predicted", "reconstruction_loss")
STUDIES = {
    "acc-table": ("none", "brb", "recluster", "reset"),
    "training-curves": ("none", "brb", "recluster", "reset"),
    "embeddings": ("none", "brb"),
    "voronoi": ("brb",),
    "embedding-reset": ("brb", "embedding reset"),
    "momentum-reset": ("brb", "no momentum reset", "step reset"),
    "soft-reset-components": ("none", "brb", "perturb", "gaussian", "shrink"),
    "noise-and-disentangled": ("none", "brb", "noise", "disentangled", "recomputed centers"),
    "runtime": ("none", "7000 rows", "em"),
    "best": ("independent", "exchange", "split and merge"),
    "sensitivity": tuple(f"keep={keep:g} T={interval} lr={lr:g}" for lr in (1e-3, 1e-4) for interval in (5, 20) for keep in (0.6, 0.8)),
}


ALGORITHMS = {"training-curves": ("idec", "dcn"), "embeddings": ("dec",), "voronoi": ("dec",), "soft-reset-components": ("dcn",),
              "noise-and-disentangled": ("dcn",), "runtime": ("idec",), "best": ("idec",)}
FROM_SCRATCH_TOO = ("acc-table", "training-curves")


def history(rng, study, fires):
    r = len(SEEDS)

    def around(*shape, kind=rng.random):
        return Curve(EPOCHS, kind((len(EPOCHS), r, *shape))), Curve(RESETS, kind((len(RESETS), r, *shape)))

    made = {}
    for name in SINGLE:
        made[name], made[f"{name}_after_reset"] = around()
    changes = made["label_change"]  # since the last look, which the start does not have; of acc-table at the end, before and after resets
    seen = np.isin(EPOCHS, (1, 2, 4) if study == "acc-table" else EPOCHS[1:])
    made["label_change"] = Curve(changes.epochs[seen], changes.values[seen])
    d = 2 if study == "voronoi" else 5
    shapes = {"distance_ratio_histogram": (BINS,), "embedding": (ROWS, d), "centers": (4, d)}
    for name, shape in shapes.items() if study in ("training-curves", "embeddings", "voronoi") else ():
        made[name], made[f"{name}_after_reset"] = around(*shape)
    if fires:
        made["fired"] = Curve(RESETS, np.ones((len(RESETS), r)))
    return {"clustering": made}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    rng = np.random.default_rng(0)
    with Store(tmp_path_factory.mktemp("figures") / "store.sqlite") as made:
        made._db.execute("PRAGMA synchronous = OFF")
        for study, variants in STUDIES.items():
            cells = [(dataset, algorithm, pretrained, variant) for dataset in ("usps", "optdigits", "mnist")
                     for algorithm in ALGORITHMS.get(study, ("dec", "idec", "dcn"))
                     for pretrained in ((False, True) if study in FROM_SCRATCH_TOO else (True,)) for variant in variants]
            runs = {cell: [PlannedRun(f"{study}{cell}{seed}", f"{study}{cell}", *cell[:2], cell[3], cell[2], seed, factors(cell[3]))
                           for seed in SEEDS] for cell in cells}
            made.plan(study, "spec", [run for own in runs.values() for run in own])
            for cell, own in runs.items():
                none = cell[3] == "none"
                made.add(Outcome(
                    own[0].group, [run.key for run in own], [small_settings(**({"intervention": None} if none else {}))] * 3,
                    {name: rng.random(3) for name in ("acc", "nmi", "ari")},
                    history(rng, study, not none),
                    {"shown_classes": np.tile(np.arange(ROWS) % 4, (3, 1))},
                    {f"clustering.{part}": rng.random() for part in ("training", "reset", "embedding", "clustering", "momentum")}, {}))
        yield made


def factors(variant):
    return {name: float(given) for name, given in zip(("keep", "interval", "lr"), (part.split("=")[1] for part in variant.split()), strict=True)
            } if variant.startswith("keep=") else {}


def mean_curve(store, study, column, **cell):
    """By hand: epochs trained, mean and standard error over the runs of a cell."""
    frame = store.runs(study)
    for name, given in cell.items():
        frame = frame[frame[name] == given]
    curves = [store.history(run)["clustering"][column] for run in frame["run"]]
    values = np.stack([curve.values for curve in curves])
    return curves[0].epochs + 1, values.mean(0), values.std(0, ddof=1) / np.sqrt(len(values))


def line(axes, label):
    (found,) = [one for one in axes.lines if one.get_label() == label]
    return found.get_xdata(), found.get_ydata()


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name == "learning-curves" else pytest.mark.slow) for name in FIGURES])
def test_the_same_store_gives_the_same_bytes(store, tmp_path, name):
    for ending in ("svg", "pdf"):
        draw(store, name, tmp_path / f"a.{ending}")
        with StoreReader(store.path) as reader:
            draw(reader, name, tmp_path / f"b.{ending}")
        content = (tmp_path / f"a.{ending}").read_bytes()
        assert content == (tmp_path / f"b.{ending}").read_bytes() and len(content) > 3000


def test_identifiers_do_not_tell_of_the_processor(store, tmp_path):
    digests = ('<clipPath id="p{0}"/><path id="image{1}"/><use clip-path="url(#p{0})" xlink:href="#image{1}"/><g id="axes_1"/>'
               .format(*pair) for pair in (("0123456789", "abcdef0123"), ("9876543210", "eeeeeeeeee")))
    (one,) = {renumber(svg) for svg in digests}
    assert re.fullmatch(r'<clipPath id="(p0_\w{8})"/><path id="(image1_\w{8})"/><use clip-path="url\(#\1\)" xlink:href="#\2"/>'
                        '<g id="axes_1"/>', one)
    draw(store, "voronoi", tmp_path / "a.svg")
    rewrite(tmp_path / "a.svg")
    svg = (tmp_path / "a.svg").read_text(encoding="utf-8")
    defined = re.findall(r'id="([^"]*)"', svg)
    assert len(set(defined)) == len(defined) and set(re.findall(r'(?:url\(|href=")#(\w+)', svg)) <= set(defined)


@pytest.mark.parametrize("spec", FIGURES.values(), ids=lambda spec: spec.name)
def test_the_studies_of_the_catalog_record_what_figures_need(spec):
    for study in spec.studies[:1]:
        assert set(spec.measures) <= set(named(study).measures) and set(spec.measures) <= set(MEASURES)


@pytest.mark.parametrize(("name", "columns", "cells"), [
    ("learning-curves", ("accuracy",), [("usps", "idec", False)]),
    ("analysis", ("accuracy", "label_change", "intra_class_distance", "inter_class_distance"), [(d, "dcn", True) for d in ("optdigits", "mnist")]),
    ("analysis-silhouette", ("accuracy", "label_change", "intra_class_distance", "inter_class_distance", "silhouette"), [("mnist", "dcn", True)]),
    ("silhouette", ("accuracy", "silhouette", "silhouette_predicted"), [("usps", "dcn", True)]),
    ("reconstruction", ("reconstruction_loss",), [("optdigits", "dcn", True)]),
    ("controls", ("accuracy", "label_change", "intra_class_distance", "inter_class_distance"), [("optdigits", "dcn", True)]),
    ("soft-reset-components", ("accuracy",), [("usps", "dcn", True), ("optdigits", "dcn", True)]),
])
def test_curves_are_means_over_seeds(store, name, columns, cells):
    drawn = figure(store, name)
    study = next(study for study in FIGURES[name].studies if study in STUDIES)
    grid = np.reshape(drawn.axes[: len(columns) * len(cells)], (len(columns), -1))
    shown = [cell for cell in cells if cell[0] in dict.fromkeys(store.runs(study)["dataset"])]
    order = {dataset: i for i, dataset in enumerate(("usps", "optdigits", "mnist"))}
    for place, (dataset, algorithm, pretrained) in zip(grid.T, sorted(shown, key=lambda cell: order[cell[0]]), strict=True):
        for axes, column in zip(place, columns, strict=True):
            scale = 100 if column == "accuracy" else 1
            for variant, label in (("brb", "BRB"), ("none", "no intervention")):
                epochs, mean, spread = mean_curve(store, study, column, dataset=dataset, algorithm=algorithm, pretrained=pretrained, variant=variant)
                x, y = line(axes, label)
                y = y[np.isfinite(y)]
                np.testing.assert_array_equal(x[-len(y):], epochs)
                np.testing.assert_allclose(y, scale * mean, rtol=1e-5)
                bands = [one.get_paths()[0].vertices for one in axes.collections if one.get_paths()]
                assert any(np.isclose(band[:, 1].max(), scale * (mean + spread).max(), rtol=1e-5) for band in bands)
            marks = set(next(one for one in axes.lines if one.get_linestyle() == ":").get_xdata())
            assert marks == set(RESETS), "a reset at the start of epoch e comes after e epochs"


@pytest.mark.parametrize(("lacks", "study"), [
    ({}, "training-curves"), ({"dataset": "usps"}, "acc-table"), ({"variant": "recluster"}, "acc-table"), ({"dataset": "mnist"}, "training-curves")])
def test_the_study_that_has_most_of_what_is_shown_is_drawn(store, monkeypatch, lacks, study):
    runs = store.runs

    def finished(name):
        frame = runs(name)
        for column, value in lacks.items() if name == "training-curves" else ():
            frame = frame[frame[column] != value]
        return frame

    monkeypatch.setattr(store, "runs", finished)
    (axes,) = figure(store, "learning-curves").axes
    epochs, mean, _ = mean_curve(store, study, "accuracy", dataset="usps", algorithm="idec", pretrained=False, variant="brb")
    np.testing.assert_allclose(line(axes, "BRB"), (epochs, 100 * mean))


def test_what_is_asked_for_is_shown_or_missed(store):
    (axes,) = figure(store, "learning-curves", Choice(variants=("reset",))).axes
    assert [one.get_label() for one in axes.lines if one.get_label()[0] != "_"] == ["Reset"]
    for name in ("learning-curves", "distance-ratios", "nmi-bars", "runtime", "embedding-reset"):
        for choice in (Choice(datasets=("minst",)), Choice(algorithms=("dcm",)), Choice(variants=("brrb",))):
            with pytest.raises(MissingData, match="minst|dcm|brrb"):
                figure(store, name, choice)


def test_an_algorithm_with_more_seeds_does_not_count_for_more(store, monkeypatch):
    runs = store.runs
    monkeypatch.setattr(store, "runs", lambda name: runs(name).query("algorithm != 'dcn' or seed == 1"))
    frame = store.runs("acc-table").query("pretrained and variant == 'brb' and dataset == 'usps'")
    by_algorithm = 100 * frame.groupby("algorithm")["nmi"].agg(["mean", "sem"])
    bars = next(one for one in figure(store, "nmi-bars").axes[0].containers if one.get_label() == "BRB")
    assert bars[0].get_height() == pytest.approx(by_algorithm["mean"].mean())
    (low, high) = bars.errorbar.lines[2][0].get_segments()[0][:, 1]
    assert high - low == pytest.approx(2 * np.sqrt((by_algorithm["sem"].fillna(0) ** 2).sum()) / 3)
    assert figures.source(store, "nmi-bars") == "`acc-table`, 1 to 3 runs each"


def test_each_data_set_is_from_the_study_that_has_most_of_it(store, monkeypatch):
    runs = store.runs
    monkeypatch.setattr(store, "runs", lambda name: runs(name).query("study != 'training-curves' or dataset != 'mnist' or seed == 1"))
    drawn = figure(store, "analysis")
    assert figures.source(store, "analysis") == "`training-curves`, 3 runs each (OPTDIGITS); `acc-table`, 3 runs each (MNIST)"
    grid = np.reshape(drawn.axes[:8], (4, 2))
    for place, (study, dataset) in zip(grid.T, (("training-curves", "optdigits"), ("acc-table", "mnist")), strict=True):
        assert dataset.upper() in place[0].get_title()
        epochs, mean, _ = mean_curve(store, study, "intra_class_distance", dataset=dataset, algorithm="dcn", pretrained=True, variant="brb")
        np.testing.assert_allclose(line(place[2], "BRB"), (epochs, mean), rtol=1e-5)
    # Labels that were not looked at in each epoch: points at the only one that follows another, nothing in between.
    epochs, mean, spread = mean_curve(store, "acc-table", "label_change", dataset="mnist", algorithm="dcn", pretrained=True, variant="brb")
    points = next(one for one in grid[1, 1].containers if one.get_label() == "BRB")
    (x, y), (bars,) = points.lines[0].get_data(orig=False), points.lines[2]
    assert points.lines[0].get_linestyle() == "None" and epochs[1] == 3
    np.testing.assert_allclose((x, y), (epochs[1:2], mean[1:2]), rtol=1e-5)
    np.testing.assert_allclose(np.ptp(bars.get_segments()[0][:, 1]), 2 * spread[1], rtol=1e-5)


def test_the_barrier_is_the_best_mean_without_resets(store):
    (axes,) = figure(store, "learning-curves").axes
    barrier = [one.get_ydata()[0] for one in axes.lines if one.get_linestyle() == "--" and len(one.get_ydata()) == 2]
    means = [mean_curve(store, "training-curves", "accuracy", dataset="usps", algorithm="idec", pretrained=False, variant=variant)[1]
             for variant in ("none", "recluster")]
    assert barrier == pytest.approx([100 * np.max(means)], rel=1e-5)


def test_losses_right_after_resets_are_marked(store):
    (axes,) = figure(store, "reconstruction").axes
    epochs, mean, _ = mean_curve(store, "training-curves", "reconstruction_loss_after_reset", dataset="optdigits", algorithm="dcn",
                                 pretrained=True, variant="brb")
    x, y = line(axes, "right after a reset")
    np.testing.assert_array_equal(x, epochs - 1)
    np.testing.assert_allclose(y, mean, rtol=1e-5)


def heights(axes):
    return {bars.get_label(): [bar.get_height() for bar in bars] for bars in axes.containers if type(bars).__name__ == "BarContainer"}


def test_bars_are_means_and_relative_changes(store):
    means = {(e["dataset"], e["algorithm"], e["pretrained"], e["variant"]): e["acc_mean"] for e in store.means("acc-table")}
    sets = ("usps", "optdigits", "mnist")
    (axes,) = figure(store, "relative-change").axes
    for variant, label in (("brb", "BRB"), ("recluster", "Recluster"), ("reset", "Reset")):
        assert heights(axes)[label] == pytest.approx(
            [100 * (means[d, "dcn", True, variant] / means[d, "dcn", True, "none"] - 1) for d in sets])
    (axes,) = figure(store, "radar", Choice(study="acc-table")).axes
    for algorithm in ("dec", "idec"):
        _, y = line(axes, f"{algorithm.upper()}+BRB")
        expected = [100 * (means[d, algorithm, False, "brb"] / means[d, algorithm, False, "none"] - 1) for d in sets]
        np.testing.assert_allclose(y, [*expected, expected[0]])
    for measure in ("nmi", "ari"):
        for axes, pretrained in zip(figure(store, f"{measure}-bars").axes, (True, False), strict=True):
            frame = store.runs("acc-table").query(f"pretrained == {pretrained} and variant == 'brb'")
            assert heights(axes)["BRB"] == pytest.approx([100 * frame[frame["dataset"] == d][measure].mean() for d in sets])
    for name, variants in (("embedding-reset", STUDIES["embedding-reset"]), ("momentum-reset", STUDIES["momentum-reset"])):
        for axes, algorithm in zip(figure(store, name).axes, ("dec", "idec", "dcn"), strict=True):
            frame = store.runs(name).query(f"algorithm == '{algorithm}'")
            for variant in variants:
                own = frame[frame["variant"] == variant]
                assert heights(axes)["BRB" if variant == "brb" else variant] == pytest.approx(
                    [100 * own[own["dataset"] == d]["acc"].mean() for d in sets])


def test_the_grid_of_settings(store):
    drawn = figure(store, "sensitivity", Choice(datasets=("usps",)))
    frame = store.runs("sensitivity").query("dataset == 'usps'")
    for axes, lr in zip(drawn.axes, (1e-3, 1e-4), strict=False):
        (image,) = axes.images
        for i, interval in enumerate((5, 20)):
            for j, keep in enumerate((0.6, 0.8)):
                own = frame[(frame["lr"] == lr) & (frame["interval"] == interval) & (frame["keep"] == keep)]
                assert len(own) == 9 and image.get_array()[i, j] == pytest.approx(100 * own["acc"].mean())


def test_the_grid_has_a_row_for_each_set_that_has_settings(store, monkeypatch):
    frame = store.runs("sensitivity")

    def rows():
        names = [axes.get_ylabel().split("\n")[0] for axes in figure(store, "sensitivity").axes]
        return [name for name in names if name in ("MNIST", "USPS", "OPTDIGITS")]

    every = rows()
    assert len(every) == frame["dataset"].nunique() > 1
    monkeypatch.setattr(type(store), "runs", lambda self, study=None: frame[(frame["dataset"] != "usps") | (frame["algorithm"] == "dec")])
    assert rows() == [name for name in every if name != "USPS"]


def test_settings_that_lack_an_algorithm_stay_empty(store, monkeypatch):
    frame = store.runs("sensitivity")
    lacking = (frame["dataset"] == "usps") & (frame["algorithm"] == "dcn") & (frame["lr"] == 1e-4) & (frame["keep"] == 0.6)
    monkeypatch.setattr(type(store), "runs", lambda self, study=None: frame[~lacking])
    first, second = (axes.images[0].get_array() for axes in figure(store, "sensitivity", Choice(datasets=("usps",))).axes[:2])
    assert not np.ma.getmaskarray(first).any() and np.ma.getmaskarray(second).tolist() == [[True, False]] * 2
    monkeypatch.setattr(type(store), "runs", lambda self, study=None: frame[(frame["algorithm"] == "dec") == (frame["lr"] == 1e-4)])
    with pytest.raises(MissingData, match="no setting with runs of all algorithms"):
        figure(store, "sensitivity")


def test_runtime_bars_are_the_tables_numbers(store):
    choice = Choice(datasets=("usps",), algorithms=("idec",), pretrained=True)
    (axes,) = figure(store, "runtime", choice).axes
    cells = [one for one in tables.cell_times(store, "runtime") if (one.dataset, one.algorithm, one.pretrained) == ("usps", "idec", True)]
    widths = {bars.get_label(): [bar.get_width() for bar in bars] for bars in axes.containers}
    assert widths["one epoch of training"] == pytest.approx([one.epoch for one in cells]) and len(cells) == 2
    assert widths["clustering"] == pytest.approx([one.parts["clustering"] for one in cells])
    assert [text.get_text().strip() for text in axes.texts] == [f"+{one.overhead:.1f} %" for one in cells]


def test_replicas_are_kept_by_their_number(store):
    (axes,) = figure(store, "n-init", Choice(datasets=("usps",))).axes
    own = store.runs("best").query("dataset == 'usps' and variant == 'independent'")
    x, y = line(axes, "USPS")
    assert list(x) == [1] and y == pytest.approx([100 * own["acc"].mean()]), "of three replicas a subset is at most one"


def test_histograms_before_and_after_a_reset(store):
    drawn = figure(store, "distance-ratios", Choice(datasets=("mnist",), epoch=4))
    runs = store.runs("training-curves").query("dataset == 'mnist' and algorithm == 'dcn' and pretrained and variant == 'brb'")["run"]
    expected = []
    for run in runs:
        own = store.history(run)["clustering"]
        before, later = (own["distance_ratio_histogram"].values[list(EPOCHS).index(epoch)] for epoch in (3, 4))
        after = own["distance_ratio_histogram_after_reset"].values[1]
        expected.append([counts / counts.sum() for counts in (before, after, later)])
    for patch, values in zip(drawn.axes[0].patches, np.mean(expected, 0), strict=True):
        np.testing.assert_allclose(patch.get_data().values, 100 * values, rtol=1e-5)
    with pytest.raises(MissingData, match="no reset at epoch 3, only at 2, 4"):
        figure(store, "distance-ratios", Choice(epoch=3))


def points(axes, label):
    return np.concatenate([one.get_offsets() for one in axes.collections if one.get_label() == label])


def test_voronoi_shows_the_plane_as_it_was(store):
    drawn = figure(store, "voronoi", Choice(datasets=("mnist",), epoch=4))
    run = store.runs("voronoi").query("dataset == 'mnist' and algorithm == 'dec' and pretrained")["run"].iloc[0]
    own = store.history(run)["clustering"]
    z = {"before": own["embedding"].values[list(EPOCHS).index(3)], "after": own["embedding_after_reset"].values[1]}
    centers = {"before": own["centers"].values[list(EPOCHS).index(3)], "after": own["centers_after_reset"].values[1]}
    for axes, moment in zip(drawn.axes, ("before", "after"), strict=True):
        np.testing.assert_allclose(points(axes, "centers"), centers[moment], rtol=1e-6)
        shown = np.concatenate([one.get_offsets() for one in axes.collections[:-1] if len(one.get_offsets()) and one.get_zorder() in (2, 3)])
        assert {tuple(row) for row in shown.round(5)} == {tuple(row) for row in z[moment].round(5).astype(float).round(5)}
        image = axes.images[0].get_array()
        assert len(np.unique(image)) <= 4
    with pytest.raises(MissingData, match="no embeddings of two dimensions"):
        figure(store, "voronoi", Choice(study="embeddings"))


def test_close_up_projects_all_moments_alike(store):
    from sklearn.decomposition import PCA

    drawn = figure(store, "reset-closeup", Choice(datasets=("mnist",), epoch=2))
    run = store.runs("embeddings").query("dataset == 'mnist' and algorithm == 'dec' and pretrained and variant == 'brb'")["run"].iloc[0]
    own = store.history(run)["clustering"]
    moments = [own["embedding"].values[list(EPOCHS).index(1)], own["embedding_after_reset"].values[0], own["embedding"].values[list(EPOCHS).index(3)]]
    oracle = PCA(2).fit(np.concatenate(moments))
    classes = np.arange(ROWS) % 4
    for axes, z in zip(drawn.axes, moments, strict=False):
        for label in range(4):
            np.testing.assert_allclose(np.abs(points(axes, f"class {label}")), np.abs(oracle.transform(z[classes == label])), atol=1e-5)
    below = drawn.axes[3].lines[0]
    np.testing.assert_allclose(sorted(below.get_ydata()), sorted(100 * np.concatenate([own["nmi"].values, own["nmi_after_reset"].values])), rtol=1e-5)


def test_embeddings_at_the_start_and_the_end(store):
    drawn = figure(store, "embedding")
    assert [axes.get_title() for axes in drawn.axes] == [
        "no intervention, start", "no intervention, 5 epochs", "BRB, start", "BRB, 5 epochs"]
    assert all(len(points(axes, "class 0")) == ROWS // 4 and len(points(axes, "centers")) == 4 for axes in drawn.axes)


def test_missing_data_says_what_to_run(tmp_path, store):
    with Store(tmp_path / "empty") as empty:
        with pytest.raises(MissingData, match="reclust study run sensitivity"):
            figure(empty, "sensitivity")
        empty.plan("sensitivity-mini", "spec", [PlannedRun("r", "g", "digits", "dec", "v", True, 1)])
        with pytest.raises(MissingData, match="no finished run in the study sensitivity-mini"):
            figure(empty, "sensitivity")
        empty.add(Outcome("g", ["r"], [small_settings()], {"acc": np.ones(1)}, {}, {}, {}, {}))
        with pytest.raises(MissingData, match="no factor 'keep'"):
            figure(empty, "sensitivity")
        with pytest.raises(MissingData, match="no curve 'accuracy'.*with the measures distances"):
            figure(empty, "controls", Choice(study="sensitivity-mini"))
    with pytest.raises(MissingData, match="no dataset among gtsrb"):
        figure(store, "runtime", Choice(datasets=("gtsrb",)))
    with pytest.raises(ValueError, match="no figure 'x', only learning-curves"):
        figure(store, "x")
    with pytest.raises(ValueError, match="use one of .pdf, .svg, .png"):
        draw(store, "radar", tmp_path / "a.txt", Choice(study="acc-table"))


def test_a_study_of_other_variants_is_shown_whole_or_missed(tmp_path):
    with Store(tmp_path / "store") as made:
        runs = [PlannedRun(variant, variant, "usps", "idec", variant, False, 1) for variant in ("none", "mine", "other")]
        made.plan("own", "spec", runs)
        for one in runs:
            made.add(Outcome(one.group, [one.key], [small_settings()], {"acc": np.ones(1)},
                             {"clustering": {"accuracy": Curve(EPOCHS, np.ones((len(EPOCHS), 1)))}}, {}, {}, {}))
        with pytest.raises(MissingData, match="no run with the variant brb in the study own"):
            figure(made, "radar", Choice(study="own"))
        (axes,) = figure(made, "learning-curves", Choice(study="own")).axes
        assert {"no intervention", "mine", "other"} <= set(axes.get_legend_handles_labels()[1])
        (axes,) = figure(made, "learning-curves", Choice(study="own", variants=("none",))).axes
        assert axes.get_legend_handles_labels()[1] == ["no intervention"]


def test_matplotlibs_state_is_left_alone(store):
    import matplotlib

    before = dict(matplotlib.rcParams)
    figure(store, "radar", Choice(study="acc-table"))
    assert dict(matplotlib.rcParams) == before
    root = pathlib.Path(figures.__file__).parent
    assert not [path.name for path in root.glob("*.py") if "pyplot" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("ending", ["pdf", "svg", "png"])
def test_a_full_disk_leaves_the_old_figure(ending, tmp_path, monkeypatch):
    drawn, _ = panels()
    path = tmp_path / f"figure.{ending}"
    path.write_bytes(b"old")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=f"figure.{ending} could not be written, its old content is intact"):
        save(drawn, path)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == [path.name]


def test_dollar_signs_in_names_are_no_formula(tmp_path):
    with matplotlib.rc_context(STYLE):  # as `figure` does
        drawn, axes = panels()
        axes[0, 0].set_title("costs $x_{ and $y")
    save(drawn, tmp_path / "x.svg")
    assert "costs $x_{ and $y" in (tmp_path / "x.svg").read_text()
