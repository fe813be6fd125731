"""BRB in Lightning's loop does what it does in one's own."""

import copy

import pytest
import torch
from support import blobs
from torch import nn

from reclust import BRB, KMeans, Target
from reclust.objectives import DECObjective

lightning = pytest.importorskip("lightning.pytorch")

X = torch.from_numpy(blobs(n=120, features=6)[0]).float()
BATCHES = [X[i : i + 30] for i in range(0, 120, 30)]
EPOCHS, INTERVENTION = 7, BRB(interval=3, method=KMeans(n_init=1))
OBJECTIVE = DECObjective()


class Clustering(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.encoder = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.0), nn.Linear(8, 3))
            self.centers = nn.Parameter(torch.randn(4, 3))

    def training_step(self, batch, number):
        return OBJECTIVE.loss({"centers": self.centers}, self.encoder(batch).unsqueeze(0))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)

    def target(self, optimizer):
        return Target.of(self.encoder, self.centers, optimizer, embed=lambda: self.encoder(X), seed=5)


def by_hand(intervention):
    model = Clustering().train()
    optimizer = model.configure_optimizers()
    for epoch in range(EPOCHS):
        if intervention is not None:
            intervention(epoch, model.target(optimizer))
        for batch in BATCHES:
            optimizer.zero_grad()
            model.training_step(batch, 0).backward()
            optimizer.step()
    return model.state_dict()


def by_lightning(tmp_path, callbacks):
    model = Clustering()
    trainer = lightning.Trainer(max_epochs=EPOCHS, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False,
                                enable_progress_bar=False, enable_model_summary=False, callbacks=callbacks,
                                default_root_dir=tmp_path)
    trainer.fit(model, torch.utils.data.DataLoader(BATCHES, batch_size=None))
    return model.state_dict()


@pytest.mark.filterwarnings("ignore")
def test_the_callback_is_the_own_loop(tmp_path):
    from reclust.interventions.adapters.lightning import InterventionCallback

    callback = InterventionCallback(INTERVENTION, target=lambda trainer, module: module.target(trainer.optimizers[0]))
    found, expected, without = by_lightning(tmp_path, [callback]), by_hand(INTERVENTION), by_hand(None)
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, msg=name)
    assert not torch.allclose(without["centers"], expected["centers"])


@pytest.mark.filterwarnings("ignore")
def test_without_a_firing_nothing_is_asked_or_changed(tmp_path):
    from reclust.interventions.adapters.lightning import InterventionCallback

    def never(trainer, module):
        raise AssertionError

    found = by_lightning(tmp_path, [InterventionCallback(BRB(interval=EPOCHS), target=never)])
    for name, tensor in by_hand(None).items():
        torch.testing.assert_close(found[name], tensor, msg=name)
    assert copy.deepcopy(InterventionCallback(target=never)).intervention == BRB(), "BRB unless said otherwise"
