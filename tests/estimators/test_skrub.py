"""A table that skrub encodes goes through a pipeline."""

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from reclust import Reclust, metrics


@pytest.mark.extras
def test_skrub_encodes_before_a_fit():
    skrub, pd = pytest.importorskip("skrub"), pytest.importorskip("pandas")
    rng, y = np.random.default_rng(0), np.arange(120) % 3
    table = pd.DataFrame({"age": rng.normal(20 + 25 * y, 3), "channel": np.array(["shop", "online", "phone"])[y],
                          "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(300 * y + rng.normal(0, 30, 120), unit="D")})
    table.loc[::10, "age"] = np.nan
    pipeline = make_pipeline(skrub.TableVectorizer(), SimpleImputer(), Reclust(3, effort="quick", random_state=0)).fit(table)
    assert metrics.ari(y, pipeline[-1].labels_) > 0.9
    np.testing.assert_array_equal(pipeline.predict(table.iloc[:5]), pipeline[-1].labels_[:5])
