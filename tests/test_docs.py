"""What the documentation says can be done, can be done: its code runs, its commands exist, its names are all there."""

import json
import re
import shlex
from types import ModuleType

import numpy as np
import pytest
from pages import PAGES, ROOT, blocks, commands, name, programs

import reclust
from reclust.cli import parser

SLOW = {"README.md", "docs/selection.md", "docs/integrations.md", "docs/trackers.md", *(f"docs/guides/{name}.md" for name in ("seeds", "collapse", "images", "choosing_k"))}
"""Pages whose code trains for longer than a unit test may."""

MARKED = [pytest.param(page, id=name(page), marks=[pytest.mark.slow] if name(page) in SLOW else [])
          for page in PAGES if programs(page)]


@pytest.mark.filterwarnings("ignore::reclust.ReclustWarning")
@pytest.mark.parametrize("page", MARKED)
def test_the_code_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    state, namespace = np.random.get_state()[1].tolist(), {"__name__": name(page)}
    for line, code in programs(page):
        # Lines of a traceback are those of the page.
        exec(compile("\n" * line + code, str(page), "exec"), namespace)
    assert np.random.get_state()[1].tolist() == state


@pytest.mark.parametrize("page", [pytest.param(page, id=name(page)) for page in PAGES if commands(page)])
def test_the_commands_of_a_page_exist(page):
    for line, command in commands(page):
        words = [word for word in shlex.split(command)[1:] if word not in ("…", "...")]
        try:
            parser().parse_args(words)
        except SystemExit as end:
            assert end.code == 0, f"{name(page)}:{line}: {command}"


def test_few_blocks_are_left_out_and_each_says_why():
    left_out = [info for page in PAGES for _, language, info, _ in blocks(page) if language == "python" and "Not run" in info]
    assert all(re.search(r'title="Not run by the tests: \w', info) for info in left_out)
    run = sum(len(programs(page)) for page in PAGES)
    assert len(left_out) < run / 5


def test_every_public_name_is_in_the_reference():
    listed = {found for page in (ROOT / "docs/api").glob("*.md") for found in re.findall(r"^::: (\S+)$", page.read_text(), flags=re.MULTILINE)}
    assert {f"reclust.{public}" for public in reclust.__all__ if not isinstance(getattr(reclust, public), ModuleType)} <= listed


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    for page in PAGES[1:]:
        assert re.search(rf"[ :]{re.escape(str(page.relative_to(ROOT / 'docs')))}$", navigation, flags=re.MULTILINE), page


def test_numbers_beside_those_of_others_are_the_records():
    def measured(name):
        return json.loads((ROOT / f"benchmarks/records/{name}.json").read_text())["measured"]

    compare, gpu, big = (" ".join((ROOT / f"docs/{page}.md").read_text().split()) for page in ("compare", "guides/gpu", "guides/big"))
    against = measured("clustpy_epoch")
    assert ", ".join(f"{against[name]['times_clustpys_speed']['float32']:.2f}" for name in ("DEC", "IDEC", "DCN")) + " times its speed" in compare
    assert f"{measured('plain_loop')['reclust_over']['by hand, default Adam']:.2f} times its time" in compare
    one, ten, forty = (measured("replicas_cuda")[f"bf16, idec, {replicas}"]["seconds_per_epoch"] for replicas in (1, 10, 40))
    assert f"{ten:.2f} s, {ten / 10:.3f} s a seed" in compare
    assert f"took {one:.2f} s with one replica and {forty:.2f} s with forty" in gpu
    for which, run in measured("published_run_idec").items():
        if which.endswith("auto"):
            assert f"{run['mean']:.1f} ± {run['standard_error']:.1f} | ten seeds" in compare, which
    stream = measured("streaming")
    assert f"kept {stream['peak_anonymous_gb']:.2f} GB in memory, and a row cost {stream['streamed_over_resident']:.2f} times" in big


def test_extras_named_in_the_documentation_exist():
    tomllib = pytest.importorskip("tomllib")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for page in PAGES:
        for named in re.findall(r"reclust\[([\w,]+)\]", page.read_text()):
            assert set(named.split(",")) <= set(extras), name(page)
