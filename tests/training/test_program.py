"""Runs with the settings of the authors' program against a slow transcription in plain PyTorch."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from support import blobs
from torch import nn

from reclust import Execution, KMeans, Recluster, ResNet, draws, train
from reclust.estimators import presets
from reclust.training.settings import Schedule
from reclust.utils.device import Precision

ALGORITHMS = ("dec", "idec", "dcn")
K, BATCH, SEED = 4, 24, 5
X = blobs(n=100, features=12)[0] / 5  # four batches and one of 4 samples


def jitter(x, keys):
    return x + 0.1 * draws.normal(keys, x.shape[keys.ndim:], dtype=x.dtype)


def small(settings, *, hidden=(10, 6), augment, images=False):
    """The settings of the paper for tiny networks, a few epochs, and BRB every third."""
    network = {"backbone": ResNet(width=2, weights=settings.representation.backbone.weights), "hidden": (6, 5), "embedding": 3,
               "projector": (7, 4)} if images else {"hidden": hidden}
    fewer = Recluster(KMeans(n_init=2), rows="first", subsample=60)
    intervention = settings.intervention
    if intervention is not None:
        steps = tuple(fewer if isinstance(step, Recluster) else step for step in intervention.steps)
        intervention = replace(intervention, interval=3, steps=steps)
    # Two resets; a smaller rate for the deeper network, in which rounding errors grow faster.
    epochs, lr = (8, 1e-4) if images else (7, 1e-3)
    clustering = replace(settings.clustering, batch_size=BATCH, epochs=epochs, lr=lr, warmup_epochs=2 if images else 0)
    pretraining = settings.pretraining and replace(settings.pretraining, batch_size=BATCH, epochs=2)
    return replace(settings, n_clusters=K, augment=augment, intervention=intervention, pretraining=pretraining, clustering=clustering,
                   representation=replace(settings.representation, **network), first_centers=replace(fewer, subsample=None))


class Transcription:
    """One run, step by step: the network is made of torch's layers, the random numbers are the library's."""

    def __init__(self, x, net, algorithm, *, augment, brb, lr, contrastive=False):
        self.x, self.net, self.algorithm, self.augment = x, net, algorithm, augment
        self.brb, self.lr, self.contrastive = brb, lr, contrastive
        self.head = net.projector if contrastive else net.decoder

    def batches(self, key, epoch, use="", views=1):
        """D4: the last short batch is dropped only where batches are augmented."""
        order = draws.permutation(draws.fold(key, f"{use}order", epoch), len(self.x))
        augment_key = draws.fold(key, f"{use}augment", epoch)
        for rows in order.split(BATCH):
            augmented = (views > 1 or self.contrastive) and self.augment is not None
            if augmented and len(rows) < BATCH:
                continue
            made = [self.x[rows]]
            if self.augment is not None and self.contrastive:
                made = [self.augment(self.x[rows], draws.fold(augment_key, rows, view)) for view in range(views)]
            elif augmented:
                made.append(self.augment(self.x[rows], draws.fold(augment_key, rows, 1)))
            yield made

    def representation_loss(self, views, z):
        if not self.contrastive:
            made = self.head(torch.cat(z))
            return ((made - torch.cat(views).flatten(1)) ** 2).mean()
        projected = nn.functional.normalize(self.head(torch.cat(z)), dim=1).split(len(z[0]))
        total = 0.0
        for one, other in (projected, projected[::-1]):  # the sum of both directions
            for i in range(len(one)):
                others = torch.cat([one[:i], one[i + 1 :], other])
                total = total - (one[i] @ other[i] / 0.5 - torch.logsumexp(others @ one[i] / 0.5, 0)) / len(one)
        return total

    def together(self, views):
        return self.net.encoder(torch.cat(views)).split(len(views[0]))

    def pretrain(self, epochs):
        """D11: both views in one pass, whatever follows. D5: the rate is constant."""
        key = draws.fold(draws.key(SEED), "pretraining")
        decaying = [own for own in self.net.encoder.parameters() if own.ndim > 1 and self.contrastive]
        others = [own for own in self.net.parameters() if not any(own is one for one in decaying)]
        groups = [{"params": others, "weight_decay": 0.0}, {"params": decaying, "weight_decay": 1e-4}]
        optimizer = torch.optim.AdamW(groups, lr=3e-3 if self.contrastive else 1e-3)
        self.net.train()
        for epoch in range(epochs):
            for views in self.batches(key, epoch, views=2 if self.contrastive else 1):
                optimizer.zero_grad()
                self.representation_loss(views, self.together(views)).backward()
                nn.utils.clip_grad_norm_(self.net.parameters(), 500)
                optimizer.step()

    @torch.no_grad()
    def embed(self, size=None):
        """D1b: in batches of this size in train mode; else in eval mode."""
        self.net.train(size is not None)
        return torch.cat([self.net.encoder(part) for part in self.x.split(size or len(self.x))])

    def cluster(self, epochs, *, scratch, warmup=0):
        first = draws.fold(draws.key(SEED), "first centers", "recluster")
        self.centers = nn.Parameter(KMeans(n_init=2)(self.embed(BATCH if scratch else None), K, first))
        key, learned = draws.fold(draws.key(SEED), "clustering"), self.algorithm != "dcn"
        optimizer = torch.optim.Adam([*self.net.parameters(), *([self.centers] if learned else [])])
        for epoch in range(epochs):
            late = max(0, epoch - (self.algorithm == "dcn"))  # D10
            optimizer.param_groups[0]["lr"] = self.lr * (0.01 + 0.99 * late / warmup) if late < warmup else self.lr
            if self.brb and epoch % 3 == 0 and epoch > 0:
                self.intervene(draws.fold(key, "intervention", epoch), optimizer)
            self.net.train()
            for views in self.batches(key, epoch, views=2):
                optimizer.zero_grad()
                self.loss(views).backward()
                nn.utils.clip_grad_norm_(self.net.parameters(), 500)
                optimizer.step()
            if not learned:
                self.move_centers(key, epoch)

    def loss(self, views):
        if self.algorithm == "dec":  # D1a, D12: first both views together, in vain; then each alone
            with torch.no_grad():
                self.together(views)
            z = [self.net.encoder(view) for view in views]
        else:
            z = self.together(views)
        if self.algorithm == "dcn":
            labels = ((z[0][:, None] - self.centers) ** 2).sum(-1).argmin(1)
            near = sum(((own - self.centers.detach()[labels]) ** 2).sum(-1).mean() for own in z) / len(z) / K
            return self.representation_loss(views, z) + (1e-4 if self.contrastive else 0.025) * near
        q = [1 / (1 + ((own[:, None] - self.centers) ** 2).sum(-1)) for own in z]
        q = [own / own.sum(1, keepdim=True) for own in q]
        p = q[0].detach() ** 2 / q[0].detach().sum(0)
        p = p / p.sum(1, keepdim=True)
        cluster = sum(-(p * torch.log(own + 1e-8)).sum(1).mean() for own in q) / len(q)
        if self.algorithm == "dec":
            return cluster
        return self.representation_loss(views, z) + (1.0 if self.contrastive else 0.1) * cluster

    @torch.no_grad()
    def move_centers(self, key, epoch):
        """D6: where the first view is augmented, so is what moves the centres."""
        self.net.eval()
        for view, *_ in self.batches(key, epoch, "second ", views=1 if self.contrastive or self.augment is None else 2):
            z = self.net.encoder(view)
            labels = ((z[:, None] - self.centers) ** 2).sum(-1).argmin(1)
            for j in set(labels.tolist()):
                self.centers[j] += (z[labels == j].mean(0) - self.centers[j]) / 101

    @torch.no_grad()
    def intervene(self, key, optimizer):
        """D7: the projector is left alone, as are all norms, the embedding layer and the decoder."""
        linear = [(name, layer) for name, layer in self.net.named_modules() if isinstance(layer, (nn.Linear, nn.Conv2d))]
        for name, layer in linear:
            if self.contrastive:
                keep = 0.9 if "block4" in name else 0.7 if "mlp" in name else None
            else:
                keep = 0.8 if name.startswith("encoder") and layer is not self.net.encoder[-1] else None
            if keep is None:
                continue
            for part, own in layer.named_parameters():
                bound = (6 if part == "weight" else 1) ** 0.5 / layer.weight[0].numel() ** 0.5
                noise = (2 * draws.uniform(draws.fold(key, "reset", name, part), own.shape, dtype=own.dtype) - 1) * bound
                own.copy_(keep * own + (1 - keep) * noise)
        self.centers.copy_(KMeans(n_init=2)(self.embed()[:60], K, draws.fold(key, "recluster")))
        for moment in ("exp_avg", "exp_avg_sq"):
            if self.centers in optimizer.state:
                optimizer.state[self.centers][moment].zero_()


def compared(x, settings, net, algorithm, **given):
    """Run both from the same weights; return the largest difference in weights, statistics and centres."""
    x = torch.from_numpy(x)
    execution = {executor: Execution(device="cpu", precision="float64", executor=executor) for executor in ("plain", "vmap")}
    start = train(x, replace(settings, pretraining=None, clustering=None), seeds=[SEED], execution=execution["plain"])
    net.double().load_state_dict({name: own[0] for name, own in {**start.parameters, **start.buffers}.items()})
    slow = Transcription(x, net, algorithm, augment=settings.augment, brb=settings.intervention is not None,
                         lr=settings.clustering.lr, **given)
    if settings.pretraining is not None:
        slow.pretrain(settings.pretraining.epochs)
    slow.cluster(settings.clustering.epochs, scratch=settings.pretraining is None, warmup=settings.clustering.warmup_epochs)
    wanted, gaps = effective(slow.net.state_dict() | {"centers": slow.centers.detach()}), []
    for executor in execution if settings.intervention and not given.get("contrastive") else ("plain",):
        fast = train(x, settings, seeds=[SEED, 1] if executor == "vmap" else [SEED], execution=execution[executor])
        stacks = {**fast.parameters, **fast.buffers, "centers": fast.state["centers"]}
        made = effective({name: stack[0] for name, stack in stacks.items()})
        gaps += [(made[name].double() - own.double()).abs().max().item() for name, own in wanted.items()]
    return max(gaps)


def effective(tensors):
    """Without biases before BatchNorm, which have no effect: Adam makes steps of the rounding noise in their gradients."""
    made = dict(tensors)
    for name in tensors:
        if name.endswith(".running_mean"):
            place, number = name.split(".running_mean")[0].rsplit(".", 1)
            if number.isdigit() and (bias := f"{place}.{int(number) - 1}.bias") in tensors:
                made[name] = tensors[name] - made.pop(bias)
    return made


@pytest.mark.parametrize("intervention", ["none", "brb"])
@pytest.mark.parametrize("pretrained", [False, True], ids=["scratch", "pretrained"])
@pytest.mark.parametrize("augment", [None, jitter], ids=["plain", "augmented"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_autoencoder_runs_equal_a_transcription_of_the_program(algorithm, augment, pretrained, intervention):
    settings = presets.paper("mnist", algorithm, pretrained=pretrained, intervention=intervention, reading="program")
    sizes = (12, 10, 6, K)

    def layers(sizes):
        made = [part for n, m in zip(sizes[:-2], sizes[1:-1], strict=True) for part in (nn.Linear(n, m), nn.BatchNorm1d(m), nn.ReLU())]
        return [*made, nn.Linear(*sizes[-2:])]

    net = nn.Module()
    net.encoder, net.decoder = nn.Sequential(nn.Flatten(), *layers(sizes)), nn.Sequential(*layers(sizes[::-1]))
    assert compared(X, small(settings, augment=augment), net, algorithm) < 1e-9


@pytest.mark.parametrize(("algorithm", "intervention"), [
    ("dec", "brb"), ("dcn", "brb"),
    *(pytest.param(*one, marks=pytest.mark.slow) for one in (("dec", "none"), ("dcn", "none"), ("idec", "none"), ("idec", "brb")))])
def test_contrastive_runs_equal_a_transcription_of_the_program(algorithm, intervention):
    settings = small(presets.paper("cifar10", algorithm, intervention=intervention, reading="program"), augment=jitter, images=True)
    images = np.random.default_rng(0).normal(size=(60, 3, 8, 8))
    assert compared(images, settings, settings.representation.build((3, 8, 8), K), algorithm, contrastive=True) < 1e-9


def test_the_rate_of_dcn_rises_one_epoch_late_and_pretraining_has_no_warm_up():
    """D5, D10."""
    settings = presets.paper("cifar10", "dcn", reading="program")
    rates = [settings.clustering.learning_rate(epoch) / 1e-2 for epoch in range(23)]
    assert rates[:2] == [0.01, 0.01] and rates[2] > 0.01 and rates[20] < rates[21] == rates[22] == 1
    assert settings.pretraining.learning_rate(0) == 3e-3
    assert Schedule(5, warmup_delay=3).learning_rate(0) == 1e-3


def test_tf32_is_allowed_wherever_a_gpu_computes():
    """D2: "high" and "medium" are both TF32 on a GPU."""
    def inside(precision, place):
        with getattr(Precision(torch.device("cuda"), precision), place)():
            return torch.get_float32_matmul_precision()

    assert [inside("tf32", place) for place in ("training", "evaluation")] == ["high", "high"]
    assert inside("float32", "evaluation") == torch.get_float32_matmul_precision() == "highest"
    assert Precision(torch.device("cuda"), "tf32").products == torch.float32
