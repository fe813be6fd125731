"""Monitors that send the curves of a run to TensorBoard, MLflow or Weights & Biases."""

from .base import Tracker
from .mlflow import MLflow
from .tensorboard import TensorBoard
from .wandb import WandB

__all__ = ["MLflow", "TensorBoard", "Tracker", "WandB"]
