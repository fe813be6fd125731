"""A loaded model is the saved one. Damaged and hostile files are rejected, execute nothing and take no extra memory."""

import copy
import functools
import json
import os
import random
import resource
import sys
import time
import warnings
from dataclasses import dataclass, fields

import numpy as np
import pytest
import torch
from support import blobs, memory_of, small_settings

import reclust
from reclust import (
    IDEC,
    Autoencoder,
    Checkpoint,
    DCNObjective,
    DeepClustering,
    IDECObjective,
    ReclustWarning,
    Result,
    train,
)
from reclust.data import Lens
from reclust.training.checkpoint import TrainingState
from reclust.utils import tensor_file
from reclust.utils.values import import_all

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited the way Linux does")

X, Y = blobs(n=40)
for package in ("reclust", "reclust.studies"):  # what an unknown kind of value makes the library import, its own modules, is no harm
    import_all(package)


@functools.cache
def originals():
    """Kind -> content of a good file of that kind."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", ReclustWarning)
        small = {"representation": Autoencoder((6,)), "pretrain_epochs": 1, "epochs": 2, "batch_size": 20, "device": "cpu"}
        model = IDEC(4, **small, intervention=None, n_init=2, random_state=0).fit(X)
        model.save(Path(folder) / "model")
        settings = small_settings(representation=Autoencoder((6,)))
        result = train(X, settings, seeds=(3,), checkpoint=Checkpoint(Path(folder) / "checkpoint", every=1))
        result.save(Path(folder) / "result")
        return {kind: (Path(folder) / kind).read_bytes() for kind in ("model", "checkpoint", "result")}


def opened(kind, path):
    """Read a file, and use what it holds."""
    if kind == "model":
        return reclust.load(path)
    if kind == "result":
        result = Result.load(path)
        assert [result.model(replica).network for replica in range(len(result))]
        return result
    checkpoint = Checkpoint(path)
    return TrainingState.read(checkpoint, tensor_file.read(path, "checkpoint")[0].get("identity"))


FORBIDDEN = ("os.system", "subprocess.Popen", "os.exec", "os.fork", "os.posix_spawn", "socket.connect", "os.remove", "os.rename",
             "pickle.find_class", "compile", "exec")
watching = []


@functools.cache
def watch():
    """Audit hooks cannot be removed: this one is there once, and says nothing while nobody watches."""
    for package in ("reclust", "reclust.representations", "reclust.interventions"):  # what an unknown kind of value imports, once
        import_all(package)

    def hook(event, arguments):
        if watching and event in FORBIDDEN:
            watching.append((event, arguments))
    sys.addaudithook(hook)


def watched(function):
    """Run it with at most a gigabyte more memory than there is now, and without processes, sockets or code of others."""
    watch()
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize")) * 1024
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, before[1]))
    watching.append(None)
    try:
        return function()
    finally:
        seen, watching[:] = watching[1:], []
        resource.setrlimit(resource.RLIMIT_AS, before)
        assert not seen, seen


def refused_or_loaded(kind, path):
    """Whether it loads; whatever is raised must be one of two kinds, with words."""
    try:
        opened(kind, path)
    except (ValueError, TypeError) as error:
        # A file may claim that its network was its user's own: it loads, and its model asks for that network.
        assert any(words in str(error) for words in (str(path), "cannot be saved", "is not saved")), error
        return False
    return True


# Saving and loading


def small(kind=IDEC, k=4, **changes):
    """A fit in a fifth of a second, for what does not depend on how well it goes."""
    given = {"representation": Autoencoder((8,)), "pretrain_epochs": 2, "epochs": 3, "batch_size": 30, "intervention": None, "random_state": 0, "device": "cpu"}
    return kind(k, **{**given, **changes})


@pytest.mark.parametrize("changes", [{}, {"n_init": 2, "augment": "noise"}, {"objective": IDECObjective(0.3), "lr": 2e-3}])
def test_a_saved_model_predicts_the_same(tmp_path, changes):
    model = small(**changes).fit(X, Y)
    model.save(tmp_path / "m.reclust")
    loaded = reclust.load(tmp_path / "m.reclust")
    assert type(loaded) is IDEC and loaded.get_params() == model.get_params()
    for method in ("predict", "predict_proba", "transform"):
        assert (getattr(loaded, method)(X) == getattr(model, method)(X)).all()
    assert (loaded.labels_ == model.labels_).all() and loaded.best_replica_ == model.best_replica_
    assert (loaded.history_["clustering"]["loss"].values == model.history_["clustering"]["loss"].values).all()
    assert loaded.baseline_.inertia_ == model.baseline_.inertia_ and list(loaded.history_) == list(model.history_)


def test_files_that_are_no_models_are_refused(tmp_path):
    for content in (b"", b"not a model", b"\x00" * 100):
        (tmp_path / "bad").write_bytes(content)
        with pytest.raises(ValueError, match="damaged or not a reclust file"):
            reclust.load(tmp_path / "bad")
    with pytest.raises(FileNotFoundError, match="There is no file .*model.reclust"):
        reclust.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="There is no file"):
        reclust.load(tmp_path / "absent")


def test_a_custom_objective_is_saved_only_as_a_value(tmp_path):
    class Plain:
        """DCN by another name."""

        weight, representation_weight, trainable, per_cluster = 0.1, 1.0, frozenset(), frozenset({"centers", "count"})
        init, loss, assign, update = (getattr(DCNObjective(), name) for name in ("init", "loss", "assign", "update"))

    model = small(DeepClustering, objective=dataclass(frozen=True)(Plain)()).fit(X)
    with pytest.raises(TypeError, match="Plain cannot be written to a file: decorate the class with @reclust.value"):
        model.save(tmp_path / "m.reclust")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are another matter there")
@pytest.mark.parametrize("mask", [0o022, 0o027])
def test_saved_files_have_the_permissions_of_any_other_file(tmp_path, mask):
    model = small().fit(X[:20])
    before = os.umask(mask)
    try:
        model.save(tmp_path / "m.reclust")
        model.result_.save(tmp_path / "r.reclust")
    finally:
        os.umask(before)
    assert {os.stat(tmp_path / name).st_mode & 0o777 for name in ("m.reclust", "r.reclust")} == {0o666 & ~mask}


def test_scores_without_a_number_are_written_as_json_has_them(tmp_path):
    from safetensors import safe_open

    small().fit(X).save(tmp_path / "m")
    with safe_open(tmp_path / "m", "np") as file:
        header = json.loads(file.metadata()["reclust"], parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert header["scores"] == [None] and np.isnan(reclust.load(tmp_path / "m").replicas_[0].score)


def test_names_of_samples_are_kept(tmp_path):
    ids = np.array([f"cell {i}" for i in range(40)])
    model = small().fit(reclust.data.Dataset(samples=X, ids=ids, labels=Y))
    model.save(tmp_path / "m.reclust")
    assert (model.ids_ == ids).all() and (reclust.load(tmp_path / "m.reclust").ids_ == ids).all()
    assert model.fit(X).ids_ is None
    model.save(tmp_path / "m.reclust")
    assert reclust.load(tmp_path / "m.reclust").ids_ is None


# Random damage


def damaged(content, rng, path):
    """Write a good file with some bytes changed."""
    content = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 8])):
        at, kind = rng.randrange(max(1, len(content))), rng.randrange(6)
        head = 8 + int.from_bytes(content[:8], "little")
        if rng.random() < 0.5:
            at = rng.randrange(min(len(content), head) or 1)  # the header is what is read with most care
        if kind == 0:
            content[at:at + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            del content[at:]
        elif kind == 2:
            del content[at:at + rng.randrange(1, 50)]
        elif kind == 3:
            content[at:at] = rng.randbytes(rng.randrange(1, 50))
        elif kind == 4:
            content[:8] = rng.choice([0, 1, 2**31, 2**63, 2**64 - 1, len(content), rng.randrange(2**20)]).to_bytes(8, "little")
        else:
            other = rng.randrange(max(1, len(content)))
            content[at:at + 20] = content[other:other + 20]
    path.write_bytes(content)


def fuzz(kind, path, cases, seed, change):
    """How many of so many changed files load."""
    rng, loaded = random.Random(seed), 0
    original = originals()[kind]
    for _ in range(cases):
        change(original, rng, path)
        loaded += watched(lambda: refused_or_loaded(kind, path)) and path.read_bytes() != original
    return loaded


def assert_no_damage_goes_unnoticed(kind, path, cases, seed):
    assert fuzz(kind, path, cases, seed, damaged) == 0, "the checksum covers every byte"


@pytest.mark.parametrize("kind", ["model", "checkpoint", "result"])
def test_random_damage_is_noticed(tmp_path, kind):
    assert_no_damage_goes_unnoticed(kind, tmp_path / "file", 60, 0)


# Files with a right checksum and wrong content


LEAVES = (None, True, False, 0, -1, 1, 3, 2**31, 2**63, 10**40, 1e308, -0.5, float("nan"), float("inf"), "", "x", "../../etc/passwd", "__class__",
          "cuda:99", [], {}, [[]], {"kind": "Settings", "fields": {}}, {"kind": "os.system", "fields": {"command": "false"}}, {"kind": [], "fields": 3},
          {"mapping": 3}, {"kind": "Autoencoder", "fields": {"hidden": [10**6, 10**6]}}, {"kind": "NotStored", "fields": {"what": "x"}})


def places(thing, so_far=()):
    """All positions in a JSON value."""
    yield so_far
    inner = thing.items() if isinstance(thing, dict) else enumerate(thing) if isinstance(thing, list) else ()
    for name, item in inner:
        yield from places(item, (*so_far, name))


def hostile(content, rng, path):
    """Write a good file, changed in meaning and sealed again."""
    from safetensors.torch import load

    tensors = load(content)
    head = json.loads(content[8:8 + int.from_bytes(content[:8], "little")])
    header = json.loads(head["__metadata__"]["reclust"])
    kind = header.pop("kind")
    del header["format"]
    for _ in range(rng.choice([1, 1, 2, 4])):
        if rng.random() < 0.6:
            *way, last = rng.choice([place for place in places(header) if place])
            inner = functools.reduce(lambda thing, name: thing[name], way, header)
            if rng.random() < 0.2:
                inner.pop(last)
            else:
                inner[last] = copy.deepcopy(rng.choice(LEAVES))
        elif tensors:
            name = rng.choice(sorted(tensors))
            tensor = tensors.pop(name)
            change = rng.randrange(7)
            if change == 0:
                tensors[name + "x"] = tensor
            elif change == 1:
                tensors[name] = tensor.flatten()[: rng.randrange(1 + tensor.numel())]
            elif change == 2:
                tensors[name] = tensor.unsqueeze(0)
            elif change == 3:
                tensors[name] = tensor.to(rng.choice([torch.int8, torch.bool, torch.float16, torch.float64, torch.int64, torch.bfloat16]))
            elif change == 4:
                tensors[name] = torch.full_like(tensor, rng.choice([-1, 0, 100]))
            elif change == 5:
                tensors[name] = torch.full_like(tensor, float("nan")) if tensor.is_floating_point() else tensor * 2**40
    tensor_file.write(path, kind, header, {name: tensor.contiguous() for name, tensor in tensors.items()})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["model", "checkpoint", "result"])
def test_hostile_files_are_refused_or_load(tmp_path, kind):
    fuzz(kind, tmp_path / "file", 60, 1, hostile)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["model", "checkpoint", "result"])
def test_thousands_of_files(tmp_path, kind):
    """Two thousand of each kind, half of them damaged and half of them hostile."""
    seed = random.randrange(2**31)
    print(f"seed {seed}")
    assert_no_damage_goes_unnoticed(kind, tmp_path / "file", 1000, seed)
    fuzz(kind, tmp_path / "file", 1000, seed, hostile)


# Named attacks


def sealed(tmp_path, kind, change):
    (tmp_path / "good").write_bytes(originals()[kind])
    header, tensors = tensor_file.read(tmp_path / "good", kind)
    header = {name: entry for name, entry in header.items() if name not in ("format", "kind")}
    change(header, tensors)
    tensor_file.write(tmp_path / "bad", kind, header, tensors)
    return tmp_path / "bad"


def set_field(name, given):
    def change(header, tensors):
        header["settings"][0]["fields"]["representation"]["fields"][name] = given
    return change


@pytest.mark.parametrize("change", [set_field("hidden", [10**6, 10**6]), set_field("hidden", [10**30]), set_field("embedding", 2**40), set_field("hidden", [50_000, 50_000])])
def test_networks_larger_than_the_file_are_never_made(tmp_path, change):
    path = sealed(tmp_path, "model", change)
    with pytest.raises(ValueError, match="cannot be used"):
        watched(lambda: reclust.load(path))


def convolutional(**fields):
    """Settings of a network that the file does not hold."""
    def change(header, tensors):
        header["settings"][0]["fields"]["representation"] = {"kind": "ConvAutoencoder", "fields": {"channels": [1], **fields}}
        header["sample_shape"] = [1, 4, 3]
    return change


@pytest.mark.parametrize("change", [set_field("hidden", [1] * 40_000), convolutional(residuals=10**9), convolutional(channels=[1] * 40_000)])
def test_layers_without_end_are_never_made(tmp_path, change):
    path = sealed(tmp_path, "model", change)
    began = time.process_time()
    taken, error = memory_of(lambda: reclust.load(path))
    assert "a larger network than the trained one" in str(error)
    assert taken < 64e6 + 20 * path.stat().st_size and time.process_time() - began < 10


def test_one_long_name_makes_no_other_longer(tmp_path):
    names = ["x" * 100_000] + ["a"] * 3000
    taken, model = memory_of(lambda: reclust.load(sealed(tmp_path, "model", lambda h, t: h.update(ids=names))))
    assert taken < 64e6 and model.ids_.tolist() == names


@pytest.mark.parametrize("field", [{"ids": [["x" * 100_000] + ["a"] * 3000]}, {"suggestion": [[2, 3], ["x" * 100_000] + ["a"] * 3000, None, 5]}])
def test_long_texts_in_lists_of_lists_make_no_large_arrays(field, tmp_path):
    path = sealed(tmp_path, "model", lambda h, t: h.update(field))
    taken, _ = memory_of(lambda: reclust.load(path))
    assert taken < 64e6


def test_loading_never_runs_the_network(tmp_path, monkeypatch):
    path = sealed(tmp_path, "model", lambda h, t: None)
    monkeypatch.setattr(torch.nn.Module, "__call__", lambda *_: pytest.fail("the network ran"))
    reclust.load(path)


@pytest.mark.parametrize(("change", "message"), [
    (lambda h, t: h.update(estimator="os.system"), "unknown estimator 'os.system'"),
    (lambda h, t: h.update(estimator={"IDEC": 1}), "cannot be used: TypeError"),
    (lambda h, t: h["settings"][0].update(kind={"Settings": 1}), "cannot be used"),
    (lambda h, t: h["settings"][0].update(kind="Popen"), "Unknown kind of value 'Popen'"),
    (lambda h, t: h.update(sample_shape=[10**15]), "cannot be used"),
    (lambda h, t: h.update(sample_shape=[-12]), "cannot be used"),
    (lambda h, t: h.update(seeds=[1] * 3), "names or shapes of its weights differ"),
    (lambda h, t: t.pop("fitted/living"), "cannot be used"),
    (lambda h, t: t["fitted/labels"].fill_(2**30), "do not fit together"),
    (lambda h, t: t.update({"state/centers": t["state/centers"][:0].clone()}), "cannot be used|damaged"),
    (lambda h, t: h["seconds"].update(x="y"), "could not convert"),
    (lambda h, t: h.update(warnings=3), "cannot be used"),
    (lambda h, t: h.update(provenance=3), "cannot be used"),
    (lambda h, t: h.update(encoder=0.5), "cannot be used"),
    (lambda h, t: h.update(lens="x"), "cannot be used"),
    (lambda h, t: t.update({"scaling/first.shift": torch.zeros(7)}), "cannot be used"),
    (lambda h, t: t.update({"scaling/first.shift": torch.zeros(5, 12)}), "do not fit together"),
    (lambda h, t: t.update({name: torch.zeros(30) for name in t if name.startswith("shapes/")}), "do not fit together"),
    (lambda h, t: t.update({"shapes/axes": t["shapes/axes"][:, :1].clone()}), "cannot be used"),
    (lambda h, t: t.update({"reference/sizes": t["reference/sizes"][:1].clone()}), "do not fit together"),
    (lambda h, t: t.update({"reference/means": t["reference/means"][:, :1].clone()}), "do not fit together"),
    (lambda h, t: t.update({"fitted/tree": t["fitted/tree"][:, :1].clone()}), "do not fit together"),
    (lambda h, t: t["fitted/tree"][:, :2].fill_(10**6), "do not fit together"),
    (lambda h, t: t.update({"fitted/tree": torch.zeros(3000, 4)}), "do not fit together"),
    (lambda h, t: t.update({"fitted/leaves": t["fitted/leaves"].double()}), "cannot be used"),
    (lambda h, t: t.update({"fitted/leaves": t["fitted/leaves"] + 1000}), "cannot be used"),
    (lambda h, t: t.update({"fitted/leaves": t["fitted/leaves"][:3].clone()}), "do not fit together"),
    (lambda h, t: t.update({"fitted/baseline_labels": t["fitted/baseline_labels"][:3].clone()}), "do not fit together"),
])
def test_a_model_that_does_not_fit_together_is_refused(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        reclust.load(sealed(tmp_path, "model", change))


def test_deep_json_and_pickles_are_refused(tmp_path):
    import pickle

    from safetensors.torch import save_file
    save_file({"x": torch.zeros(1)}, tmp_path / "deep", metadata={"reclust": "[" * 100_000})
    (tmp_path / "pickle").write_bytes(pickle.dumps({"x": fields}))
    torch.save({"x": torch.zeros(1)}, tmp_path / "torch")
    np.savez(tmp_path / "zip.npz", x=np.zeros(1))
    for name in ("deep", "pickle", "torch", "zip.npz"):
        with pytest.raises(ValueError, match="damaged or not a reclust file"):
            reclust.load(tmp_path / name)


def test_files_of_the_first_format_are_still_read(tmp_path):
    from safetensors.torch import load, save

    content = originals()["model"]
    head = json.loads(content[8:8 + int.from_bytes(content[:8], "little")])
    header = json.dumps({**json.loads(head["__metadata__"]["reclust"]), "format": 1})
    (tmp_path / "old").write_bytes(save(load(content), metadata={"reclust": header}))
    (tmp_path / "new").write_bytes(content)
    assert (reclust.load(tmp_path / "old").predict(X) == reclust.load(tmp_path / "new").predict(X)).all()
    header = json.dumps({**json.loads(header), "format": 3})
    (tmp_path / "newer").write_bytes(save(load(content), metadata={"reclust": header}))
    with pytest.raises(ValueError, match="has format 3; this reclust reads 2"):
        reclust.load(tmp_path / "newer")


def test_models_from_before_there_were_lenses_are_still_read(tmp_path):
    assert reclust.load(sealed(tmp_path, "model", lambda h, t: h.pop("lens"))).preparation_.lens == Lens()


def test_a_model_of_another_machine_loads_where_its_device_is_not(tmp_path):
    path = sealed(tmp_path, "model", lambda h, t: h["parameters"]["mapping"].update(device="cuda:7"))
    assert reclust.load(path).device == "auto" and (reclust.load(path).predict(X) == reclust.load(tmp_path / "good").predict(X)).all()


def test_headers_of_many_lists_are_refused(tmp_path):
    X, _ = blobs(40)
    model = reclust.Reclust(3, effort="quick", random_state=0).fit(X)
    model.save(tmp_path / "a.reclust")
    header, tensors = tensor_file.read(tmp_path / "a.reclust", "model")
    tensor_file.write(tmp_path / "a.reclust", "model", header | {"more": [[]] * 2**20}, tensors)
    with pytest.raises(ValueError, match="too many lists"):
        reclust.load(tmp_path / "a.reclust")
