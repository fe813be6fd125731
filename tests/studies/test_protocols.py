"""How protocols prepare data and settings, and what studies record."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from reclust import SimCLR, self_label
from reclust.data import Lens
from reclust.data.accept import accept
from reclust.data.augmentation.color import ColorViews
from reclust.data.inputs import as_inputs
from reclust.data.preparation import Preparation
from reclust.estimators import presets
from reclust.metrics import accuracy
from reclust.representations import ResNet
from reclust.studies import (
    AutoencoderProtocol,
    Conditions,
    ContrastiveProtocol,
    Store,
    Study,
    named,
    names,
    run,
)
from reclust.studies.baselines import baselines_of, run_baselines
from reclust.studies.measures import LABEL_FREE, MEASURES
from reclust.studies.tables import repetitions, tables
from reclust.training.result import Result
from reproduction.best import LINES
from studies.tiny import VARIANTS, tiny_study

SMALL = ContrastiveProtocol(
    pretraining_epochs=1, epochs=2, batch_size=20, side=8,
    representation=SimCLR(ResNet(width=2), hidden=(4,), embedding=3, projector=(4, 4), reduction="sum"))


def test_every_measure_is_recorded(tmp_path):
    study = tiny_study(algorithms=("idec",), pretrained=(False,), variants=VARIANTS[1:2], measures=tuple(MEASURES))
    with Store(tmp_path / "store") as store:
        assert run(study, store, progress=False).failures == []
        history = store.history(study.planned()[0].key)["clustering"]
        for column in ("silhouette", "intra_class_distance_predicted", "local_purity", "embedding_norm", "reconstruction_loss",
                       "silhouette_after_reset", "empty_clusters"):
            assert np.isfinite(history[column].values).all() and history[column].values.ndim == 1, column
        histogram = history["distance_ratio_histogram"]
        assert histogram.values.shape == (len(histogram.epochs), 20) and (histogram.values.sum(1) == 100).all()
        assert history["embedding"].values.shape[1:] == (100, 10)
        assert "silhouette" in store.curves(study.name) and "embedding" not in store.curves(study.name)


def test_label_free_scores_are_kept_and_tell_which_replica_to_keep(tmp_path):
    variants = (VARIANTS[0], replace(VARIANTS[1], factors={}))
    study = tiny_study(name="best", algorithms=("idec",), pretrained=(False,), variants=variants, seeds=(1, 2, 3, 4),
                       largest_group=2, scores=tuple(LABEL_FREE))
    with Store(tmp_path / "store") as store:
        assert run(study, store, progress=False).failures == []
        every = repetitions(store, "best")
        assert [(one.variant, len(one.acc)) for one in every] == [("none", 2)] * 2 + [("brb", 2)] * 2
        assert all(np.isfinite(scores).all() for one in every for scores in one.scores.values())
        rows = store.finished("best", (), ("acc", "consistency"))[:2]
        assert every[0].kept("consistency") == 100 * max(rows, key=lambda row: row[1])[0]
        (table, *_) = tables(store, "best")
        (block,) = table.blocks
        assert len(block) == 2 and len(block[0].cells) == len(table.columns) - 1 == 4 + len(LABEL_FREE)
        assert block[1].cells[2].numbers[""] == pytest.approx(np.mean([one.acc.max() for one in every[2:]]))


@pytest.mark.parametrize("line", [line for line in LINES if line.dataset != "gtsrb"], ids=lambda line: f"{line.study}-{line.dataset}")
def test_the_table_of_the_best_preset_has_its_settings(line):
    study = named(line.study)
    found = presets.best(10, presets.OBJECTIVES["idec"], channels=1, n_samples=study.protocol.size(line.dataset))
    study = replace(study, datasets=(line.dataset,))
    groups = [one for one in study.groups() if (one.dataset, one.runs[0].variant) == (line.dataset, line.variant)]
    assert len(groups) == 5
    for group in groups:
        assert set(group.settings) == {found.settings} and len(group.seeds) == found.n_init


def test_only_samples_of_some_classes():
    assert set(AutoencoderProtocol(classes=(3, 1)).sample("digits", None).classes) == {1, 3}


@pytest.mark.parametrize(("protocol", "algorithm"), [(AutoencoderProtocol, "idec"), (ContrastiveProtocol, "dec")])
def test_the_number_of_clusters_overrides_that_of_known_sets(protocol, algorithm):
    def found(**given):
        return protocol(**given).settings("digits", algorithm, pretrained=True).n_clusters

    assert (found(), found(n_clusters=5)) == (10, 5)
    assert protocol(n_clusters=5).mini().n_clusters is None, "the digits have ten"
    with pytest.raises(ValueError, match="'mine' is none of .*n_clusters"):
        protocol().settings("mine", algorithm, pretrained=True)
    with pytest.raises(ValueError, match="no algorithm 'edc': choose from dec, idec, dcn"):
        protocol().settings("digits", "edc", pretrained=True)


@pytest.fixture
def colours(tmp_path):
    """A folder with thirty training and ten test images that count as part of CIFAR-10."""
    rng = np.random.default_rng(0)
    images, labels = rng.integers(256, size=(40, 32, 32, 3), dtype=np.uint8), np.arange(40) % 10
    np.savez(tmp_path / "cifar10_few.npz", images=images, labels=labels, split=(np.arange(40) >= 30).astype(np.uint8))
    return tmp_path


def test_contrastive_runs_are_scored_on_the_test_part(colours):
    study = Study("few", VARIANTS[:1], datasets=("cifar10_few",), algorithms=("dec", "dcn"), seeds=(1,), protocol=SMALL)
    conditions = Conditions(work=str(colours / "work"), data=str(colours), device="cpu")
    with Store(colours / "store") as store:
        ran = run(study, store, conditions=conditions, progress=False)
        assert (ran.finished, ran.failures) == (2, [])
        assert len(list((colours / "work" / "pretrained").iterdir())) == 1, "shared by the algorithms"
        group = study.groups()[0]
        sample = study.protocol.sample("cifar10_few", str(colours))
        assert len(sample.classes) == 30 and len(sample.held_out.classes) == 10
        np.testing.assert_array_equal(sample.held_out.inputs.mean, sample.inputs.mean)
        model = Result.load(colours / "work" / "clustered" / f"{group.clustering}.reclust").model(0)
        labels = model.predict(as_inputs(sample.held_out.inputs))
        row = store.runs("few").iloc[0]
        assert row.acc == accuracy(sample.held_out.classes, labels)
        np.testing.assert_array_equal(store.array(row.run, "test_labels"), labels)
        measured = store.measures("few").set_index(["run", "name"])["value"]
        assert measured[row.run, "train_acc"] == accuracy(sample.classes, store.labels(row.run))


def test_the_program_scales_test_images_by_themselves(colours):
    sample = replace(SMALL, reading="program", side=32).sample("cifar10_few", str(colours))
    for part in (sample, sample.held_out):
        scaled = part.inputs.standardized()
        np.testing.assert_allclose((scaled.mean((0, 2, 3)), scaled.std((0, 2, 3))), ([0, 0, 0], [1, 1, 1]), atol=1e-3)
    assert (sample.held_out.inputs.mean != sample.inputs.mean).all()


def test_images_of_native_size_and_counts_that_are_not_scaled(tmp_path):
    digits = AutoencoderProtocol(images="native").sample("digits", None)
    np.testing.assert_array_equal(digits.inputs.standardized(), load_digits().images[:, None])
    images, labels = np.random.default_rng(0).integers(256, size=(40, 16, 16), dtype=np.uint8), np.arange(40) % 10
    np.savez(tmp_path / "usps_few.npz", images=images, labels=labels)
    scaled = AutoencoderProtocol(images="native").sample("usps_few", str(tmp_path)).inputs.standardized()
    np.testing.assert_allclose(scaled[:, 0], (images - images.mean()) / images.std(), atol=1e-5)


def test_studies_in_the_reading_of_the_program():
    plain, program = named("without-augmentation"), named("without-augmentation-program")
    assert program.name == "without-augmentation-program" and program.precision == "tf32"
    assert program.protocol == replace(plain.protocol, reading="program", images="native")
    assert named("acc-table-program-mini") == replace(named("acc-table").program().mini(), name="acc-table-program-mini")
    for name in ("acc-table", "contrastive", "reclustering-methods"):
        runs = [{run.key for run in replace(study, seeds=(1,), pretraining_seeds=()).planned()} for study in (named(name), named(f"{name}-program"))]
        assert len(runs[0]) == len(runs[1]) and not runs[0] & runs[1]
    settings = named("acc-table-program").groups()[0].settings[10]
    assert settings == presets.paper("mnist", "dec", intervention="brb", pretrained=False, reading="program")
    contrastive = named("contrastive-program").groups()
    brb = next(group.settings[0] for group in contrastive if group.runs[0].variant == "brb")
    assert brb == presets.paper("cifar10", "dec", reading="program")


def test_rows_are_of_each_part_and_baselines_of_held_out_samples_are_refused(colours):
    study = Study("few", VARIANTS[:1], datasets=("cifar10_few",), algorithms=("dec",), seeds=(1,), protocol=replace(SMALL, rows=20))
    sample = study.protocol.sample("cifar10_few", str(colours))
    assert len(sample.classes) == 20 and len(sample.held_out.classes) == 10
    conditions = Conditions(work=str(colours / "work"), data=str(colours), device="cpu")
    with Store(colours / "store") as store, pytest.raises(ValueError, match="scored on a test part"):
        run_baselines(baselines_of(study), store, conditions)


def test_self_labeling_continues_the_clustering_of_another_study(colours, monkeypatch):
    def always_class_three(*given, **more):
        labeled = self_label(*given, **more)
        bias = torch.zeros_like(labeled.state["head_bias"])
        bias[..., 3] = 1e6
        return replace(labeled, state={**labeled.state, "head_bias": bias})

    monkeypatch.setattr("reclust.studies.execute.self_label", always_class_three)
    conditions = Conditions(work=str(colours / "work"), data=str(colours), device="cpu")
    study = Study("few", VARIANTS[:1], datasets=("cifar10_few",), algorithms=("idec",), seeds=(1,), protocol=SMALL)
    labeling = replace(study, name="labeled", protocol=replace(SMALL, labeling_epochs=2))
    with Store(colours / "store") as store:
        assert run(study, store, conditions=conditions, progress=False).finished == 1
        before = (colours / "work" / "clustered").stat().st_mtime_ns
        assert run(labeling, store, conditions=conditions, progress=False).finished == 1
        assert (colours / "work" / "clustered").stat().st_mtime_ns == before, "nothing was clustered again"
        (one,), (other,) = study.planned(), labeling.planned()
        assert one.key != other.key
        assert set(store.history(other.key)) == {"pretraining", "clustering", "warm-up", "self-labeling"}
        np.testing.assert_array_equal(store.array(one.key, "centers"), store.array(other.key, "centers"))
        assert (store.array(other.key, "test_labels") == 3).all(), "the head decides the test part"


def test_digits_have_no_test_part():
    sample = ContrastiveProtocol(rows=50).sample("digits", None)
    assert len(sample.classes) == 50 and sample.held_out is None


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_every_named_study_runs(name, tmp_path):
    """Its small form, smaller still: a hundred rows, and interventions that fire within a few epochs."""
    small = named(f"{name}-mini")
    shorter = {"pretraining_epochs": 1, "epochs": 6, "rows": 100, "batch_size": 50}
    if small.protocol.labeling("digits", "idec") is not None:
        shorter["labeling_epochs"] = 2
    study = replace(small, protocol=replace(small.protocol, **shorter))
    with Store(tmp_path / "store") as store:
        ran = run(study, store, progress=False)
        assert (ran.finished, ran.failures) == (len(study.planned()), [])


def test_without_light_images_are_seen_through_the_lens(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (20, 32, 32, 3), dtype=np.uint8)
    np.savez(tmp_path / "gtsrb_few.npz", images=images, labels=np.arange(20) % 5, split=np.zeros(20, np.uint8))
    protocol = named("best-of-colours").protocol
    seen = protocol.sample("gtsrb_few", tmp_path).inputs.samples
    np.testing.assert_allclose(seen, Lens(light="removed")(np.moveaxis(images / 255, -1, 1)), atol=1e-6)
    assert protocol.settings("gtsrb", "idec", pretrained=True).augment == ColorViews()
    assert protocol.preparation != named("best").protocol.preparation


def test_small_images_are_seen_as_estimators_see_them():
    X = load_digits().data
    own = named("best-of-small-images").protocol.sample("digits", None).inputs
    theirs = Preparation.fit(accept(X, image_shape=(8, 8)), standardize=True, lens=presets.best(10, presets.OBJECTIVES["idec"], channels=1).lens)
    rows = as_inputs(own)
    np.testing.assert_allclose(rows.normalize(rows.take(torch.arange(len(X)))), theirs.network_input(X), atol=1e-5)
