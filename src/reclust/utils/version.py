"""The version alone, so that packaging and records can read it without importing the rest."""

__version__ = "0.1.0"
