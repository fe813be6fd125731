"""Stores read as one say what one store would say; a compact store loses nothing that tables are made from."""

import json
import sqlite3

import numpy as np
import pytest
from studies.invented import RESETS, fill

from reclust.data import DataError
from reclust.studies import Outcome, PlannedRun, Store, StoreReader
from reclust.studies.store.records import compact, gathered


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("records") / "whole.sqlite"
    with Store(path) as store:
        fill(store, "acc-table", seeds=1, sets=("usps", "gtsrb"))
        fill(store, "training-curves", seeds=1, sets=("usps",))
        fill(store, "embeddings", sets=("usps",))
    return path


@pytest.fixture(scope="module")
def small(whole):
    path = whole.with_name("small.sqlite")
    compact([whole], path)
    return path


def test_a_compact_store_keeps_all_but_labels_centres_and_points_of_curves(whole, small):
    with StoreReader(whole) as full, StoreReader(small) as kept:
        for study in full.studies():
            ours, theirs = (store.runs(study) for store in (kept, full))
            assert ours.equals(theirs) and kept.seconds(study).equals(full.seconds(study))
            run = ours["run"].iloc[-1]
            assert kept.settings(run) == full.settings(run) and kept.provenance(run) == full.provenance(run)
            assert full.labels(run).shape == (300,)
            with pytest.raises(KeyError, match="has no labels"):
                kept.labels(run)
            for name, curve in kept.history(run)["clustering"].items():
                other = full.history(run)["clustering"][name]
                rows = np.isin(other.epochs, curve.epochs)
                np.testing.assert_array_equal(other.epochs[rows], curve.epochs)
                bits = 12 if curve.values[0].size <= 64 else 7  # embeddings are only drawn
                np.testing.assert_allclose(curve.values, other.values[rows], rtol=2.0 ** -(bits + 1))
        run = full.runs("embeddings")["run"][0]
        np.testing.assert_array_equal(*(store.array(run, "shown_classes") for store in (full, kept)))


def test_it_keeps_curves_around_resets_and_embeddings_around_two_of_them(small):
    with StoreReader(small) as kept:
        for study, name in (("acc-table", "label_change"), ("training-curves", "distance_ratio_histogram")):
            curve = kept.history(kept.runs(study)["run"][0], [name])["clustering"][name]
            assert {-1, 399, *RESETS, *(epoch - 1 for epoch in RESETS)} <= set(curve.epochs.tolist())
        columns = kept.history(kept.runs("embeddings")["run"][0])["clustering"]
        assert columns["embedding"].epochs.tolist() == [-1, 19, 20, 39, 199, 200, 219, 399]
        assert columns["embedding_after_reset"].epochs.tolist() == [20, 200, 380]


def test_the_same_stores_give_the_same_bytes_and_compacting_again_changes_nothing(whole, small, tmp_path):
    for source in (whole, small):
        compact([source], tmp_path / "again.sqlite")
        assert (tmp_path / "again.sqlite").read_bytes() == small.read_bytes()
        (tmp_path / "again.sqlite").unlink()
    assert small.stat().st_size < whole.stat().st_size / 2
    assert not list(small.parent.glob("small.sqlite-*")), "no log beside it"
    with pytest.raises(FileExistsError, match="exists already"):
        compact([whole], small)


def test_fewer_curves_or_none(whole, tmp_path):
    compact([whole], tmp_path / "some.sqlite", curves=("accuracy",))
    compact([whole], tmp_path / "none.sqlite", curves=())
    with pytest.raises(DataError, match=r"^The stores have no curves \['acuracy'\], only \['"):
        compact([whole], tmp_path / "wrong.sqlite", curves=("acuracy",))
    with StoreReader(tmp_path / "some.sqlite") as some, StoreReader(tmp_path / "none.sqlite") as none:
        run = some.runs("acc-table")["run"][0]
        assert set(some.history(run)["clustering"]) == {"accuracy", "accuracy_after_reset", "fired"}
        assert set(none.history(run)["clustering"]) == {"fired"}


def test_numbers_that_are_none_stay_so(tmp_path):
    from support import small_settings

    from reclust.training.history import Curve

    odd = np.array([[np.nan], [np.inf], [-np.inf], [0.0], [-1e-30], [3e38]], dtype=np.float32)
    with Store(tmp_path / "odd.sqlite") as store:
        store.plan("s", "spec", [PlannedRun("r", "g", "usps", "dec", "none", True, 1)])
        store.add(Outcome("g", ["r"], [small_settings()], {"acc": np.ones(1)}, {"clustering": {
            "loss": Curve(np.array([9, 19, 29, 39, 49, 59]), odd)}}, {}, {"a": 1.0}, {}))
    compact([tmp_path / "odd.sqlite"], tmp_path / "small.sqlite")
    with StoreReader(tmp_path / "small.sqlite") as kept:
        np.testing.assert_allclose(kept.history("r")["clustering"]["loss"].values, odd[:, 0], rtol=2.0**-13)


def test_parts_of_a_study_in_several_stores_make_one(whole, tmp_path):
    parts = [tmp_path / name for name in ("a.sqlite", "b.sqlite", "c.sqlite")]
    with Store(parts[0]) as store:
        fill(store, "acc-table", seeds=2, sets=("usps",))
    with Store(parts[1]) as store:  # under another name, and with other seeds' runs still waiting
        fill(store, "acc-table", seeds=3, sets=("gtsrb",), study="acc-table-gtsrb")
    with Store(parts[2]) as store:  # the same cells once more, by runs of other keys, which failed
        runs = [PlannedRun(f"other/{seed}", "other", "usps", "dec", "none", False, seed) for seed in (400, 148, 820)]
        store.plan("acc-table", "spec", runs)
        store.fail("other", [run.key for run in runs], "it failed")
    with gathered(reversed(parts), study=lambda reader, name: name.removesuffix("-gtsrb")) as reader:
        assert reader.studies() == ["acc-table"]
        found = reader.runs("acc-table")
        assert len(found) == 24 * 2 + 24 * 3 + 1 and (found["state"] == "finished").sum() == 24 * 5
        cells = {(one["dataset"], one["algorithm"], one["pretrained"], one["variant"]): one["runs"]
                 for one in reader.means("acc-table")}
        assert cells["usps", "dec", False, "none"] == 2, "the finished ones, not the failed ones of other keys"
        assert cells["gtsrb", "dcn", True, "brb"] == 3
    with gathered(parts, study=lambda reader, name: None) as reader:
        assert reader.studies() == []


def test_no_stores_are_an_empty_one():
    with gathered([]) as reader:
        assert reader.studies() == [] and json.dumps(reader.status()) == "[]"


def test_of_two_groups_of_the_same_cells_the_one_that_finished_whole_is_taken(tmp_path):
    def planned(group):
        return [PlannedRun(f"{group}{seed}", group, "usps", "idec", "best", True, seed) for seed in range(4)]

    for name, failed in (("a", {2: "it failed"}), ("b", {})):
        with Store(tmp_path / name) as store:
            store.plan("best", "spec", planned(name))
            store.add(Outcome(name, [run.key for run in planned(name)], [None] * 4, {"acc": np.arange(4) / 4}, {}, {}, {"a": 1.0}, {}, failed))
    with gathered([tmp_path / "a", tmp_path / "b"]) as reader:
        assert [group for (group,) in reader.finished("best", ("group",), ())] == ["b"] * 4


def test_a_compact_store_is_there_whole_or_not_at_all(whole, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("reclust.studies.store.records._smaller_curves", interrupted)
        compact([whole], tmp_path / "small.sqlite")
    assert list(tmp_path.iterdir()) == []
    compact([whole], tmp_path / "small.sqlite")
    assert [path.name for path in tmp_path.iterdir()] == ["small.sqlite"]


def test_a_damaged_store_is_named_not_the_new_one(whole, tmp_path):
    damaged = tmp_path / "damaged.sqlite"
    damaged.write_bytes(whole.read_bytes())
    with sqlite3.connect(damaged) as db:
        db.execute("UPDATE curves SET points = x'0102'")
    with pytest.raises(DataError, match=r"store \S+damaged\.sqlite cannot be used"):
        compact([damaged], tmp_path / "new.sqlite")
    assert not (tmp_path / "new.sqlite").exists()
