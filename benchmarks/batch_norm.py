"""Epochs of ten stacked autoencoders with BatchNorm against those without, on MNIST's shapes.

    python benchmarks/batch_norm.py               on a GPU: 70,000 images, in TF32 and in bfloat16

Batch 256, augmented. "program" adds what else DEC's step does in the authors' program: it encodes both views once together and
once apart.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import torch
from _epochs import clustering_only, epoch_seconds, mnist_shaped
from _records import write_record

from reclust import Execution
from reclust.estimators.presets import as_program


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options.add_argument("--rows", type=int, default=70_000)
    options.add_argument("--replicas", type=int, default=10)
    arguments = options.parse_args()
    data, measured = mnist_shaped(arguments.rows), {}
    for precision in ("tf32", "bf16"):
        execution = Execution(device=arguments.device, precision=precision)
        for algorithm in ("dec", "idec", "dcn"):
            plain = clustering_only(algorithm, 4)
            forms = {"without": plain, "with": replace(plain, representation=replace(plain.representation, batch_norm=True)),
                     "program": as_program(plain)}
            times = {name: epoch_seconds(data, settings, replicas=arguments.replicas, execution=execution) for name, settings in forms.items()}
            measured[f"{precision}, {algorithm}"] = {"seconds_per_epoch": times, "with_over_without": times["with"] / times["without"],
                                                     "program_over_without": times["program"] / times["without"]}
            print(f"{precision:5} {algorithm:5} {times['without']:.3f} s an epoch without BatchNorm, {times['with'] / times['without']:.2f} "
                  f"times that with it, {times['program'] / times['without']:.2f} in the program")
    print(f"record: {write_record(f'batch_norm_{arguments.device}', vars(arguments), measured)}")


if __name__ == "__main__":
    main()
