"""Stop a fit and continue: the result is the same, bit for bit.

`checkpoint=` names a folder or file. A crash, Ctrl-C or a time budget loses at most the epochs
since the last write.
"""

# %%
import numpy as np
from sklearn.datasets import load_digits

from reclust import IDEC

X, _ = load_digits(return_X_y=True)


def model(**options):
    return IDEC(10, pretrain_epochs=5, epochs=25, random_state=0, **options)


# %%
uninterrupted = model().fit(X)

# %% [markdown]
# Here a time budget of two seconds interrupts the fit, with a warning. After a real kill you would
# run the same call again.

# %%
stopped = model(time_budget=2).fit(X, checkpoint="states", every=2)
done = stopped.result_.trained_epochs("clustering")
print(f"stopped after {done} of 25 epochs")

# %%
resumed = model().fit(X, checkpoint="states", every=2)
print("epochs", resumed.result_.trained_epochs("clustering"))
assert np.array_equal(resumed.labels_, uninterrupted.labels_)
assert np.array_equal(resumed.transform(X), uninterrupted.transform(X))
print("the same labels and embeddings as without the interruption")
