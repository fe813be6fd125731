"""Progress reaches a bar or a function."""

import pytest

from reclust.utils.progress import duration, progress_bar


def test_functions_receive_the_share():
    shares = []
    with progress_bar(4, shares.append, desc="first") as bar:
        bar.update()
        bar.set_description_str("second", refresh=False)
        bar.set_postfix_str("x")
        bar.update(5)
    assert shares == [0.25, 1.0]


def test_no_work_is_done_at_once():
    shares = []
    with progress_bar(0, shares.append) as bar:
        bar.update(0)
    assert shares == [1.0]


@pytest.mark.parametrize(("progress", "shown"), [(True, True), (False, False), (None, False)])
def test_bars_are_shown_on_request_or_in_a_terminal(progress, shown, capsys):
    with progress_bar(2, progress, desc="work") as bar:
        bar.update(2)
    assert ("work" in capsys.readouterr().err) == shown


@pytest.mark.parametrize(("seconds", "written"), [(0.0423, "0.042 s"), (4.21, "4.2 s"), (59.4, "59 s"), (59.9, "1 min 0 s"), (119.7, "2 min 0 s"),
                                                  (125, "2 min 5 s"), (12_000, "3 h 20 min"), (190_000, "2 d 4 h")])
def test_durations_as_people_write_them(seconds, written):
    assert duration(seconds) == written
