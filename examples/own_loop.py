"""BRB in your own PyTorch training loop, in three lines.

The loop is a plain IDEC: an autoencoder, learnable centers, Adam. The three lines marked BRB are
all that reclust adds. It clusters scikit-learn's digits and prints the accuracy as it goes.
"""

# %%
import torch
from sklearn.datasets import load_digits
from torch import nn

from reclust import BRB, KMeans, Target, draws  # BRB 1
from reclust.metrics import accuracy

images, y = load_digits(return_X_y=True)
X = torch.tensor((images - images.mean()) / images.std(), dtype=torch.float32)


# %%
def network(a, b, c, d):
    return nn.Sequential(nn.Linear(a, b), nn.ReLU(), nn.Linear(b, c), nn.ReLU(), nn.Linear(c, d))


torch.manual_seed(0)
encoder, decoder = network(64, 256, 128, 10), network(10, 128, 256, 64)
centers = nn.Parameter(KMeans()(encoder(X).detach(), 10, draws.key(0)))
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), centers], lr=1e-3)
brb = BRB(interval=10, keep=0.8)  # BRB 2


# %%
def soft_assignment(z):
    q = 1 / (1 + torch.cdist(z, centers).pow(2))
    return q / q.sum(1, keepdim=True)


for epoch in range(40):
    fired = brb(epoch, Target.of(encoder, centers, optimizer, embed=lambda: encoder(X)))  # BRB 3
    for rows in torch.randperm(len(X)).split(64):
        z = encoder(X[rows])
        q = soft_assignment(z)
        p = (q**2 / q.sum(0)).detach()
        cluster_loss = -(p / p.sum(1, keepdim=True) * q.log()).sum(1).mean()
        loss = nn.functional.mse_loss(decoder(z), X[rows]) + 0.1 * cluster_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if fired or epoch % 10 == 9:
        score = accuracy(y, soft_assignment(encoder(X)).argmax(1))
        reset = "  <- reset" if fired else ""
        print(f"epoch {epoch:2d}  loss {loss.item():.3f}  accuracy {score:.3f}{reset}")
