"""HTML reports as one file that opens offline: arrays become plain data, plain data a page."""

from .page import page, write
from .parts import confusion, curve, records, scene, sheet

__all__ = ["confusion", "curve", "page", "records", "scene", "sheet", "write"]
