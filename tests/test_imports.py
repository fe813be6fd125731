"""`import reclust` brings the core's dependencies and nothing else."""

import json
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
EXTRAS = {"matplotlib", "pandas", "pyarrow", "PIL", "h5py", "anndata", "ray", "onnx", "onnxruntime", "onnxscript", "umap", "shtab", "lightning",
          "pytorch_lightning", "tensorboard", "mlflow", "wandb", "sentence_transformers", "transformers", "triton"}


def test_extras_are_not_imported():
    """torch and scikit-learn come first, since they may bring some of them, where they are installed."""
    code = (f"import json, sys; sys.path.insert(0, {str(SOURCE)!r}); import torch, sklearn.cluster; core = set(sys.modules)\n"
            "from reclust import *\nfrom reclust.studies import *\nimport reclust.training.monitors.trackers, reclust.interventions.adapters, reclust.interventions.adapters.clustpy, reclust.cli\n"
            "print(json.dumps(sorted({name.partition('.')[0] for name in set(sys.modules) - core})))")
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    ours = set(json.loads(ran.stdout))
    assert "reclust" in ours and not ours & EXTRAS, ours & EXTRAS


def test_the_version_is_the_same_everywhere():
    import reclust

    citation = (SOURCE.parent / "CITATION.cff").read_text()
    assert f"\nversion: {reclust.__version__}\n" in citation
