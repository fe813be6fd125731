"""The page is one file in which data stays data."""

import json

import numpy as np

from reclust.report.page import page, to_json

HOSTILE = "</script><img src=x onerror=alert(1)> &amp; '\"\u2028"


def test_data_cannot_end_its_element():
    given = {HOSTILE: [HOSTILE, 1.23456789, float("nan"), np.float32(2.0), np.arange(3), (None, True)]}
    text = to_json(given)
    assert not set("<>&") & set(text)
    assert json.loads(text) == {HOSTILE: [HOSTILE, 1.235, None, 2, [0, 1, 2], [None, True]]}


def test_a_page_loads_nothing():
    text = page(HOSTILE, {"title": HOSTILE, "@@script@@": 1})
    assert "<img" not in text
    assert text.count("</script>") == 2
    assert "http://www.w3.org/2000/svg" in text  # a namespace, not a link
    assert text.count("http") == text.count("http-equiv") + 1
