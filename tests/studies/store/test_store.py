"""What is written to a store is read back, whole, whatever happens to the writer."""

import itertools
import multiprocessing
import os
import random
import sqlite3
import sys
import time
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import memory_of, small_settings

from reclust import Curve
from reclust.studies import Outcome, PlannedRun, Store, StoreReader, export
from reclust.studies.store.records import gathered
from reclust.studies.store.schema import read_only_uri

R, N, K, D = 4, 30, 4, 3


def planned(group, size=R, study_factor=None, **cell):
    cell = {"dataset": "digits", "algorithm": "idec", "variant": "brb", "pretrained": True} | cell
    factors = {} if study_factor is None else {"keep": study_factor}
    return [PlannedRun(key=f"{group}-{i}", group=group, seed=i, factors=factors, **cell) for i in range(size)]


def outcome(group, size=R, seed=0, failed=None):
    rng = np.random.default_rng(seed)
    curve = Curve(np.array([-1, 0, 4]), rng.random((3, size)))
    return Outcome(
        group=group, runs=[f"{group}-{i}" for i in range(size)], settings=[small_settings()] * size,
        scores={name: rng.random(size) for name in ("acc", "nmi", "ari", "silhouette")},
        history={"clustering": {"accuracy": curve, "loss": Curve(np.array([0, 4]), rng.random((2, size)))}},
        arrays={"labels": rng.integers(K, size=(size, N)), "centers": rng.random((size, K, D)).astype(np.float32)},
        seconds={"clustering.training": 6.0, "clustering.reset": 2.0}, provenance={"device": "abacus"}, failed=failed or {})


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store.sqlite") as opened:
        yield opened


def test_what_a_group_produced_comes_back(store):
    made = outcome("a")
    store.plan("s", "spec", planned("a"))
    store.add(made)
    assert store.settings("a-2") == small_settings()
    assert store.provenance("a-2")["device"] == "abacus"
    np.testing.assert_array_equal(store.labels("a-2"), made.arrays["labels"][2])
    np.testing.assert_array_equal(store.array("a-2", "centers"), made.arrays["centers"][2])
    history = store.history("a-2")["clustering"]
    np.testing.assert_array_equal(history["accuracy"].epochs, [-1, 0, 4])
    np.testing.assert_allclose(history["accuracy"].values, made.history["clustering"]["accuracy"].values[:, 2], rtol=1e-6)
    runs = store.runs("s")
    np.testing.assert_array_equal(runs["acc"], made.scores["acc"])
    assert list(runs["seconds"]) == [2.0] * R
    assert list(store.seconds("s")["clustering.reset"]) == [0.5] * R
    assert list(store.measures("s")["value"]) == list(made.scores["silhouette"])


def test_curves_of_a_study_are_those_of_its_runs(store):
    store.plan("s", "spec", [*planned("a"), *planned("b")])
    store.add(outcome("a", seed=1))
    store.add(outcome("b", seed=2))
    frame = store.curves("s", ["loss", "accuracy"])
    for run in ("a-0", "b-3"):
        own = frame[frame["run"] == run].set_index("epoch")
        for name, curve in store.history(run)["clustering"].items():
            np.testing.assert_array_equal(own[name].dropna().index, curve.epochs)
            np.testing.assert_array_equal(own[name].dropna(), curve.values)


def test_a_name_by_itself_is_not_taken_for_its_letters(store):
    store.plan("s", "spec", planned("a"))
    store.add(outcome("a", seed=1))
    assert list(store.curves("s", "loss")) == ["run", "epoch", "loss"]
    assert list(store.history("a-0", "loss")["clustering"]) == ["loss"]
    assert store.means("s", by="variant", measures="acc") == store.means("s", by=["variant"], measures=["acc"])


def test_means_by_what_runs_do_not_have_are_refused(store):
    store.plan("s", "spec", planned("a", study_factor=0.8))
    with pytest.raises(KeyError, match="has no column 'varaint'; it has study, dataset, .*, group, keep"):
        store.means("s", by=["varaint"])


def test_means_are_those_of_pandas(store):
    store.plan("s", "spec", [*planned("a", variant="none"), *planned("b"), *planned("c", study_factor=0.8)])
    for i, group in enumerate("cab"):
        store.add(outcome(group, seed=i))
    frame = store.runs("s")
    for by in (["variant"], ["dataset", "algorithm", "pretrained", "variant"], ["keep"]):
        expected = frame.groupby(by, sort=False, dropna=False)["acc"].agg(["mean", "std", "sem", "max", "size"])
        means = store.means("s", by=by)
        assert [entry["runs"] for entry in means] == list(expected["size"])
        for ours, theirs in (("mean", "mean"), ("std", "std"), ("stderr", "sem"), ("best", "max")):
            np.testing.assert_allclose([entry[f"acc_{ours}"] for entry in means], expected[theirs])
    assert [entry["silhouette_mean"] for entry in store.means("s", by=["study"], measures=["silhouette"])] == pytest.approx(
        [store.measures("s")["value"].mean()])


def test_means_do_not_depend_on_the_order_of_commits(tmp_path):
    found = []
    for order in ("abc", "cab"):
        with Store(tmp_path / order) as store:
            store.plan("s", "spec", [run for group in "abc" for run in planned(group)])
            for group in order:
                store.add(outcome(group, seed=ord(group)))
            found.append(store.means("s"))
    assert found[0] == found[1]


def test_waiting_failed_retried_finished(store):
    store.plan("s", "spec", [*planned("a"), *planned("b"), *planned("c")])
    assert store.waiting("s") == {"a", "b", "c"}
    store.add(outcome("a"))
    store.add(outcome("b", failed={1: "its loss became nan"}))
    store.fail("c", [run.key for run in planned("c")], "Traceback: no")
    assert store.waiting("s") == set()
    (status,) = store.status()
    assert (status.planned, status.finished, status.failed, status.waiting) == (12, 7, 5, 0)
    assert [failure.error for failure in store.failures("s")] == ["its loss became nan"] + ["Traceback: no"] * 4
    assert store.retry("s") == 5
    assert store.waiting("s") == {"b", "c"}, "a group is indivisible"
    for group in "bc":
        store.add(outcome(group))
    assert store.status()[0].finished == 12


def test_settings_may_hold_numbers_that_are_not_finite(store):
    settings = small_settings()
    endless = replace(settings, clustering=replace(settings.clustering, clip_norm=float("inf")))
    store.plan("s", "spec", planned("a"))
    store.add(replace(outcome("a"), settings=[endless] * R))
    assert store.settings("a-0") == endless


def test_a_run_serves_every_study_that_names_it(store):
    store.plan("one", "spec", planned("a"))
    store.add(outcome("a"))
    store.plan("two", "spec", planned("a", variant="k-means"))
    assert store.waiting("two") == set()
    assert store.means("two")[0]["variant"] == "k-means"


def test_a_new_plan_replaces_the_old_one_and_keeps_what_was_produced(store):
    store.plan("s", "spec", planned("a"))
    store.add(outcome("a"))
    store.plan("s", "other", planned("b"))
    assert (store.status()[0].finished, store.waiting("s")) == (0, {"b"})
    store.plan("s", "spec", planned("a"))
    assert store.status()[0].finished == R


def test_merging_takes_what_is_missing(tmp_path):
    everything = [run for group in "abcd" for run in planned(group)]
    with Store(tmp_path / "other") as other:
        other.plan("s", "spec", everything)
        other.plan("t", "spec", planned("d", variant="none"))
        for group in "abd":
            other.add(outcome(group, seed=ord(group)))
        other.fail("c", [run.key for run in planned("c")], "no")
    with Store(tmp_path / "own") as own:
        own.plan("s", "spec", everything)
        own.add(outcome("a", seed=5))
        own.fail("b", [run.key for run in planned("b")], "no")
        assert own.merge(tmp_path / "other") == 2 * R
        assert own.waiting("s") == set() and len(own.failures("s")) == R
        np.testing.assert_array_equal(own.runs("s")["acc"][:R], outcome("a", seed=5).scores["acc"])
        np.testing.assert_array_equal(own.runs("s")["acc"][R : 2 * R], outcome("b", seed=ord("b")).scores["acc"])
        np.testing.assert_array_equal(own.labels("d-1"), outcome("d", seed=ord("d")).arrays["labels"][1])
        assert own.means("t")[0]["runs"] == R
        assert own.merge(tmp_path / "other") == 0, "merging twice changes nothing"
        assert own.planned("s") == 4 * R
    with Store(tmp_path / "further") as further:
        further.plan("s", "spec", planned("e", variant="other"))
        further.add(outcome("e"))
    with Store(tmp_path / "own") as own:
        assert own.merge(tmp_path / "further") == R and own.merge(tmp_path / "further") == 0
        assert own.planned("s") == 5 * R and own.runs("s")["variant"].tolist()[-R:] == ["other"] * R


@pytest.mark.parametrize("wrong", ["no store", "damaged", "other groups"])
def test_a_merge_blames_the_store_that_is_wrong(tmp_path, wrong):
    own, other = filled(tmp_path / "own"), tmp_path / "other"
    if wrong == "no store":
        other.write_text("no database" * 1000)
    elif wrong == "damaged":
        content = filled(other).read_bytes()
        other.write_bytes(content[:8192] + bytes(4096) + content[12288:])
    else:
        with Store(other) as store:
            store.add(replace(outcome("b"), runs=outcome("a").runs))
    with Store(own) as store, pytest.raises(ValueError) as told:
        store.merge(other)
    assert str(told.value).startswith(f"{other} was not merged into {own}" if wrong == "other groups" else f"The store {other} cannot be used")
    with StoreReader(own) as store:
        assert store.status("s")[0].finished == R


def test_a_run_under_two_names_is_one_run(tmp_path):
    for name in ("none", "plain"):
        with Store(tmp_path / name) as store:
            store.plan("s", "spec", planned("a", variant=name))
            store.add(outcome("a"))
    with gathered([tmp_path / "none", tmp_path / "plain"]) as both, Store(tmp_path / "none") as own:
        assert own.merge(tmp_path / "plain") == 0
        assert own.runs("s")["variant"].tolist() == both.runs("s")["variant"].tolist() == ["none"] * R


def test_exported_tables_hold_the_same_numbers(store, tmp_path):
    pandas = pytest.importorskip("pandas")
    store.plan("s", "spec", [*planned("a", study_factor=0.5), *planned("b")])
    store.add(outcome("a"))
    for kind in ("csv", "parquet"):
        if kind == "parquet":
            pytest.importorskip("pyarrow")
        runs, curves = export(store, tmp_path / kind, kind=kind)
        read = pandas.read_csv if kind == "csv" else pandas.read_parquet
        np.testing.assert_array_equal(read(runs)["acc"], store.seconds("s")["acc"])
        np.testing.assert_allclose(read(curves)["accuracy"], store.curves("s")["accuracy"], rtol=1e-6)


@pytest.mark.parametrize("values", [("auto", 0.5), (True, 2), ([1, "x"], None), (2**70, {"a": 1})])
def test_factors_of_several_types_are_exported_as_text(values, store, tmp_path):
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    store.plan("s", "spec", [*planned("a", study_factor=values[0]), *planned("b", study_factor=values[1])])
    for group in "ab":
        store.add(outcome(group))
    in_csv, in_parquet = (export(store, tmp_path / kind, kind=kind)[0] for kind in ("csv", "parquet"))
    found = pandas.read_parquet(in_parquet)["keep"]
    assert found.tolist() == pandas.read_csv(in_csv, dtype={"keep": str})["keep"].tolist() or values[1] is None
    assert found.dropna().map(type).eq(str).all() and found.notna().sum() == (R if values[1] is None else 2 * R)


def test_files_that_are_no_stores_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="study run"):
        StoreReader(tmp_path / "none")
    (tmp_path / "text").write_text("no database" * 100)
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE t (x)")
    other.close()
    newer = Store(tmp_path / "newer")
    newer._db.execute("PRAGMA user_version = 1000")
    newer.close()
    for name, message in (("text", "not a store"), ("other", "not a store"), ("newer", "newer reclust")):
        for kind in (Store, StoreReader):
            with pytest.raises(ValueError, match=message):
                kind(tmp_path / name)
    with Store(tmp_path / "good") as store, pytest.raises(KeyError, match="has no study 'x'"):
        store.means("x")


def write_for_ever(path, ready):
    store = Store(path)
    store.plan("s", "spec", [run for i in range(100) for run in planned(f"g{i}")])
    ready.set()
    for i in itertools.cycle(range(100)):
        store.add(outcome(f"g{i}", seed=i))


@pytest.mark.skipif(sys.platform == "win32", reason="writers are forked, which Windows cannot do")
def test_a_writer_killed_at_any_moment_leaves_a_valid_store(tmp_path):
    path, chance, last = tmp_path / "store", random.Random(0), 0
    fork = multiprocessing.get_context("fork")
    for _ in range(4):
        ready = fork.Event()
        writer = fork.Process(target=write_for_ever, args=(path, ready))
        writer.start()
        assert ready.wait(60)
        time.sleep(chance.uniform(0, 0.05))
        with StoreReader(path) as reader:  # while it is being written
            seen = reader.status()[0].finished
        writer.kill()
        writer.join()
        with Store(path) as store:
            assert store._db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            finished = store.status()[0].finished
            assert finished % R == 0, "groups are committed whole"
            assert finished >= max(seen, last), "what was committed stays"
            last = finished
            frame = store.runs("s")
            for group in frame.loc[frame["state"] == "finished", "group"].unique()[-5:]:
                np.testing.assert_array_equal(store.labels(f"{group}-1"), outcome(group, seed=int(group[1:])).arrays["labels"][1])
    assert last > 0


def test_a_store_in_a_folder_that_cannot_be_written_is_read(tmp_path, monkeypatch):
    folder = tmp_path / "kept"
    folder.mkdir()
    with Store(folder / "store") as store:
        store.plan("s", "spec", planned("a"))
        store.add(outcome("a"))
    monkeypatch.setattr("os.access", lambda path, mode: folder not in (Path(path), *Path(path).parents))
    with StoreReader(folder / "store") as reader, Store(tmp_path / "own") as own:
        assert "immutable" in read_only_uri(folder / "store") and reader.status()[0].finished == R
        assert own.merge(folder / "store") == R
        assert [path.name for path in folder.iterdir()] == ["store"]


def test_a_run_that_failed_has_no_scores_and_counts_no_time(store):
    store.plan("s", "spec", planned("a"))
    store.add(outcome("a", failed={1: "why"}))
    assert store.runs("s")["acc"].isna().tolist() == [False, True, False, False] and "a-1" not in set(store.measures("s")["run"])
    assert store.status("s")[0].seconds == 3 * 2.0 and store.means("s")[0]["runs"] == 3


def test_a_group_that_fails_later_leaves_nothing_of_what_it_was(store):
    store.plan("s", "spec", planned("a"))
    store.add(outcome("a"))
    assert store.finished("s", (), ("run",), ["brb"])
    store.fail("a", [run.key for run in planned("a")], "boom")
    assert store.status("s")[0].failed == 4 and not store.finished("s", (), ("run",), ["brb"]) and store.phases("s") == []


def test_a_log_beside_a_store_is_read_even_where_nothing_can_be_written(store, monkeypatch):
    store.plan("s", "spec", planned("a"))
    monkeypatch.setattr(os, "access", lambda *_: False)
    log = store.path.with_name(store.path.name + "-wal")
    assert log.exists() and read_only_uri(store.path).endswith("mode=ro")


def filled(path):
    with Store(path) as store:
        store.plan("s", "spec", planned("a"))
        store.add(outcome("a"))
    return path


def test_factors_may_have_any_name(tmp_path):
    name = """it's "5 $.x" [0]"""
    runs = [replace(run, factors={name: i}) for i, run in enumerate(planned("a"))]
    with Store(tmp_path / "s") as store:
        store.plan("s", "spec", runs)
        store.add(replace(outcome("a"), scores={**outcome("a").scores, name: np.arange(4.0)}))
        assert [row[name] for row in store.means("s", by=name)] == [0, 1, 2, 3]
        assert store.finished("s", (), (name,)) == [(0.0,), (1.0,), (2.0,), (3.0,)]


@pytest.mark.parametrize("name", ["../outside/evil", "/tmp/evil", "a/b"])
def test_names_in_a_store_lead_nowhere(tmp_path, name):
    (tmp_path / "outside").mkdir()
    filled(tmp_path / "s")
    for change in ("UPDATE studies SET name = ?1", "UPDATE curves SET phase = ?1"):
        with Store(tmp_path / "s") as store:
            store._db.execute(change, (name,))
            store._db.execute("UPDATE plan SET study = (SELECT name FROM studies)")
            with pytest.raises(ValueError, match="cannot be that of a file"):
                export(store, tmp_path / "tables")
            store._db.execute("UPDATE studies SET name = 's'")
    assert not list((tmp_path / "outside").iterdir())


@pytest.mark.parametrize("change", [
    "UPDATE curves SET points = x'00ff'", "UPDATE curves SET shape = 'x'", "UPDATE curves SET shape = '[-1]'",
    "UPDATE plan SET factors = '['", "UPDATE groups SET size = 0", "UPDATE groups SET seconds = '3'", "UPDATE runs SET position = 99",
    "UPDATE arrays SET dtype = 'O'", "UPDATE arrays SET shape = '[1000000000000]'", "UPDATE contents SET content = '{}'",
])
def test_a_damaged_store_is_named_with_what_to_do(tmp_path, change):
    path = filled(tmp_path / "s")
    with sqlite3.connect(path) as connection:
        connection.execute(change)
    connection.close()
    raised = []
    with StoreReader(path) as store:
        for use in (lambda: store.status(), lambda: store.runs("s"), lambda: store.seconds("s"), lambda: store.curves("s"), lambda: store.means("s", by="keep"),
                    lambda: store.history("a-1"), lambda: store.labels("a-1"), lambda: store.settings("a-1"), lambda: store.provenance("a-1")):
            try:
                use()
            except (ValueError, OSError, KeyError) as error:
                raised.append(str(error))
    assert raised and all(str(path) in message for message in raised)


def test_a_small_blob_does_not_unpack_to_a_large_one(tmp_path):
    path = filled(tmp_path / "s")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE arrays SET content = ?", (zlib.compress(bytes(10**8)),))
    connection.close()
    with StoreReader(path) as store:
        taken, found = memory_of(lambda: store.labels("a-1"))
    assert taken < 30e6 and (isinstance(found, ValueError) or not found.any())


@pytest.mark.parametrize("change", [
    "ALTER TABLE measures RENAME TO kept; CREATE VIEW measures AS SELECT a.* FROM kept a, kept b", "CREATE VIEW more AS SELECT 1",
    "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM plan; END", "CREATE TABLE more (x)", "CREATE INDEX more ON plan (seed)",
    "ALTER TABLE plan ADD COLUMN x AS (zeroblob(1000000000))", "DROP INDEX runs_of_group"])
def test_what_the_schema_does_not_define_is_refused(tmp_path, change):
    path = filled(tmp_path / "s")
    with sqlite3.connect(path) as connection:
        connection.executescript(change)
    connection.close()
    for opened in (Store, StoreReader):
        with pytest.raises(ValueError, match="s is not a store of studies, or other tables, views or triggers"):
            opened(path)


@pytest.mark.parametrize("what", ["curves", "factors"])
def test_many_curves_and_factors_do_not_become_large_tables(tmp_path, what):
    path, epochs = tmp_path / "s", np.arange(200, dtype=np.int32)
    curves = {str(i): Curve(200 * i + epochs, np.zeros((200, R))) for i in range(400)}
    with Store(path) as store:
        store.plan("s", "spec", planned("a") if what == "curves" else [
            replace(run, factors={f"{run.seed}{i}": 0 for i in range(100)}) for run in planned("a", size=300)])
        store.add(replace(outcome("a"), history={"clustering": curves} if what == "curves" else {}))
    with StoreReader(path) as store:
        began, (taken, found) = time.monotonic(), memory_of(lambda: store.curves("s") if what == "curves" else store.runs("s"))
    assert taken < 64e6 + 20 * path.stat().st_size and time.monotonic() - began < 10
    assert f"{path} has " in str(found) and "claims to hold" in str(found)


def test_a_full_disk_is_named_and_loses_no_finished_run(tmp_path):
    path = filled(tmp_path / "s")
    with Store(path) as store:
        store._db.execute(f"PRAGMA max_page_count = {store._db.execute('PRAGMA page_count').fetchone()[0]}")
        with pytest.raises(OSError, match="s cannot be used: free some space and run the command again, finished runs are kept"):
            for i in range(100):
                store.add(outcome(f"b{i}"))
        assert store.status("s")[0].finished == R
    assert sorted(one.name for one in tmp_path.iterdir()) == ["s"]


def test_a_locked_store_is_named(tmp_path, monkeypatch):
    path, connect = filled(tmp_path / "s"), sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **options: connect(*given, **{**options, "timeout": 0}))
    with Store(path) as one, Store(path) as other, one._transaction():
        with pytest.raises(OSError, match="s cannot be used: wait for the process that uses it"):
            other.add(outcome("b"))


@pytest.mark.parametrize("change", ["UPDATE plan SET study = x'00'", "UPDATE studies SET name = x''", "UPDATE groups SET provenance = x'78'"])
def test_names_that_are_no_text_are_refused(tmp_path, change):
    path = filled(tmp_path / "s")
    with sqlite3.connect(path) as connection:
        connection.execute(change)
    connection.close()
    with pytest.raises(ValueError, match="s is damaged .*is no text.*use a copy"):
        StoreReader(path)


def test_a_link_does_not_make_one_file_of_two(tmp_path):
    path, folder = filled(tmp_path / "s"), tmp_path / "tables"
    folder.mkdir()
    with StoreReader(path) as store:
        (folder / "s.clustering.csv").symlink_to("s.runs.csv")
        with pytest.raises(ValueError, match="cannot be that of a file"):
            export(store, folder)


def test_exported_names_are_text(tmp_path):
    pandas = pytest.importorskip("pandas")
    with Store(tmp_path / "s") as store:
        store.plan("s", "spec", planned("a", variant="=1+1", dataset="a\rb"))
        store.add(outcome("a"))
        export(store, tmp_path / "tables")
        frame = pandas.read_csv(tmp_path / "tables" / "s.runs.csv")
        assert set(frame["variant"]) == {"'=1+1"} and set(frame["dataset"]) == {"a\rb"} and frame["acc"].tolist() == store.runs("s")["acc"].tolist()
