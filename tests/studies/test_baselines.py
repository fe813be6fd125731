"""Baselines are k-means and a mixture on pixels and embeddings, recorded like runs of a study."""

from dataclasses import replace

import pytest

from reclust.studies import Store, execute
from reclust.studies.baselines import EncodedKMeans, PixelKMeans, baselines_of, run_baselines
from reclust.studies.execute import Conditions
from reclust.utils.exceptions import StopTraining
from studies.tiny import tiny_study


@pytest.fixture(scope="module")
def with_baselines(tmp_path_factory):
    folder = tmp_path_factory.mktemp("baselines")
    study = tiny_study(datasets=("digits",))
    conditions = Conditions(work=str(folder / "work"))
    with Store(folder / "store") as store:
        assert run_baselines(baselines_of(study), store, conditions, datasets=["usps"]) == (0, 0)
        assert run_baselines(baselines_of(study), store, conditions, methods=[PixelKMeans()]) == (2, 0)
        assert run_baselines(baselines_of(study), store, conditions) == (2, 0)
        other = baselines_of(replace(study, seeds=(study.seeds[0], 77)), [PixelKMeans()])
        assert run_baselines(other, store, conditions) == (1, 0)
        assert store.planned("baselines") == 5, "what another study asked for stays"
        store.plan("baselines", "spec", [run for *_, run in baselines_of(study).runs()])
        assert run_baselines(baselines_of(study), store, conditions) == (0, 0), "they are in the store"
        yield store, study, conditions


def test_time_that_runs_out_in_the_middle_of_an_encoder_ends_baselines_in_peace(tmp_path, monkeypatch):
    def stopped(*given):
        raise StopTraining

    monkeypatch.setattr("reclust.studies.baselines.pretrained", stopped)
    with Store(tmp_path / "store") as store:
        assert run_baselines(baselines_of(tiny_study(datasets=("digits",))), store, Conditions(work=str(tmp_path / "work"))) == (2, 2)
        assert store.status("baselines")[0].waiting == 2


def test_baselines_are_k_means_on_pixels_and_on_embeddings(with_baselines):
    from sklearn.cluster import KMeans
    from sklearn.metrics import normalized_mutual_info_score

    store, study, conditions = with_baselines
    sample = study.protocol.sample("digits", None)
    group = next(group for group in study.groups() if group.pretraining is not None)
    start = execute.pretrained(group.pretraining, conditions)
    assert len(list((store.path.parent / "work" / "pretrained").iterdir())) == 1, "the study's own pretraining is used"
    runs = store.runs("baselines").set_index(["algorithm", "seed"])
    scaled = ((sample.inputs.samples - sample.inputs.mean) / sample.inputs.std).reshape(100, -1)
    for i, seed in enumerate(study.seeds):
        import torch

        embedded = start.model(start.seeds.index(seed)).embed(torch.from_numpy(scaled).float().reshape(100, *start.sample_shape))
        for method, data in ((PixelKMeans, scaled), (EncodedKMeans, embedded.numpy())):
            row = runs.loc[(method.algorithm, seed)]
            labels = store.labels(row["run"])
            oracle = KMeans(10, n_init=10, random_state=i).fit(data)
            inertia = sum(((data[labels == j] - data[labels == j].mean(0)) ** 2).sum() for j in range(10))
            assert inertia <= 1.02 * oracle.inertia_
            assert row["nmi"] == pytest.approx(normalized_mutual_info_score(sample.classes, labels))
            assert store.settings(row["run"]) == method() and row["pretrained"] == method.pretrained
