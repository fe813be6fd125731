"""Write docs/benchmarks.md from the committed records.

    python benchmarks/page.py
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

from reclust.studies import published

RECORDS = Path(__file__).parent / "records"
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"

HEAD = """# Benchmarks

*For anyone who wants numbers on speed, memory and accuracy. Each section names the command that measured it and the machine.*

Machines differ and are noisy: compare ratios. This page is written by `python benchmarks/page.py` from the records in
`benchmarks/records/`.
"""


def table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def mean_and_error(numbers: list[float]) -> str:
    return f"{mean(numbers):.1f}" + (f" ± {stdev(numbers) / len(numbers) ** 0.5:.1f}" if len(numbers) > 1 else "")


def replicas_cuda(measured: dict[str, Any]) -> str:
    rows = [[*name.split(", "), f"{seen['seconds_per_epoch']:.3f}", f"{seen['per_replica']:.3f}", f"{seen['step_ms']:.2f}",
             f"{sum(seen['floor_ms'].values()):.2f}", f"{seen['step_over_floor']:.1f}"] for name, seen in measured.items()]
    return ("One clustering epoch on 70,000 images of 28 × 28 with augmentation, batch 256. The floor is the step's matrix products "
            "and one pass of Adam over the weights, measured separately.\n\n" +
            table(["precision", "algorithm", "replicas", "epoch, s", "per replica, s", "step, ms", "floor, ms", "step / floor"], rows))


def replicas_cpu(measured: dict[str, Any]) -> str:
    rows = [[name, *(f"{seen['seconds_per_epoch'][r]:.2f}" for r in ("1", "4")), f"{seen['stacked_over_one_after_another']:.2f}"]
            for name, seen in measured.items()]
    return ("Four replicas stacked on the CPU against one after another.\n\n" +
            table(["algorithm", "1 replica, s per epoch", "4 stacked", "4 stacked / (4 × 1)"], rows))


def batch_norm_cuda(measured: dict[str, Any]) -> str:
    rows = [[*name.split(", "), *(f"{seen['seconds_per_epoch'][form]:.3f}" for form in ("without", "with", "program")),
             f"{seen['with_over_without']:.2f}", f"{seen['program_over_without']:.2f}"] for name, seen in measured.items()]
    return ("One clustering epoch of ten stacked replicas with and without BatchNorm, and with the steps of the authors' program.\n\n" +
            table(["precision", "algorithm", "without, s", "with, s", "program, s", "with / without", "program / without"], rows))


def published_run_idec(measured: dict[str, Any]) -> str:
    rows = [[*name.split(", "), f"{seen['seconds']:.1f}", f"{seen['mean']:.1f} ± {seen['standard_error']:.1f}"]
            for name, seen in measured.items()]
    return ("The whole published run of IDEC with BRB: 250 + 400 epochs, ten seeds at once, from loading to scoring.\n\n" +
            table(["set", "precision", "seconds", "ACC"], rows))


def published_run_idec_cpu(measured: dict[str, Any]) -> str:
    rows = [[*name.split(", "), f"{seen['mean']:.1f} ± {seen['standard_error']:.1f}"] for name, seen in measured.items()]
    return ("The same on a CPU, one process per seed. Only the score is shown, because the run was interrupted.\n\n" +
            table(["set", "precision", "ACC"], rows))


def brb_overhead_cuda(measured: dict[str, Any]) -> str:
    rows = []
    for name, seen in measured.items():
        replicas, method, samples = name.split(", ")
        rows.append([replicas.split()[0], method, samples, f"{100 * seen['overhead']:.1f} %", f"{seen['epoch']:.3f}",
                     *(f"{1e3 * seen['parts'][part]:.1f}" for part in ("reset", "embedding", "clustering", "momentum"))])
    return ("What BRB adds to IDEC on MNIST's shapes if it fires every 20 epochs, and the parts of one firing in milliseconds. "
            "Measured in the first epochs of a network from scratch on random images, where k-means takes longer than in whole "
            "runs on MNIST (study `runtime` in the reproduction).\n\n" +
            table(["replicas", "method", "samples", "adds", "epoch, s", "reset", "embedding", "clustering", "momentum"], rows))


def contrastive_epoch(measured: dict[str, Any]) -> str:
    rows = [[name, f"{seen['seconds_an_epoch']:.2f}", f"{seen['milliseconds_a_step']:.1f}"] for name, seen in measured.items()]
    return ("SimCLR with ResNet-18 on 50,000 color images of 32 × 32, batch 512, augmentation included, compiled.\n\n" +
            table(["phase", "epoch, s", "step, ms"], rows))


def color(measured: dict[str, Any], dataset: str, name: str, remark: str = "") -> str:
    """Summarize all recorded seeds of a set."""
    records = [json.loads(path.read_text()) for path in sorted(RECORDS.glob(f"color_{dataset}_[0-9]*.json"))]
    rows = []
    for algorithm in ("simclr + k-means", "idec", "dcn", "dec", "scan", "secu"):
        for variant in ("none", "brb") if algorithm in ("idec", "dcn", "dec", "scan", "secu") else ("",):
            stage = f"{algorithm}, {variant}" if variant else algorithm
            stages = (stage, f"{stage}, self-labeled", f"{stage}, self-labeled as published")
            found = [[100 * one["measured"][stage]["test"]["accuracy"] for one in records if one["measured"].get(stage, {}).get("finished")]
                     for stage in stages]
            if found[0]:
                cells = [mean_and_error(scores) if scores else "–" for scores in found]
                paper = [_of_the_paper(dataset, stage) for stage in stages[:2]]
                rows.append([stage, str(len(found[0])), cells[0], paper[0], cells[1], paper[1], cells[2]])
    settings, first = records[0]["settings"], measured["simclr"]
    seeds = " and ".join(str(one["settings"]["seed"]) for one in records)
    return (f"All of {name}, trained on 50,000 images and scored on 10,000 (ACC): SimCLR with ResNet-18 for {1000 * settings['length']:.0f} epochs "
            f"({first['seconds']:.0f} s), clustering from there without and with BRB ({measured['idec, brb']['seconds']:.0f} s for IDEC), "
            f"self-labeling with our defaults ({measured['idec, brb, self-labeled']['seconds']:.0f} s) and, where shown, as published. All stages have "
            f"{settings['length']:g} of the published epochs, warm-up included; resets are 10 epochs apart, as published. Seeds: {seeds}. The paper's numbers are of "
            f"full length (mean ± standard deviation of ten runs; k-means: the best).{remark}\n\n" +
            table(["clustering", "seeds", "before self-labeling", "the paper's", "after", "the paper's", "after, as published"], rows))


def _of_the_paper(dataset: str, stage: str) -> str:
    algorithm, *rest = stage.split(", ")
    run = {"dataset": dataset, "algorithm": "simclr+k-means" if not rest else algorithm, "variant": rest[0] if rest else "none", "pretrained": True}
    study = "self-labeling" if "self-labeled" in rest else "contrastive" if rest else "self-labeling-best"
    found = published.find(study, run, "acc") if algorithm in ("simclr + k-means", "idec", "dcn", "dec") else None
    return "–" if not found else f"{found.mean:.1f}" + (f" ± {found.std:.1f}" if found.std else "")


ONE_COLLAPSE = (" SCAN and SeCu have 0.2 of 200 and 400 epochs. SeCu was run later than the others, from an encoder trained anew with the same seed. SeCu + "
                "BRB collapsed (11.5, stopped after 61 of 80 epochs), in a version that kept the centers from before each reset for an epoch. "
                "IDEC and plain DCN were run a day before the others.")


def clustpy_epoch(measured: dict[str, Any]) -> str:
    rows = [[name, *(f"{seconds:.2f}" for seconds in seen["seconds_per_epoch"].values()),
             *(f"{ratio:.2f}" for ratio in seen["times_clustpys_speed"].values())] for name, seen in measured.items()]
    first = next(iter(measured.values()))
    return ("One clustering epoch of 10,000 × 784 numbers on the CPU against ClustPy 0.0.3, same network and batch, no augmentation. "
            "Other processes ran on other cores: ratios are accurate to about a tenth.\n\n" +
            table(["algorithm", *(f"{side}, s" for side in first["seconds_per_epoch"]),
                   *(f"{side}: times ClustPy's speed" for side in first["times_clustpys_speed"])], rows))


def precision_cpu(measured: dict[str, Any]) -> str:
    rows = [[name, *(f"{seconds:.3f}" for seconds in seen["seconds_per_epoch"].values()), f"{seen['times_as_fast']:.2f}"]
            for name, seen in measured.items()]
    return ("One clustering epoch of IDEC in float32 and with bfloat16 products, on a processor with hardware support; other cores were busy.\n\n" +
            table(["what", "float32, s", "bf16, s", "bf16: times the speed"], rows))


def plain_loop(measured: dict[str, Any]) -> str:
    rows = [[name, f"{seconds:.2f}", f"{measured['reclust_over'][name]:.2f}"] for name, seconds in measured["seconds_per_epoch"].items()]
    return ("One clustering epoch of IDEC against the same loop written by hand, on the CPU.\n\n" +
            table(["loop", "s per epoch", "time of reclust / time of this loop"], rows))


def streaming(measured: dict[str, Any]) -> str:
    return ("Fitting a file larger than memory: "
            f"at most {measured['peak_anonymous_gb']:.2f} GB of private memory, and a row costs "
            f"{measured['streamed_over_resident']:.2f} times as much as from memory.")


def streaming_rows(measured: dict[str, Any]) -> str:
    rows = [[way, f"{seen['peak_gb']:.2f}", f"{seen['fit_seconds']:.0f}", f"{seen['predicted_rows_a_second'][0]:,.0f}",
             f"{seen['predicted_rows_a_second'][-1]:,.0f}", f"{seen['fastest_over_slowest_part']:.2f}"] for way, seen in measured.items()]
    streamed, resident = (seen["microseconds_a_row"] for seen in measured.values())
    return ("Ten million rows of 32 features: IDEC for one epoch, then prediction of all rows in ten parts. Memory is the "
            "peak of the whole process, including pages of the mapped file (1.28 GB); streaming should take less than 3 GB. A streamed "
            f"row costs {streamed / resident:.2f} times as much in training as one in memory (at most 1.2). Rates are rows per second of "
            "processor time.\n\n" +
            table(["rows are", "peak, GB", "fit, s", "rows per second, first tenth", "last tenth", "fastest / slowest tenth"], rows))


def hundred_million(measured: dict[str, Any]) -> str:
    return ("IDEC on a file of a hundred million rows of 64 columns in float16 (12.8 GB, eight groups that touch): one epoch of "
            "pretraining, two of clustering, labels, probabilities, outlier scores, tree and baseline of all rows in "
            f"{measured['seconds']:.0f} s (at most 600). ARI {measured['ari']:.3f} (at least 0.95). Private memory of the process: "
            f"{measured['gigabytes_at_most']:.2f} GB at most, {measured['gigabytes_before']:.2f} GB of them before the fit.")


def photos(measured: dict[str, Any]) -> str:
    rows = [[draw, f"{seen['ari']:.1f}", str(seen["clusters"]), f"{seen['seconds']:.0f}"] for draw, seen in measured.items()]
    return ("The command `reclust fit photos/` on 500 photos of five traffic signs in sun and shadow, without the number of clusters; "
            f"mean ARI {mean([seen['ari'] for seen in measured.values()]):.1f}.\n\n" +
            table(["photos", "ARI", "clusters", "seconds"], rows))


def soak(measured: dict[str, Any]) -> str:
    return (f"Two hundred times in one process: fit with a checkpoint, save, load, predict. Memory is {measured['gb_after_warm_up']:.3f} GB after "
            f"the first tenth and {measured['gb_at_the_end']:.3f} GB at the end, {measured['growth']:.3f} times as much.")


def store_size(measured: dict[str, Any]) -> str:
    rows = [[name, f"{seen['seconds']:.2f}", f"{seen['whole_command']:.2f}"] for name, seen in measured["answers"].items()]
    return (f"A store of {measured['runs']:,} finished runs, {measured['megabytes']:.0f} MB. Whole commands, including the start of Python, "
            "should take less than 2 s of processor time.\n\n" +
            table(["question", "answer, s", "whole command, s"], rows))


def small_studies(measured: dict[str, Any]) -> str:
    rows = [[f"`{name}`", str(seen["runs"]), str(seen["failed"]), f"{seen['processor_seconds']:.0f}"] for name, seen in measured["studies"].items()]
    made = measured["from_all"]
    return ("Named studies in their small form (`reclust study run NAME --mini`), each from scratch with one thread; seconds of "
            f"processor time. From one store of all {measured['runs']} runs the tables take {made['tables']['processor_seconds']:.0f} s, "
            f"{measured['figures']} figures {made['figures']['processor_seconds']:.0f} s and the report "
            f"{made['report']['processor_seconds']:.0f} s.\n\n" + table(["study", "runs", "failed", "seconds"], rows))


def augmentation(measured: dict[str, Any]) -> str:
    grey, color = measured["grey_256x1x28x28"], measured["color_512x3x32x32"]
    return (f"Augmenting a gray batch takes {100 * grey['ratio']:.1f} % of the IDEC step it feeds; a color batch is "
            f"{color['times_faster']:.1f} times as fast as a loop over its images.")


def scaling(measured: dict[str, Any]) -> str:
    rows = [[name, f"{seen['exponent']:.2f}", ", ".join(f"{v:,}: {t:.3f}" for v, t in zip(seen["values"], seen["seconds"], strict=True))]
            for name, seen in measured.items()]
    return ("How the time of an epoch grows; an exponent of 1 means proportionally.\n\n" + table(["what grows", "exponent", "seconds per epoch"], rows))


def measures(measured: dict[str, Any]) -> str:
    rows, memory = [], [seen["extra_gb"] for seen in measured["measures"].values() if "extra_gb" in seen]
    for name, seen in measured["measures"].items():
        part = [f"{seen[side]:.3g}" if side in seen else "–" for side in ("part_seconds", "part_scikit_learn_seconds")]
        rows.append([name, f"{seen['seconds']:.3g}", *([f"{1e3 * seen['extra_gb']:.0f}"] if memory else []), *part])
    total = sum(seen["seconds"] for seen in measured["measures"].values())
    rows.append(["all", f"{total:.3g}", *([f"{1e3 * max(memory):.0f}"] if memory else []), "–", "–"])
    size = "" if memory else f" The whole process peaked at {measured['process_peak_gb']:.2f} GB, including Python and torch."
    return (f"Measures of {measured['rows']:,} × {measured['dims']} embeddings of ten classes, one after another; on a GPU all of them together should take "
            f"less than a second, and none more than 1 GB of extra memory.{size} scikit-learn, on the CPU and on the first "
            f"{measured['part']:,} rows, is shown for scale: it computes the silhouette, the neighbors or NMI only.\n\n" +
            table(["measure", "s", *(["extra memory, MB"] if memory else []), f"{measured['part']:,} rows, s", "scikit-learn on these, s"], rows))


def neighbors(measured: dict[str, Any]) -> str:
    rows = [[*name.split(", "), f"{seen['seconds']:.1f}", f"{seen['recall']:.3f}"] for name, seen in measured.items()]
    return ("Ten nearest neighbors of principal components of images. Seconds include building the index; recall is the share of the exact neighbors "
            "that are found. `Neighbors` compares all rows, and from 100,000 on a CPU uses faiss IVF if it is installed.\n\n" +
            table(["data", "way", "s", "recall"], rows))


def mixture(measured: dict[str, Any]) -> str:
    rows = [[name, *(f"{seconds:.2f}" for seconds in seen["seconds"].values()), f"{seen['times_as_fast']:.1f}",
             *(f"{mean(errors):.3f} ± {stdev(errors) / len(errors) ** 0.5:.3f}" for errors in seen["errors_of_means"].values())]
            for name, seen in measured.items()]
    return ("The Gaussian mixture that reclusters against scikit-learn's on the CPU: 10,000 × 10 numbers in float64, ten components, the best of ten restarts, "
            "each from k-means. The error is the mean distance of the found means from the true ones (samples have standard deviation 1), "
            "over ten draws ± standard error.\n\n" +
            table(["groups", "reclust, s", "scikit-learn, s", "times as fast", "error of reclust", "error of scikit-learn"], rows))


def embeddings(measured: dict[str, Any]) -> str:
    rows = []
    for data, seen in measured.items():
        for side, scores in seen.items():
            if isinstance(scores, dict):
                cells = [f"{100 * mean(scores[score]):.1f}" + (f" ± {100 * stdev(scores[score]):.1f}" if len(scores[score]) > 1 else "") for score in ("accuracy", "nmi", "ari")]
                rows.append([f"{data}, {seen['rows']:,} × {seen['features']}", side, *cells, f"{mean(scores['processor_seconds']):.0f}"])
    return ("Clustering embeddings from a pretrained model, mean ± standard deviation over the seeds. The shape of `Embeddings` was chosen "
            "on the docstrings with their labels; the other docstrings played no part.\n\n" +
            table(["data", "method", "ACC", "NMI", "ARI", "processor time, s"], rows))


def self_labeling(measured: dict[str, Any]) -> str:
    rows = [[name, mean_and_error(seen["accuracy"]), f"{min(seen['classes'])} to {max(seen['classes'])}"] for name, seen in measured.items()]
    return ("Self-labeling after IDEC on the bundled digits: without evenness classes die, with it they do not. For a perceptron on 8 × 8 "
            "pixels self-labeling gains nothing either way.\n\n" + table(["after", "ACC", "classes"], rows))


def digits_cpu(measured: dict[str, Any]) -> str:
    return (f"`preset=\"best\"` on the 1,797 bundled digits without a GPU: ACC {mean_and_error(measured['kept'])} over "
            f"{len(measured['kept'])} whole fits, the best of each fit's ten replicas {mean_and_error(measured['best_replica'])}, the average "
            f"replica {mean_and_error(measured['mean_replica'])}; {min(measured['seconds']):.0f} to {max(measured['seconds']):.0f} s per fit, several "
            "at once on a busy machine.")


def import_time(measured: dict[str, Any]) -> str:
    seconds = measured["processor_seconds"]
    return (f"`import reclust` takes {seconds['reclust']:.2f} s of processor time, since names are imported when they are first used, and "
            f"`reclust --help` {seconds['reclust --help']:.2f} s. All names together take {measured['ratio']:.2f} times "
            f"`import torch, sklearn.cluster` ({seconds['all names of reclust']:.2f} s against {seconds['torch and scikit-learn']:.2f} s).")


def front_door(measured: dict[str, Any]) -> str:
    """Means over the sets, and the sets one by one, folded."""
    methods = list(dict.fromkeys(method for seen in measured.values() for method in seen["methods"]))
    everywhere = {method: [seen["methods"][method] for seen in measured.values()]
                  for method in methods if all(method in seen["methods"] for seen in measured.values())}
    means = [[method, *(f"{mean([seen[name] for seen in found]):.1f}" for name in ("acc", "nmi", "ari", "seconds"))]
             for method, found in everywhere.items()]
    each = [[name, f"{seen['samples']:,} × {seen['features']:,}", str(seen["classes"]), *(
        f"{seen['methods'][method]['acc']:.1f}" if method in seen["methods"] else "–" for method in methods)]
        for name, seen in measured.items()]
    return (f"Means over {len(measured)} sets in percent. Reclust gets nothing but the number of classes; labels only score. K-means is "
            "the mean of ten seeds with ten restarts each. HDBSCAN and EVoC find the number of clusters themselves.\n\n" +
            table(["method", "ACC", "NMI", "ARI", "seconds"], means) +
            "\n\n<details markdown=\"1\"><summary>ACC of each set</summary>\n\n" +
            table(["set", "size", "classes", *methods], each) + "\n\n</details>")


def front_door_images(measured: dict[str, Any]) -> str:
    rows = []
    for name, seen in measured.items():
        found = seen["methods"]["Reclust, normal"]
        rows.append([name, f"{seen['samples']:,}", str(seen["classes"]), mean_and_error(found["each"]),
                     *(f"{found[measure]:.1f}" for measure in ("nmi", "ari", "seconds"))])
    return ("`Reclust` with nothing but the number of classes, five fits of each set: mean ± standard error of ACC in percent, and the "
            "seconds of a fit. Other methods on these sets: [comparison](how/compare.md).\n\n" +
            table(["set", "images", "classes", "ACC", "NMI", "ARI", "seconds"], rows))


def unknown_k(measured: dict[str, Any]) -> str:
    """Means over the sets, and the sets one by one, folded."""
    methods = list(dict.fromkeys(method for seen in measured.values() for method in seen["methods"]))
    runs = {method: [seen["methods"][method] for seen in measured.values() if method in seen["methods"]] for method in methods}
    means = [[method, f"{mean([run['ari'] for run in found]):.1f}", f"{median([run['error'] for run in found]):.2f}",
              f"{mean([run['seconds'] for run in found]):.0f}", str(len(found))] for method, found in runs.items()]
    each = [[name, f"{seen['samples']:,} × {seen['features']:,}", str(seen["classes"]), *(
        f"{seen['methods'][method]['ari']:.1f} ({seen['methods'][method]['k']})" if method in seen["methods"] else "–"
        for method in methods)] for name, seen in measured.items()]
    return ("Every method finds the number of clusters itself, with its defaults; labels only score. Mean ARI in percent, median error of "
            "the number relative to the true one, mean seconds.\n\n" + table(["method", "ARI", "error of k", "seconds", "sets"], means) +
            "\n\n<details markdown=\"1\"><summary>ARI of each set, and the number of clusters</summary>\n\n" +
            table(["set", "size", "classes", *methods], each) + "\n\n</details>")


def uneven(measured: dict[str, Any]) -> str:
    methods = list(next(iter(measured.values()))["methods"])
    rows = [[name, f"{seen['samples']:,}", *(f"{seen['methods'][method]['ari']:.1f}" for method in methods)]
            for name, seen in measured.items()]
    return ("Classes are thinned until the largest is 1, 10 or 100 times the smallest; ARI in percent. Told: the network of `Reclust` with "
            "the true sizes, by k-means or from its probabilities, whichever is better.\n\n" + table(["set", "samples", *methods], rows))


def cells(measured: dict[str, Any]) -> str:
    methods = list(next(iter(measured.values()))["methods"])
    rows = [[method, *(f"{seen['methods'][method]['ari']:.1f}" for seen in measured.values()),
             " ".join(str(seen["methods"][method]["clusters"]) for seen in measured.values()),
             f"{mean(seen['methods'][method]['seconds'] for seen in measured.values()):.0f}"] for method in methods]
    suggested = ", ".join(str(seen["suggest_k"]) for seen in measured.values())
    return ("Counts of 2,000 genes in 3,000 cells of eight types (50, 100, 150, 250, 400, 500, 650 and 900 cells), log-normalized, 50 principal "
            f"components; ARI in percent. `suggest_k` finds {suggested}.\n\n" +
            table(["method", *measured, "clusters", "seconds"], rows))


def doubtful(measured: dict[str, Any]) -> str:
    sure = [seen["right_if_sure"] for seen in measured.values() if seen["right_if_sure"] is not None]
    rows = []
    for kind in next(iter(measured.values()))["auc"]:
        found = [seen["auc"][kind] for seen in measured.values() if seen["auc"][kind]["k-means"] >= 0.8]
        rows.append([kind, str(len(found)), *(f"{mean([one[method] for one in found]):.3f}" for method in ("k-means", "Reclust")),
                     str(sum(one["Reclust"] >= 0.9 for one in found))])
    return (f"Of the samples with a probability of at least 0.9, {100 * mean(sure):.1f} % have the commonest class of their cluster (mean of the "
            f"{len(sure)} of {len(measured)} tables that have such samples). Below: rows of noise that are mixed in, and the area under the curve by "
            "which `outlier_score_` and the distance to the nearest center of k-means find them, where the latter has at least 0.8.\n\n" +
            table(["noise", "tables", "k-means", "Reclust", "tables where Reclust has 0.9"], rows))


def mixed_tables(measured: dict[str, Any]) -> str:
    methods = list(next(iter(measured.values())))
    rows = [[method, *(f"{mean([seen[method][name] for seen in measured.values()]):.1f}" for name in ("ari", "seconds"))]
            for method in methods]
    return (f"Means over {len(measured)} tables with planted classes: numbers, categories, dates, missing values and a column of ids.\n\n" +
            table(["method", "ARI", "seconds"], rows))


def front_door_speed(measured: dict[str, Any]) -> str:
    methods = list(next(iter(measured.values()))["methods"])
    rows = [[name, *(f"{seen['methods'][method]['seconds']:.1f}" for method in methods)] for name, seen in measured.items()]
    return ("Seconds for random rows in ten and twenty groups; the first use of UMAP includes its compilation.\n\n" +
            table(["rows", *methods], rows))


SECTIONS: list[tuple[str, str, str, Callable[[dict[str, Any]], str]]] = [
    ("Replicas on a GPU", "replicas_cuda", "benchmarks/replicas.py", replicas_cuda),
    ("Replicas on a CPU", "replicas_cpu", "benchmarks/replicas.py --device cpu", replicas_cpu),
    ("BatchNorm of stacked replicas", "batch_norm_cuda", "benchmarks/batch_norm.py", batch_norm_cuda),
    ("Published runs", "published_run_idec", "benchmarks/published_run.py", published_run_idec),
    ("Published runs on a CPU", "published_run_idec_cpu",
     "benchmarks/published_run.py --device cpu --sets optdigits --precisions bf16 --processes 10 --checkpoint FOLDER", published_run_idec_cpu),
    ("What BRB costs", "brb_overhead_cuda", "benchmarks/brb_overhead.py", brb_overhead_cuda),
    ("Contrastive epochs", "contrastive_epoch", "benchmarks/color.py --timing --compile always", contrastive_epoch),
    ("CIFAR10 through all stages", "color_cifar10_400_0.2", "benchmarks/color.py cifar10.npz --cells a d --length 0.2 --as-published",
     partial(color, dataset="cifar10", name="CIFAR10", remark=ONE_COLLAPSE)),
    ("CIFAR100-20 through all stages", "color_cifar100_20_400_0.2",
     "benchmarks/color.py cifar100_20.npz --dataset cifar100_20 --cells a --length 0.2",
     partial(color, dataset="cifar100_20", name="CIFAR100-20")),
    ("Self-labeling on digits", "self_labeling", "benchmarks/self_labeling.py", self_labeling),
    ("Best on a CPU", "digits_cpu", "benchmarks/digits_cpu.py --processes 3", digits_cpu),
    ("Against ClustPy", "clustpy_epoch", "benchmarks/clustpy_epoch.py --threads 2 --precisions float32 bf16", clustpy_epoch),
    ("Precision on a CPU", "precision_cpu", "benchmarks/precision_cpu.py", precision_cpu),
    ("Against a plain loop", "plain_loop", "benchmarks/plain_loop.py", plain_loop),
    ("Scaling on a CPU", "scaling_cpu", "benchmarks/scaling.py --device cpu", scaling),
    ("Scaling on a GPU", "scaling_cuda", "benchmarks/scaling.py", scaling),
    ("Measures on a CPU", "measures_cpu", "benchmarks/measures.py --device cpu", measures),
    ("Measures on a GPU", "measures_cuda", "benchmarks/measures.py", measures),
    ("Gaussian mixtures on a CPU", "mixture_cpu", "benchmarks/mixture.py --device cpu", mixture),
    ("Gaussian mixtures on a GPU", "mixture_cuda", "benchmarks/mixture.py", mixture),
    ("Streaming", "streaming", "benchmarks/streaming.py", streaming),
    ("Many rows", "streaming_rows", "benchmarks/streaming_rows.py", streaming_rows),
    ("A hundred million rows", "many_rows_cuda", "benchmarks/many_rows.py", hundred_million),
    ("Nearest neighbors", "neighbors", "benchmarks/neighbors.py mnist.npz fmnist.npz", neighbors),
    ("Many fits", "soak", "benchmarks/soak.py", soak),
    ("Many runs", "store_size", "benchmarks/store_size.py", store_size),
    ("Small studies", "small_studies", "benchmarks/small_studies.py", small_studies),
    ("Augmentation", "augmentation", "benchmarks/augmentation.py", augmentation),
    ("Precomputed embeddings", "embeddings", "benchmarks/embeddings.py", embeddings),
    ("Reclust on tables", "front_door_tables", "benchmarks/front_door.py tables tables.npz --efforts normal quick", front_door),
    ("Reclust on tables of R packages", "front_door_r_tables",
     "benchmarks/front_door.py tables FOLDER --efforts normal quick --record front_door_r_tables", front_door),
    ("Reclust on mixed columns", "mixed_tables", "benchmarks/mixed_tables.py", mixed_tables),
    ("Reclust on texts", "front_door_texts", "benchmarks/front_door.py texts FOLDER", front_door),
    ("Reclust on images", "front_door_images_cuda_*", "benchmarks/front_door.py images FOLDER --only-ours --repetitions 5",
     front_door_images),
    ("Reclust on images, on a CPU", "front_door_images_cpu", "benchmarks/front_door.py images FOLDER --record front_door_images_cpu",
     front_door),
    ("Seconds of Reclust", "front_door_speed", "benchmarks/front_door.py speed --efforts normal quick", front_door_speed),
    *((f"Unknown number of clusters: {kind}", f"unknown_k_{kind}", f"benchmarks/unknown_k.py {kind} FOLDER{more}", unknown_k)
      for kind, more in (("tables", ""), ("texts", ""), ("images", " --sets digits optdigits usps mnist gtsrb --rows 10000"))),
    ("Probabilities and outliers", "doubtful", "benchmarks/doubtful.py tables.npz", doubtful),
    ("Clusters of uneven size", "uneven_images", "benchmarks/uneven.py images FOLDER --sets digits optdigits", uneven),
    ("Photos", "photos", "benchmarks/photos.py gtsrb.npz", photos),
    ("Simulated cells", "cells", "benchmarks/cells.py", cells),
    ("Import", "import_time", "benchmarks/import_time.py", import_time),
]


def machine(record: dict[str, Any]) -> str:
    where, versions = record["machine"], record["versions"]
    units = ", ".join(filter(None, (f"{where['processor']}, {where['threads']} threads", where["gpu"])))
    return f"{units}; torch {versions['torch']}, reclust {versions['reclust']}, {record['date']}"


def page() -> str:
    parts = [HEAD]
    for title, name, command, section in SECTIONS:
        records = [json.loads(path.read_text()) for path in sorted(RECORDS.glob(f"{name}.json"))]
        if records:
            record = records[0] | {"measured": {key: seen for record in records for key, seen in record["measured"].items()}}
            command = command if command.startswith("make") else f"python {command}"
            parts.append(f"## {title}\n{section(record['measured'])}\n\n`{command}` on {machine(record)}.\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
