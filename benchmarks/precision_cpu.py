"""One clustering epoch on a CPU in float32 and with products in bfloat16, in turns: what `precision="auto"` chooses between.

    python benchmarks/precision_cpu.py [--repeats 3] [--threads 2]

For processors with units for bfloat16; others are left out, since products in it take them many times as long.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import torch
from _epochs import clustering_only, epoch_seconds, mnist_shaped
from _records import write_record

from reclust import Execution
from reclust.data.inputs import Inputs, ResidentInputs, as_inputs
from reclust.estimators import presets
from reclust.training.settings import Settings
from reclust.utils.device import Precision

PRECISIONS, EPOCHS = ("float32", "bf16"), 3
Work = tuple[Inputs, Settings, int]


def works() -> dict[str, Work]:
    """What is timed: samples, settings and how many replicas."""
    generator, objective = torch.Generator().manual_seed(0), presets.OBJECTIVES["idec"]
    table, images = torch.randn(10_000, 50, generator=generator), torch.rand(1797, 1, 16, 16, generator=generator)
    small = presets.best(10, objective, channels=1, device="cpu", n_samples=len(images))
    return {
        "published network, 10,000 × 784": (mnist_shaped(10_000), clustering_only("idec", EPOCHS), 1),
        "table, 10,000 × 50": (as_inputs(table), only_clustering(presets.everyday(10, objective)), 1),
        f"best, {small.n_init} replicas, 1,797 × 256": (
            ResidentInputs(images, images.mean(), images.std()), only_clustering(small.settings), small.n_init),
    }


def only_clustering(settings: Settings) -> Settings:
    assert settings.clustering is not None
    return replace(settings, pretraining=None, intervention=None, clustering=replace(settings.clustering, epochs=EPOCHS))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--threads", type=int, default=2)
    arguments = options.parse_args()
    if Precision.choose(torch.device("cpu"), "auto").precision != "bf16":
        print("Left out: this processor has no units for bfloat16.")
        return
    torch.set_num_threads(arguments.threads)
    measured = {}
    for name, (inputs, settings, replicas) in works().items():
        least = dict.fromkeys(PRECISIONS, float("inf"))
        for _ in range(arguments.repeats):
            for precision in PRECISIONS:
                execution = Execution(device="cpu", precision=precision)
                seconds = epoch_seconds(inputs, settings, replicas=replicas, execution=execution)
                least[precision] = min(least[precision], seconds)
        measured[name] = {"seconds_per_epoch": least, "times_as_fast": least["float32"] / least["bf16"]}
        print(f"{name}: " + ", ".join(f"{precision} {seconds:.3f} s" for precision, seconds in least.items()))
    print(f"record: {write_record('precision_cpu', vars(arguments), measured)}")


if __name__ == "__main__":
    main()
