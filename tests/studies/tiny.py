"""A study of seconds, for tests of whatever runs studies."""

from reclust import Every, KMeans, Recluster, SoftReset
from reclust.studies import AutoencoderProtocol, Conditions, Store, Study, Variant, run

PROTOCOL = AutoencoderProtocol(pretraining_epochs=2, epochs=4, batch_size=50, hidden=(8,), side=8, rows=100)
VARIANTS = (
    Variant("none"),
    Variant("brb", Every(2, (SoftReset(0.8), Recluster(KMeans(n_init=2)))), factors={"keep": 0.8}),
    Variant("slow", changes={"clustering": {"lr": 1e-4}}, factors={"lr": 1e-4}),
)


def tiny_study(**changes):
    """Two algorithms, three variants of which one cannot be stacked with the others, two seeds: 24 runs in 8 groups."""
    given = {"name": "tiny", "variants": VARIANTS, "datasets": ("digits",), "algorithms": ("dec", "dcn"),
             "pretrained": (True, False), "seeds": (3, 4), "protocol": PROTOCOL, "evaluate_every": 2}
    return Study(**{**given, **changes})


def same_table(one, other, study):
    """Whether two stores hold the same numbers for a study, bit for bit."""
    ours, theirs = (store.runs(study) for store in (one, other))
    columns = ["run", "variant", "seed", "state", "acc", "nmi", "ari"]
    return (ours[columns].equals(theirs[columns]) and one.means(study) == other.means(study)
            and all((one.array(run, "centers") == other.array(run, "centers")).all() for run in ours["run"]))


def computed(folder, study, backend=None, **conditions):
    """Run a study to its end, and return its open store."""
    store = Store(folder / "store")
    given = {} if backend is None else {"backend": backend}
    ran = run(study, store, conditions=Conditions(work=str(folder / "work"), threads=1, **conditions), progress=False, **given)
    assert (ran.waiting, ran.failures) == (0, [])
    return store
