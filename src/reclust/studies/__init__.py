"""Studies: many runs, planned as one value, computed in groups, kept in one file."""

from .store import Failure, Outcome, PlannedRun, Status, Store, StoreReader, export

__all__ = ["Failure", "Outcome", "PlannedRun", "Status", "Store", "StoreReader", "export"]
