"""Progress reaches a bar, a function or a callback object."""

import pytest

from reclust.utils.progress import ProgressCallback, duration, progress_bar


class Recorder(ProgressCallback):
    def __init__(self):
        self.seen = []

    def report(self, done, task):
        self.seen.append((done, task))


def test_callbacks_receive_the_share_and_the_task():
    shares, recorder = [], Recorder()
    for progress in (shares.append, recorder):
        with progress_bar(4, progress, desc="first") as bar:
            bar.update()
            bar.set_description_str("second", refresh=False)
            bar.set_postfix_str("x")
            bar.update(5)
    assert shares == [0.25, 1.0] and recorder.seen == [(0.25, "first"), (1.0, "second")]


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
