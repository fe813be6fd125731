"""Runs are grouped so that they stack and share their pretraining."""

import pytest

from reclust import BRB
from reclust.studies import ContrastiveProtocol, Variant, named
from studies.tiny import tiny_study


def test_variants_and_algorithms_share_their_pretraining():
    shared = {group.pretraining.key for group in named("acc-table").groups() if group.pretraining is not None}
    assert len(shared) == 6, "one for each data set"
    assert {group.pretraining.key for group in named("embeddings").groups()} <= shared


@pytest.mark.parametrize(("seeds", "largest", "together"), [
    (6, 40, {(0, 1, 2, 3, 4, 5)}), (6, 10, {(0, 1, 2, 3, 4, 5)}), (6, 4, {(0, 1, 2, 3), (4, 5)})])
def test_groups_end_with_a_variant_so_that_they_share_their_pretraining(seeds, largest, together):
    variants = tuple(Variant(str(interval), BRB(interval)) for interval in range(2, 9))
    groups = tiny_study(algorithms=("dec",), pretrained=(True,), variants=variants, seeds=tuple(range(seeds)), largest_group=largest).groups()
    assert {group.pretraining.seeds for group in groups} == together
    assert len({group.pretraining.key for group in groups}) == len(together)
    assert sum(len(group.runs) for group in groups) == 7 * seeds and max(len(group.runs) for group in groups) <= largest


def test_contrastive_variants_are_pretrained_with_their_own_representation():
    changes = ({}, {"temperature": 0.1}, {"hidden": (8,)})
    variants = tuple(Variant(str(i), changes={"representation": one} if one else {}) for i, one in enumerate(changes))
    groups = tiny_study(protocol=ContrastiveProtocol(), datasets=("cifar10",), algorithms=("dec", "idec"), pretrained=(True,),
                        variants=variants).groups()
    assert len({group.pretraining.key for group in groups}) == 3, "whatever the algorithm"
    assert {group.pretraining.settings.representation.temperature for group in groups} == {0.5, 0.1}
