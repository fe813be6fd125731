"""Interventions in training loops of other packages, which each module is named after."""
