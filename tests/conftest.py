"""What every test shares."""

import os
import signal

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is imported; a forked process that wants more threads hangs

import pytest
import torch
from browser import Browser, executable

torch.set_num_threads(1)  # tests compute little: threads would only wait for each other


@pytest.fixture(autouse=True)
def one_thread():
    """Undo what a test set."""
    yield
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def gradients_stay_on():
    """A test that switches them off for good would fail others."""
    yield
    assert torch.is_grad_enabled()


@pytest.fixture(autouse=True)
def interruptible():
    """Shells let what runs in their background ignore Ctrl-C, and tests of it would wait in vain."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if executable() is None:
        pytest.skip("No Chromium here: `make chromium` installs Debian's where it may.")
    opened = Browser(tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()
