"""A researcher's own encoder, with BRB and without."""

from sklearn.datasets import load_digits
from torch import nn

from reclust import BRB, IDEC, OwnAutoencoder, metrics

X, y = load_digits(return_X_y=True)
encoder = nn.Sequential(nn.Linear(64, 128), nn.LayerNorm(128), nn.GELU(), nn.Dropout(0.1),
                        nn.Linear(128, 10))
own = OwnAutoencoder(encoder, nn.Sequential(nn.Linear(10, 128), nn.GELU(), nn.Linear(128, 64)))
for intervention in (None, BRB(interval=5)):
    model = IDEC(10, representation=own, intervention=intervention, n_init=3, random_state=0,
                 pretrain_epochs=0, epochs=20).fit(X)
    print(intervention, [round(metrics.accuracy(y, x.labels), 3) for x in model.replicas_])
