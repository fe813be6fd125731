"""A folder of images, and what is in each cluster.

The folder is made from scikit-learn's digits; use your own instead. The same without code:
`reclust fit photos -k 5 -o out --augment affine`
"""

# %%
from collections import defaultdict
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

from reclust import IDEC
from reclust.data import read

# %%
images, digits = load_digits(return_X_y=True)
for i in np.flatnonzero(digits < 5):
    file = Path("photos") / str(digits[i]) / f"{i}.png"
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray((images[i].reshape(8, 8) * 15.9).astype(np.uint8)).save(file)

# %% [markdown]
# `labels="folder"` uses the subfolders as known classes, only for scoring. Leave it out if your
# classes are unknown.

# %%
photos = read("photos", labels="folder")
model = IDEC(n_clusters=5, augment="affine", random_state=0).fit(photos, photos.labels)
print(photos, f"accuracy {model.history_['clustering']['accuracy'].values[-1]:.3f}")

# %%
files = defaultdict(list)
for file, cluster in zip(photos.ids, model.labels_, strict=True):
    files[cluster].append(file)
for cluster, members in sorted(files.items()):
    print(f"cluster {cluster}: {len(members)} images, such as {', '.join(members[:4])}")

# %% [markdown]
# A contact sheet with one row per cluster: the eight images the model is most confident about.

# %%
confidence = model.predict_proba(photos).max(axis=1)
rows = []
for cluster in range(model.n_clusters_):
    members = np.flatnonzero(model.labels_ == cluster)
    rows.append(np.hstack(photos.images[members[np.argsort(-confidence[members])][:8]]))
sheet = Image.fromarray(np.vstack(rows))
sheet.resize((512, 64 * len(rows)), Image.Resampling.NEAREST).save("clusters.png")
