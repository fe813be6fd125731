"""Embeddings do not depend on the size of chunks."""

import torch
from support import blobs, small_settings

from reclust import Every, Execution, Schedule, train
from reclust.data.augmentation.affine import Noise
from reclust.interventions import Exchange
from reclust.training.engine import embedding

X, Y = blobs(n=60)


def test_pieces_change_nothing(monkeypatch):
    def seen():
        found = {}
        def look(snapshot):
            if (snapshot.phase, snapshot.moment, snapshot.epoch) == ("clustering", "epoch", 1):
                found.update(z=snapshot.embeddings, labels=snapshot.labels, loss=snapshot.representation_loss())
        class Look(Exchange):
            def __call__(self, target):
                rows = torch.arange(60)
                found["views"] = target.peers.embed_views(rows, target.key[0], Noise())
                found["turned"] = target.peers.embed_views(rows.flip(0), target.key[0], Noise()).flip(1)
        train(X, small_settings(pretraining=None, clustering=Schedule(2, batch_size=30), intervention=Every(1, (Look(),))), seeds=[0, 1], monitors=[look], execution=Execution("cpu", "float64"))
        return found
    whole = seen()
    monkeypatch.setattr(embedding, "CHUNK", 7)
    for name, found in seen().items():
        torch.testing.assert_close(found, whole[name], msg=name)
    torch.testing.assert_close(whole["views"], whole["turned"])
