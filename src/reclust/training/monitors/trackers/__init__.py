"""Monitors that hand the curves of a run, live, to a tracker: TensorBoard, MLflow, Weights & Biases."""

from .base import Tracker
from .mlflow import MLflow
from .tensorboard import TensorBoard
from .wandb import WandB

__all__ = ["MLflow", "TensorBoard", "Tracker", "WandB"]
