"""The front door: any data, labels that are the network's, members as evidence."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.utils.estimator_checks import parametrize_with_checks
from support import blobs

import reclust
from reclust import Reclust, ReclustWarning, metrics
from reclust.data.accept import accept
from reclust.ensemble.recipes import Effort
from reclust.estimators import reclust as room
from reclust.estimators.kinds import kind_of
from reclust.report.fit import fit_data

X, Y = blobs(150)


def quick(n_clusters=4, **changes):
    return Reclust(n_clusters, **{"effort": "quick", "random_state": 0, "device": "cpu", **changes})


@pytest.fixture(autouse=True)
def small_efforts(monkeypatch):
    monkeypatch.setitem(room.EFFORTS, "normal", Effort(1, 1, 30))
    monkeypatch.setitem(room.EFFORTS, "quick", Effort(1, 0, 30))


@parametrize_with_checks([quick()])
def test_scikit_learn_checks(estimator, check, monkeypatch):
    monkeypatch.setitem(room.EFFORTS, "quick", Effort(1, 0, 10))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReclustWarning)
        check(estimator)


@pytest.mark.parametrize("effort", ["quick", "normal"])
def test_tables(effort):
    model = quick(effort=effort).fit(X)
    assert metrics.ari(Y, model.labels_) > 0.95 and model.agreement_ > 0.9
    assert (model.predict(X) == model.labels_).all() and model.transform(X).shape == (150, 16)
    probabilities = model.predict_proba(X)
    assert (probabilities.argmax(1) == model.labels_).all() and probabilities.sum(1) == pytest.approx(1)
    assert len(model.candidates_) == 10
    assert all(member.labels.shape == (150,) for member in model.candidates_)


def test_embeddings_are_recognized_by_their_length():
    wide = blobs(300, features=20)[0]
    unit = wide / np.linalg.norm(wide, axis=1, keepdims=True)
    for given, k_means in ((unit, True), (wide, False)):
        methods = {member.method for member in quick().fit(given).candidates_}
        assert (methods == {"k-means"}) == k_means
    assert {member.method for member in quick(kind="table").fit(unit).candidates_} != {"k-means"}


def test_images_are_clustered_by_networks_on_augmented_pairs():
    digits = load_digits()
    some = np.flatnonzero(digits.target < 3)[:150]
    model = quick(3, effort="normal").fit(digits.images[some])
    assert {member.method for member in model.candidates_} == {"neighbor network"}
    assert model.result_.seconds["members"] > 0
    assert metrics.accuracy(digits.target[some], model.labels_) > 0.9
    flat = quick(3, effort="normal", image_shape=(8, 8)).fit(digits.data[some])
    assert (flat.labels_ == model.labels_).all()


def test_wide_sparse_rows():
    rows = sparse.csr_matrix(np.pad(np.maximum(X, 0), ((0, 0), (0, 300))))
    assert metrics.ari(Y, quick().fit(rows).labels_) > 0.9


def test_rows_beyond_the_limit_are_labeled_by_the_network(monkeypatch):
    monkeypatch.setattr(room, "QUICK_ROWS", 100)
    model = quick().fit(X)
    assert metrics.ari(Y, model.labels_) > 0.95
    assert all((member.labels >= 0).sum() == 100 for member in model.candidates_)


def test_files_and_reports_hold_the_members(tmp_path):
    model = quick().fit(X)
    model.save(tmp_path / "model")
    loaded = reclust.load(tmp_path / "model")
    assert (loaded.predict(X) == model.labels_).all() and loaded.agreement_ == model.agreement_
    assert [member.name for member in loaded.candidates_] == [member.name for member in model.candidates_]
    for one in (model, loaded):
        one.report(tmp_path / "report.html", X, Y)
        assert "mixture, winsorized" in (tmp_path / "report.html").read_text()


def test_a_seed_means_the_same_labels():
    assert (quick().fit(X).labels_ == quick().fit(X).labels_).all()


def test_data_without_clusters_are_called_so():
    noise = np.random.default_rng(0).normal(size=(500, 30))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = quick(8).fit(noise)
    assert any("members hardly agree" in text for text in model.warnings_)


def test_a_time_budget_leaves_members_out():
    with pytest.warns(ReclustWarning, match="time budget was spent after 5 members"):
        model = quick(effort="normal", time_budget=1e-6).fit(X)
    assert len(model.candidates_) == 5 and metrics.ari(Y, model.labels_) > 0.9


def test_an_interrupted_fit_continues(tmp_path, monkeypatch):
    whole = quick(effort="normal").fit(X)
    train, calls = room.train, []

    def interrupted(*given, **options):
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return train(*given, **options)

    monkeypatch.setattr(room, "train", interrupted)
    checkpoint = tmp_path / "state"
    with pytest.raises(KeyboardInterrupt):
        quick(effort="normal").fit(X, checkpoint=checkpoint)
    again = quick(effort="normal").fit(X, checkpoint=checkpoint)
    assert (again.labels_ == whole.labels_).all()
    np.testing.assert_array_equal(again.transform(X), whole.transform(X))


@pytest.mark.parametrize(("given", "message"), [
    ({"effort": "extreme"}, "effort must be one of quick, normal, high"),
    ({"kind": "text"}, "kind must be one of auto, table, embeddings, images"),
    ({"kind": "images"}, "needs images"),
    ({"n_clusters": 200}, "n_clusters=200 needs at least 200 samples"),
    ({"n_clusters": 0}, "n_clusters must be an integer of at least 1")])
def test_mistakes_are_explained(given, message):
    with pytest.raises(ValueError, match=message):
        quick(**given).fit(X)


def customers(n=240, seed=0):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    kind = np.arange(n) % 3
    table = pd.DataFrame({
        "customer": [f"C{i:04}" for i in range(n)], "spent": np.exp(rng.normal(kind, 0.5)), "age": rng.normal(30 + 15 * kind, 8),
        "channel": np.where(rng.random(n) < 0.85, np.array(["shop", "online", "phone"])[kind], "fax"), "member": rng.random(n) < 0.5,
        "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")})
    return table.mask(pd.DataFrame({name: rng.random(n) < 0.05 * (name != "customer") for name in table})), kind


@pytest.mark.parametrize("make", [quick, lambda k: reclust.IDEC(k, pretrain_epochs=1, epochs=1, intervention=None, random_state=0)])
def test_tables_as_they_come(make, tmp_path):
    table, kind = customers()
    with pytest.warns(ReclustWarning, match="left out: 'customer'"):
        model = make(3).fit(table)
    assert model.warnings_ == ["Columns that name the rows or hold nothing to compare are left out: 'customer'."]
    assert model.ids_[1] == "C0001" and list(model.feature_names_in_) == list(table.columns[1:]) and model.n_features_in_ == 5
    model.save(tmp_path / "m.reclust")
    loaded = reclust.load(tmp_path / "m.reclust")
    shuffled = table.iloc[::-1, ::-1].assign(unknown="x")
    for one in (model, loaded):
        assert (one.predict(shuffled) == model.labels_[::-1]).all() and (one.predict(table[:1]) == model.labels_[:1]).all()
    model.report(tmp_path / "r.html", table, kind)
    page = (tmp_path / "r.html").read_text()
    assert "channel=shop" in page and "Warning of the fit" in page and loaded.warnings_ == model.warnings_
    if make is quick:
        assert metrics.ari(kind, model.labels_) > 0.7
        assert {member.method for member in model.candidates_} == {"mixture of numbers and categories"}


def test_quick_fits_of_images_see_them_through_the_lens():
    """Two colors in any light: k-means on the pixels tells light from dark, the report tells why we do not."""
    rng, kind = np.random.default_rng(0), np.arange(60) % 2
    color = np.array([[200, 60, 60], [60, 60, 200]])[kind][:, None, None]
    images = np.clip(color * rng.uniform(0.1, 1.2, (60, 1, 1, 1)) + rng.normal(0, 3, (60, 8, 8, 3)), 0, 255).astype(np.uint8)
    model = Reclust(2, effort="quick", random_state=0, device="cpu").fit(images)
    assert model.preparation_.lens.light == "removed" and metrics.ari(kind, model.labels_) == 1
    assert "Brightness was removed" in [one["title"] for one in fit_data(model, images, title="t")["findings"]]


def test_clusters_of_very_different_size_in_principal_components():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(5), (10, 15, 30, 60, 185))
    X = PCA(10, random_state=0).fit_transform(rng.normal(size=(300, 40)) + rng.normal(size=(5, 40))[y] * 2)
    assert kind_of(accept(X)) == "embeddings" and kind_of(accept(X * np.arange(1, 11))) == "table"
    assert metrics.ari(y, Reclust(5, random_state=0).fit_predict(X)) > 0.98


def test_a_column_of_years_makes_rows_of_equal_length_but_no_embeddings():
    rng = np.random.default_rng(0)
    table, unit = rng.normal(size=(100, 12)), rng.normal(size=(100, 12))
    assert kind_of(accept(np.column_stack([rng.integers(2010, 2015, 100), table]))) == "table"
    assert kind_of(accept(unit / np.linalg.norm(unit, axis=1, keepdims=True))) == "embeddings"


def test_more_columns_than_rows():
    wide, _ = blobs(60)
    X = wide @ np.random.default_rng(0).normal(size=(wide.shape[1], 100)) + np.random.default_rng(1).normal(size=(60, 100))
    for changes in ({}, {"effort": "normal"}):
        assert metrics.ari(quick(**changes).fit(X).labels_, blobs(60)[1]) > 0.9


def test_new_samples_have_the_columns_of_the_fit():
    pd = pytest.importorskip("pandas")
    model = quick().fit(pd.DataFrame(X[:, :3], columns=list("abc")).assign(kind=np.array(["u", "v"])[Y % 2]))
    with pytest.raises(ValueError, match=r"X has shape \(150, 3\), but the fit had 4 columns"):
        model.predict(X[:, :3])
