"""The scikit-learn contract, parameters, and fits of awkward data."""

import pickle
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from support import blobs, small_settings

import reclust
from reclust import (
    BRB,
    DCN,
    DEC,
    IDEC,
    Autoencoder,
    DCNObjective,
    DeepClustering,
    Every,
    Execution,
    IDECObjective,
    Intervention,
    KMeans,
    OwnAutoencoder,
    Recluster,
    ReclustWarning,
    SelfLabeling,
    SoftReset,
    TrainingFailed,
    train,
)
from reclust.interventions import MergedKMeans

X, Y = blobs(n=120)
FEW, _ = blobs(n=60)
IMAGES = np.random.default_rng(0).integers(0, 255, size=(40, 6, 5)).astype(np.uint8)


def quick(kind=IDEC, **changes):
    given = {"n_clusters": 4, "pretrain_epochs": 20, "epochs": 8, "batch_size": 32, "representation": Autoencoder((32, 16)),
             "intervention": BRB(3, method=KMeans(n_init=2)), "random_state": 0, "device": "cpu"}
    return kind(**{**given, **changes})


def small(kind=IDEC, k=4, **changes):
    """A fit in a fifth of a second, for what does not depend on how well it goes."""
    given = {"representation": Autoencoder((8,)), "pretrain_epochs": 2, "epochs": 3, "batch_size": 30, "intervention": None, "random_state": 0, "device": "cpu"}
    return kind(k, **{**given, **changes})


@parametrize_with_checks([quick(pretrain_epochs=2, epochs=3, intervention=BRB(2, method=KMeans(n_init=1)))])
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReclustWarning)  # the checks' tiny data leave clusters empty on purpose
        check(estimator)


@pytest.mark.parametrize("kind", [DEC, IDEC, DCN])
def test_the_three_find_obvious_clusters(kind):
    model = quick(kind).fit(X)
    assert adjusted_rand_score(Y, model.labels_) > 0.9
    assert (model.labels_ == model.predict(X)).all() and set(model.labels_) == {0, 1, 2, 3}
    assert model.cluster_centers_.shape == (4, 4) and model.n_features_in_ == 12 and model.n_clusters_ == 4
    assert model.transform(X).shape == (120, 4)
    probabilities = model.predict_proba(X)
    assert (probabilities.argmax(1) == model.labels_).all()
    assert probabilities.sum(1) == pytest.approx(np.ones(120))


def test_scales_and_constant_features_do_not_matter():
    scaled = np.column_stack([X * 10.0 ** np.arange(-6, 6), np.full(120, 7.0), np.zeros(120)])
    longer = quick(pretrain_epochs=30, epochs=15, intervention=BRB(5, method=KMeans(n_init=2)))
    assert adjusted_rand_score(Y, longer.fit(scaled).labels_) > 0.9
    assert small(standardize=False).fit(X).preparation_.first.scale == 1


def test_n_init_keeps_the_replica_with_the_highest_score_and_shows_all():
    model = quick(n_init=3, pretrain_epochs=5).fit(X)
    scores = [replica.score for replica in model.replicas_]
    assert len(scores) == 3 and model.best_replica_ == int(np.argmax(scores))
    assert all(replica.labels.shape == (120,) for replica in model.replicas_)
    assert adjusted_rand_score(model.labels_, model.replicas_[model.best_replica_].labels) == 1
    assert [replica.seed for replica in small(n_init=2, k=4).fit(X).replicas_] == [replica.seed for replica in model.replicas_[:2]]


def test_labels_given_to_fit_are_scored_and_change_nothing():
    blind, scored = small(n_init=2).fit(X), small(n_init=2).fit(X, np.array(list("abcd"))[Y])
    assert (blind.labels_ == scored.labels_).all()
    assert "accuracy" in scored.history_["clustering"] and "accuracy" not in blind.history_["clustering"]
    assert scored.history_["clustering"]["accuracy"].values[-1] == pytest.approx(reclust.metrics.accuracy(Y, scored.labels_))


@pytest.mark.parametrize(("n", "k"), [(2, 1), (2, 2), (5, 5), (30, 1)])
def test_tiny_data(n, k):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReclustWarning)
        model = small(k=k).fit(X[:n])
    assert set(model.labels_) <= set(range(k)) and (model.predict(X[:n]) == model.labels_).all()


def test_pipeline_clone_grid_search_set_output_and_pickle():
    pd = pytest.importorskip("pandas")
    pipeline = make_pipeline(MinMaxScaler(), quick()).fit(X)
    assert adjusted_rand_score(Y, pipeline.predict(X)) > 0.9
    assert clone(quick(lr=3e-3)).get_params()["lr"] == 3e-3
    scorer = lambda model, X, y: adjusted_rand_score(y, model.predict(X))  # noqa: E731
    search = GridSearchCV(quick(pretrain_epochs=10, epochs=6), {"n_clusters": [2, 4]}, scoring=scorer, cv=2).fit(X, Y)
    assert search.best_params_ == {"n_clusters": 4}
    frame = small().fit(X).set_output(transform="pandas").transform(X)
    assert isinstance(frame, pd.DataFrame) and list(frame.columns) == ["idec0", "idec1", "idec2", "idec3"]
    model = small().fit(X)
    assert (pickle.loads(pickle.dumps(model)).predict(X) == model.labels_).all()


def test_ones_own_modules():
    encoder = torch.nn.Sequential(torch.nn.Linear(12, 24), torch.nn.Tanh(), torch.nn.Linear(24, 5))
    decoder = torch.nn.Sequential(torch.nn.Linear(5, 24), torch.nn.Tanh(), torch.nn.Linear(24, 12))
    given = encoder[0].weight.detach().clone()
    model = quick(representation=OwnAutoencoder(encoder, decoder)).fit(X)
    assert adjusted_rand_score(Y, model.labels_) > 0.9 and model.transform(X).shape == (120, 5)
    assert torch.equal(encoder[0].weight, given), "the user's modules are left alone"
    own = OwnAutoencoder(encoder, decoder, weights="given")
    kept = quick(representation=own, pretrain_epochs=0, epochs=1, lr=1e-30, intervention=None).fit(X)
    assert torch.allclose(kept.result_.parameters["encoder.0.weight"][0], given)


def test_the_intervention_is_brb_unless_said_otherwise_and_a_warning_tells_when_it_never_fires():
    assert IDEC(10)._recipe().settings.intervention.steps == BRB(method=MergedKMeans()).steps
    assert IDEC(10, intervention=None)._recipe().settings.intervention is None
    with pytest.warns(ReclustWarning, match="never fires within epochs=2") as seen:
        quick(epochs=2).fit(X)
    assert len(seen) == 1


def test_the_paper_preset_is_the_published_protocol():
    settings = DCN(10, preset="paper")._recipe().settings
    assert settings.objective == reclust.DCNObjective(weight=0.025, rate="constant", reduction="mean_over_clusters")
    assert (settings.pretraining.epochs, settings.clustering.epochs, settings.clustering.batch_size) == (250, 400, 256)
    assert settings == reclust.estimators.presets.paper_protocol(10, reclust.DCNObjective())
    assert DCN(10, preset="paper", epochs=70)._recipe().settings.clustering.epochs == 70


@pytest.mark.parametrize(("changes", "data", "message"), [
    ({}, np.where(X > 3, np.inf, X), "missing or infinite values in 'feature"), ({}, X[:0], "0 sample"),
    ({"n_clusters": 10}, X[:7], "n_clusters=10 needs at least 10 samples, X has n_samples=7"),
    ({"epochs": 0}, X, "epochs must be an integer of at least 1"), ({"pretrain_epochs": -1}, X, "pretrain_epochs must be an integer of at least 0"),
    ({"device": "abacus"}, X, "cannot be used here"), ({"n_init": 0}, X, "n_init must be"), ({"lr": -1.0}, X, "lr must be above 0"),
    ({"preset": "magic"}, X, "preset must be one of"), ({"augment": "magic"}, X, "augment must be one of auto"),
    ({"intervention": "magic"}, X, "intervention must be"), ({"image_shape": (5, 5)}, X, "image_shape=\\(5, 5\\) does not match"),
    ({"n_clusters": 0}, X, "n_clusters must be an integer"), ({"preset": ["best"]}, X, "preset must be one of"), ({"device": None}, X, "device=None cannot be used"),
])
def test_bad_input_gets_a_clear_error_before_training(changes, data, message):
    with pytest.raises(ValueError, match=message):
        quick(**changes).fit(data)


def test_the_general_estimator_takes_any_objective():
    model = quick(DeepClustering, objective=IDECObjective(0.2)).fit(X)
    assert adjusted_rand_score(Y, model.labels_) > 0.9
    with pytest.raises(ValueError, match="objective must be an instance of Objective"):
        quick(DeepClustering).fit(X)


# Found before training


@pytest.fixture
def no_training(monkeypatch):
    monkeypatch.setattr("reclust.training.phase.Phase.run", lambda *_: pytest.fail("training had begun"))


@pytest.mark.parametrize("y", [Y[:-1], np.append(Y, 0), Y[:0], Y.tolist()[:7], np.stack([Y, Y], axis=1)], ids=["short", "long", "empty", "list", "two columns"])
def test_labels_that_do_not_go_with_the_samples_are_refused_before_training(no_training, y):
    with pytest.raises(ValueError, match="inconsistent numbers of samples|1d array"):
        quick().fit(X, y)


@pytest.mark.parametrize(("changes", "data", "message"), [
    ({"augment": "affine"}, X, "image_shape.*\\(2, 12\\)"), ({"augment": "noise"}, IMAGES, "for tables.*\\(2, 1, 6, 5\\)"),
    ({"augment": "color"}, X, "image_shape"), ({"augment": 5}, X, "augment must be an instance of Callable, got 5"),
    ({"augment": lambda x, keys: x[..., :3]}, X, "must keep torch.float32 \\(2, 12\\), got .* \\(2, 3\\)"),
    ({"augment": lambda x, keys: x.numpy()}, X, "got float32 "),
    ({"intervention": SoftReset(0.8)}, X, "intervention must be an instance of Intervention, got SoftReset"),
    ({"intervention": BRB}, X, "intervention must be an instance of Intervention, got .*: write BRB\\(\\)"),
    ({"intervention": Every}, X, "intervention must be an instance of Intervention, got .*: write Every\\(\\)"),
    ({"objective": "dec"}, X, "objective must be an instance of Objective, got 'dec'"),
    ({"objective": DCNObjective}, X, "objective must be an instance of Objective, got .*: write DCNObjective\\(\\)"),
    ({"representation": Autoencoder}, X, "representation must be an instance of Representation, got .*: write Autoencoder"),
    ({"representation": torch.nn.Linear(12, 4)}, X, "representation must be an instance of Representation, got Linear"),
    ({"intervention": Every(5, (SoftReset(0.8, blocks=("layer7",)),))}, X, "No block named 'layer7' to reset, only layer1, layer2, embedding"),
    ({"intervention": BRB(5, keep={"mlp": 0.5})}, X, "No block named 'mlp' to reset"),
    ({"n_init": 2, "select": "best"}, X, "select must be an instance of Callable"), ({"image_shape": (4, 4)}, IMAGES, "image_shape=\\(4, 4\\) does not match"),
])
def test_things_of_the_wrong_kind_are_refused_before_training(no_training, changes, data, message):
    with pytest.raises(ValueError, match=message):
        quick(**changes).fit(data)


@pytest.mark.parametrize("changes", [{}, {"n_init": 2}, {"kind": DCN}], ids=["one", "two", "dcn"])
def test_what_the_last_step_broke_is_reported_and_not_returned(changes):
    """One step in all: its loss was a number, and only the embeddings after it are none."""
    model = small(**{"pretrain_epochs": 0, "epochs": 1, "batch_size": 120, "lr": 1e30, **changes})
    with pytest.warns(ReclustWarning, match="became nan in epoch 0 of clustering: it is dropped"), pytest.raises(TrainingFailed, match="lr \\(now 1e\\+30\\)"):
        model.fit(X)


def test_complete_settings_can_be_the_preset():
    settings = reclust.estimators.presets.paper("usps", "dcn", pretrained=False, intervention="recluster")
    same = reclust.DCN(10, preset=settings)._recipe().settings
    assert same == settings
    assert DeepClustering(10, preset=settings)._recipe().settings == settings
    changed = DCN(7, preset=settings, epochs=30, pretrain_epochs=5, intervention=None)._recipe().settings
    assert (changed.n_clusters, changed.clustering.epochs, changed.pretraining.epochs, changed.intervention) == (7, 30, 5, None)
    with pytest.raises(ValueError, match="preset is for DCNObjective, not for IDEC"):
        IDEC(10, preset=settings)._recipe()


def test_a_generator_goes_on_from_its_own_checkpoint(tmp_path):
    model = small(random_state=np.random.RandomState(0))
    first = model.fit(X, checkpoint=tmp_path / "run.ckpt").labels_
    assert (model.fit(X, checkpoint=tmp_path / "run.ckpt").labels_ == first).all()


def test_missing_classes_are_refused_by_fit_and_by_reports(tmp_path):
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="1 of 120 labels are missing, the first in row 1"):
        quick().fit(X, pandas.Series([None, *Y[1:].astype(str)], dtype="string"))
    with pytest.raises(ValueError, match="2 of 120 labels are missing"):
        small().fit(X).report(tmp_path / "r.html", X, [None, None, *Y[2:].astype(str)])


# Numbers that go wrong


@pytest.mark.filterwarnings("ignore::reclust.ReclustWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", [DEC, IDEC, DCN])
@pytest.mark.parametrize("data", [
    FEW * 1e300, FEW * 1e-300, FEW * np.logspace(-200, 200, 12), np.c_[FEW, np.full(60, 7.0)], np.repeat(FEW[:3], 20, axis=0), np.vstack([FEW, np.full((1, 12), 1e12)]),
    np.vstack([np.zeros((59, 3)), np.ones((1, 3))]), np.where(np.arange(60)[:, None] % 2, 1.7e308, -1.7e308) * np.ones(3), FEW[:4], FEW[:, :1],
], ids=["huge", "tiny", "mixed", "constant feature", "duplicates", "outlier", "imbalanced", "largest numbers", "as few as clusters", "one feature"])
def test_awkward_data_is_clustered(kind, data):
    before = data.copy()
    model = small(kind).fit(data)
    assert (data == before).all() and np.isfinite(model.transform(data)).all() and (model.predict(data) == model.labels_).all()


def test_exploding_gradients_are_clipped_and_reported():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model = small(standardize=False).fit(FEW * 1e6)
    said = [str(one.message) for one in seen if "Gradients explode" in str(one.message)]
    assert [text.partition(" of ")[2].partition(",")[0] for text in said] == ["pretraining", "clustering"], "once a phase"
    assert all("clipped to 500" in text and "standardize=True" in text for text in said)
    assert np.isfinite(model.transform(FEW)).all()


@pytest.mark.filterwarnings("ignore:Gradients explode")
def test_a_loss_that_is_no_number_is_an_error_with_a_remedy():
    with pytest.warns(ReclustWarning, match="became (inf|nan)"), pytest.raises(TrainingFailed, match="check the scale of the data"):
        small(standardize=False).fit(FEW * 1e20)


class Banished(Intervention):
    """Move two centers away from all samples, and recluster later."""

    def fires(self, epoch):
        return epoch in (3, 13)

    def __call__(self, epoch, target):
        if epoch == 3:
            target.centers[..., :2, :] = 1e4
        elif epoch == 13:
            Recluster(KMeans(n_init=5))(target.at(epoch))
        return self.fires(epoch)


def test_the_history_tells_when_clusters_die_and_are_revived():
    columns = small(DEC, intervention=Banished(), epochs=15).fit(FEW).history_["clustering"]
    assert columns["clusters"].epochs.tolist() == [-1, 2, 3, 9, 12, 13, 14] and columns["clusters"].values.tolist() == [4, 4, 2, 2, 2, 4, 4]
    assert columns["clusters_after_reset"].epochs.tolist() == [3, 13] and columns["clusters_after_reset"].values.tolist() == [2, 4]


# Starting from another fit


def test_a_fitted_estimator_is_a_start(tmp_path):
    first = small(k=3).fit(FEW)
    again, by_result = (small(k=3).fit(FEW, start=start) for start in (first, first.result_))
    assert (again.labels_ == by_result.labels_).all()
    with pytest.raises(ValueError, match="start must be an instance of Result, got 3"):
        again.fit(FEW, start=3)
    assert (again.fit(FEW, start=again).labels_.shape == again.labels_.shape)  # nothing is forgotten before
    again = small(k=3).fit(FEW, start=first)
    first.save(tmp_path / "m.reclust")
    with pytest.raises(ValueError, match=r"holds a model, not a result: `reclust.load` reads models"):
        small(k=3).fit(FEW, start=tmp_path / "m.reclust")
    assert (small(k=3).fit(FEW, start=reclust.load(tmp_path / "m.reclust")).labels_ == again.labels_).all()


def test_a_fitted_estimator_hands_on_the_replica_that_it_kept():
    first = small(k=3, n_init=4, epochs=4).fit(FEW)
    object.__setattr__(first, "best_replica_", 3)
    still = small(k=3, epochs=1, lr=1e-12, random_state=7).fit(FEW, start=first)
    for name, stack in still.result_.parameters.items():
        torch.testing.assert_close(stack[0], first.result_.parameters[name][3], rtol=0, atol=1e-6)
    with pytest.raises(ValueError, match=r"start has 0 replicas with seed"):
        small(k=3, random_state=7).fit(FEW, start=first.result_)


# Warnings name the user's line


@pytest.fixture(scope="module")
def clusterer():
    return IDEC(2, preset=small_settings(n_clusters=2), intervention=None, random_state=0, device="cpu").fit(X)


@pytest.mark.parametrize("call", [
    lambda clusterer: IDEC(2, preset=small_settings(), time_budget=1e-6, device="cpu").fit(X),
    lambda clusterer: train(X, small_settings(), seeds=[0], execution=Execution(device="cpu", time_budget=1e-6)),
    lambda clusterer: SelfLabeling(clusterer, time_budget=1e-6, device="cpu").fit(X),
], ids=["estimator", "train", "SelfLabeling"])
def test_a_warning_names_the_users_file(clusterer, call):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ReclustWarning)
        call(clusterer)
    about = [one for one in said if "time budget" in str(one.message)]
    assert about and {one.filename for one in about} == {__file__}
