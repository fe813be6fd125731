"""HTML reports: one file that opens offline. Arrays become plain data, plain data becomes a page."""

from .page import page, write
from .parts import confusion, curve, records, scene, sheet

__all__ = ["confusion", "curve", "page", "records", "scene", "sheet", "write"]
