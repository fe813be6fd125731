"""The documentation works: its code runs, its commands and links exist, its numbers are the records."""

import inspect
import json
import re
import shlex
from types import ModuleType

import numpy as np
import pytest
from pages import PAGES, ROOT, blocks, commands, name, programs

import reclust
from reclust.cli import parser
from reclust.ensemble.recipes import EFFORTS, Effort

RUNNABLE = [pytest.param(page, id=name(page), marks=pytest.mark.slow if name(page) == "README.md" else ())
            for page in PAGES if programs(page)]


@pytest.mark.filterwarnings("ignore::reclust.ReclustWarning")
@pytest.mark.parametrize("page", RUNNABLE)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    """All of it, with short trainings where the page takes the defaults of `Reclust`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(EFFORTS, "normal", Effort(1, 1, 10))
    monkeypatch.setitem(EFFORTS, "quick", Effort(1, 0, 10))
    state, namespace = np.random.get_state()[1].tolist(), {"__name__": name(page)}
    for line, code in programs(page):
        # Pad with empty lines, so that tracebacks show the line numbers of the page.
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


def test_few_blocks_are_not_run_and_each_says_why():
    left_out = [info for page in PAGES for _, language, info, _ in blocks(page) if language == "python" and "Not run" in info]
    assert all(re.search(r'title="Not run by the tests: \w', info) for info in left_out)
    assert len(left_out) < sum(len(programs(page)) for page in PAGES) / 4


def test_links_between_pages_exist():
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{name(page)}: {target}"


def test_every_public_name_is_in_the_reference():
    pages = (ROOT / "docs/reference/api").glob("*.md")
    listed = {found for page in pages for found in re.findall(r"^::: (\S+)$", page.read_text(), flags=re.MULTILINE)}
    public = {f"reclust.{public}" for public in reclust.__all__ if not isinstance(getattr(reclust, public), ModuleType)}
    assert public <= listed


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    for page in PAGES[1:]:
        assert re.search(rf"[ :]{re.escape(str(page.relative_to(ROOT / 'docs')))}$", navigation, flags=re.MULTILINE), page


def test_guides_say_for_whom_they_are():
    for page in PAGES[1:]:
        if page.parent.name in ("guides", "how", "reference") or page.name == "start.md":
            title, blank, opening, *_ = page.read_text().split("\n")
            assert title.startswith("# ") and not blank and opening.startswith("*For any"), name(page)


def test_numbers_in_the_text_are_the_records():
    def measured(name):
        return json.loads((ROOT / f"benchmarks/records/{name}.json").read_text())["measured"]

    compare, scale = (" ".join((ROOT / f"docs/{page}.md").read_text().split()) for page in ("how/compare", "guides/scale"))
    against = measured("clustpy_epoch")
    assert ", ".join(f"{against[name]['times_clustpys_speed']['float32']:.2f}" for name in ("DEC", "IDEC", "DCN")) + " times its speed" in compare
    assert f"{measured('plain_loop')['reclust_over']['by hand, default Adam']:.2f} times its time" in compare
    one, ten, forty = (measured("replicas_cuda")[f"bf16, idec, {replicas}"]["seconds_per_epoch"] for replicas in (1, 10, 40))
    assert f"{ten:.2f} s, {ten / 10:.3f} s a seed" in compare
    assert f"took {one:.2f} s with one replica and {forty:.2f} s with forty" in scale
    for which, run in measured("published_run_idec").items():
        if which.endswith("auto"):
            assert f"{run['mean']:.1f} ± {run['standard_error']:.1f} | ten seeds" in compare, which
    stream = measured("streaming")
    assert f"kept {stream['peak_anonymous_gb']:.2f} GB in memory, and a row cost {stream['streamed_over_resident']:.2f} times" in scale


def test_extras_named_in_the_documentation_exist():
    tomllib = pytest.importorskip("tomllib")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for page in PAGES:
        for named in re.findall(r"reclust\[([\w,]+)\]", page.read_text()):
            assert set(named.split(",")) <= set(extras), name(page)


PUBLIC = sorted(public for public in reclust.__all__ if inspect.isclass(getattr(reclust, public)) or inspect.isfunction(getattr(reclust, public)))


@pytest.mark.parametrize("public", PUBLIC)
def test_public_names_have_numpydoc_docstrings_with_an_example(public):
    text = inspect.getdoc(getattr(reclust, public)) or ""
    summary, _, rest = text.partition("\n")
    assert summary.endswith(".") and "\n" not in summary, "a one-line summary"
    assert re.search(r"^Examples\n-{8}$", rest, flags=re.MULTILINE) and ">>> " in rest, "an Examples section"


@pytest.mark.parametrize("phrase", ["one's own", "somebody", "so many"])
def test_the_code_is_written_in_plain_english(phrase):
    sources = (ROOT / "src").rglob("*.py")
    assert [name(path) for path in sources if phrase in path.read_text().lower()] == []
