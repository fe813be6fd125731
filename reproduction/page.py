"""docs/reproduction.md and its second page, as functions of the records and of remarks written by hand."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from reclust.studies.catalog import named
from reclust.studies.figures import FIGURES, source
from reclust.studies.store.reader import StoreReader
from reclust.studies.tables import labels, markdown, tables
from reclust.studies.tables.table import Cell, Row, Table, signed

from .cells import (
    APART,
    MAIN,
    OTHER_SEEDS,
    SETS,
    WITH_ERRORS,
    Agreement,
    against_brb_table,
    agreement_table,
    agreements,
    count,
    improvement_table,
    improvements,
    seen_again,
    seen_again_table,
)
from .claims import CLAIMS
from .coverage import ABLATIONS, BEYOND, coverage_table, covered, provenance_table
from .evidence import Evidence, Judged, Verdict

CELLS = 120
"""How many there are beside KMNIST's."""
BY_CHANCE = 0.06
"""Share of differences of two means over ten seeds that exceed two of their standard errors (Student's t, 18 degrees)."""
SECOND = "reproduction_nmi_ari.md"
FIGURES_FOLDER = "figures/reproduction"
NO_REMARK = "no remark yet"
SUMMARY = "summary"
"""Of the remarks: what stands first against the paper."""
Remarks = Mapping[str, str]

HEAD = """# The paper, reproduced

Written by `make reproduction` from the records under `results/` and the remarks in `reproduction_remarks.toml`: do not edit it.
Scores are in percent, mean ± standard error over seeds. Networks multiply in bfloat16 unless a study says otherwise. KMNIST
stands apart: here it is its 10,000 test images, the paper has all 70,000. NMI and ARI are on
[a page of their own](reproduction_nmi_ari.md).
"""
CLAIMS_HEAD = """## The paper's claims

Each claim is judged by what was written down before there were records; where that was mended later, a remark says so. A
number is taken for each seed; where the 95 % interval (Student's t) of its mean lies wholly on the claimed side the claim
holds, wholly on the other side it does not, and else the records cannot tell. Of a claim with parts all must hold, and one
part that does not is enough against it. Differences of scores are in points.
"""
ABLATIONS_HEAD = """## Ablations

In parentheses the paper's number and the difference, where it prints one; most of these are figures there. With pretraining,
unless a row or a study says otherwise. Baselines have ten seeds, UMAP five, on MNIST and FMNIST three and two.

The same settings and seeds can stand in several studies with other numbers. Replicas are trained in stacks of other sizes
there, and products are rounded otherwise: curves agree at first, and part where small differences grow, as after resets.
Means differ within the error, which can be several points.
"""


def pages(reader: StoreReader, remarks: Remarks, figures: Collection[str]) -> dict[str, str]:
    """File name -> Markdown. figures: names of those that were drawn."""
    evidence = Evidence(reader)
    judged = [claim.judge(evidence) for claim in CLAIMS]
    main = [HEAD, summary(reader, [verdict for verdict, _ in judged], remarks), markdown(coverage_table(reader)),
            main_section(reader, remarks), brb_section(reader), claims_section(judged, remarks),
            ABLATIONS_HEAD, studies_section(reader, ABLATIONS, remarks),
            "## Beyond the paper\n", studies_section(reader, BEYOND, remarks), figures_section(reader, figures, remarks),
            "## Where the numbers come from\n", markdown(provenance_table(reader))]
    return {"reproduction.md": _joined(main), SECOND: _joined(second_page(reader))}


def summary(reader: StoreReader, verdicts: Sequence[Verdict], remarks: Remarks) -> str:
    cells, found, again = agreements(reader), improvements(reader), seen_again(reader)
    counted = count(cells)
    others = ", ".join(f"by {labels.measure(one)} {count(agreements(reader, one))['agree']}" for one in ("nmi", "ari"))
    hardly = f" ({counted['hardly']} by less than two points, which counts as agreeing)" if counted["hardly"] else ""
    lines = [f"- **Cells of the main table**: {counted['known']} of {CELLS} have records; {counted['agree']} of these agree "
             f"with the paper or lie above it ({others}); KMNIST is not counted. More than two combined standard errors apart: "
             f"{counted['differ']}, {counted['above']} above and {counted['differ'] - counted['above']} below"
             f"{hardly}; by chance alone it would be about {round(BY_CHANCE * counted['known'])}."
             + (f" With other seeds {sum(one.apart for one in again)} of {len(again)} lie apart again." if again else ""),
             f"- **BRB against its baseline**, with KMNIST: {_counted(found)}",
             f"- **Claims**: of {len(verdicts)}, {verdicts.count('holds')} hold, {verdicts.count('does not hold')} do not"
             f"{_numbers(verdicts, 'does not hold')}, of {verdicts.count('cannot tell')} the records cannot tell (yet)."]
    if SUMMARY in remarks:
        lines += ["- **Against the paper**:", *(f"    - {point}" for point in remarks[SUMMARY].strip().splitlines())]
    whole = covered(reader, MAIN)
    if whole.missing:
        lines.append("- **Not there yet**: of the main table "
                     f"{', '.join(labels.dataset(one) for one in whole.missing)}; of the other studies what the table says.")
    return "## In short\n\n" + "\n".join(lines) + "\n"


def _numbers(verdicts: Sequence[Verdict], wanted: Verdict) -> str:
    """Of the claims judged so, as they stand on the page."""
    numbers = [str(number) for number, verdict in enumerate(verdicts, 1) if verdict == wanted]
    return f" ({', '.join(numbers)})" if numbers else ""


def _counted(found: Sequence) -> str:
    if not found:
        return "no records yet."
    better, paper = sum(one.difference > 0 for one in found), sum(one.paper > 0 for one in found)
    sure, against = (sum(one.sign == sign for one in found) for sign in ("better", "worse"))
    whole = "" if len(found) == 36 else ", 32 of all 36"
    return (f"higher mean in {better} of {len(found)} cells with records (the paper: {paper} of the same {len(found)}{whole}); "
            f"by its 95 % interval better in {sure}, worse in {against}, open in {len(found) - sure - against}.")


def main_section(reader: StoreReader, remarks: Remarks) -> str:
    cells = agreements(reader)
    parts = ["## The main table, cell by cell\n",
             "The combined standard error is that of ours and the paper's together. A cell *agrees* where it is not below the "
             "paper by more than two of these or two points, whichever is more; *above* and *below* lie outside. Bold: more "
             "than two standard errors apart.\n"]
    for dataset in (*SETS, *APART):
        own = [cell for cell in cells if cell.dataset == dataset]
        if own:
            agree = sum(cell.agrees for cell in own)
            parts += [f"### {labels.dataset(dataset)}\n", f"{agree} of {len(own)} cells agree or lie above."
                      + (" Fewer images than in the paper: not counted." if dataset in APART else "") + "\n",
                      _table(agreement_table(cells, dataset)), _remarks(dataset, own, remarks)]
        else:
            parts += [f"### {labels.dataset(dataset)}\n", "No records yet.\n"]
    again = seen_again(reader)
    if again:
        parts += ["### Cells that lie apart, with other seeds\n",
                  f"Of {count(cells)['differ']} cells more than two standard errors apart {len(again)} were trained with other "
                  f"seeds, too (study `{OTHER_SEEDS}`): {sum(one.apart for one in again)} lie apart with these by themselves. "
                  "The first seeds were looked at because they lie apart, the others were not, so that it is these that tell "
                  "whether ours lay there by chance; whether the paper's did, no seeds of ours tell.\n",
                  _table(seen_again_table(again))]
    return "\n".join(parts)


def _remarks(dataset: str, cells: Sequence[Agreement], remarks: Remarks) -> str:
    """Of the set as a whole, of all cells that differ unless that says why, and of others that somebody said something of."""
    whole, own = remarks.get(f"{MAIN}/{dataset}"), {cell: remarks.get(f"{MAIN}/{cell.name}") for cell in cells}
    lines = [f"- {labels.method(cell.algorithm, cell.variant, pretrained=cell.pretrained)}: {said or NO_REMARK}"
             for cell, said in own.items() if said or cell.differs and not whole]
    return "\n".join([*([f"{whole}\n"] if whole else []),
                      *(["More than two standard errors apart:\n", *lines, ""] if lines else [])])


def brb_section(reader: StoreReader) -> str:
    found = improvements(reader)
    head = ("## BRB against its baseline\n\nPaired by seed. *Better* and *worse* where the 95 % interval leaves out 0, else "
            f"*open*. {_counted(found)[0].upper()}{_counted(found)[1:]}\n")
    return f"{head}\n{_table(improvement_table(found))}" if found else head


def claims_section(judged: Sequence[tuple[Verdict, list[Judged]]], remarks: Remarks) -> str:
    rows, details = [], []
    for number, (claim, (verdict, parts)) in enumerate(zip(CLAIMS, judged, strict=True), 1):
        rows.append(Row(f"{number}. {claim.text}", (Cell(claim.paper or "–"), Cell(verdict, best=verdict == "does not hold"))))
        said = [f"**{number}. {claim.text}** {verdict.capitalize()}.", *([claim.rule] if claim.rule else [])]
        details += [" ".join(said) + "\n",
                    *(f"- {one.what}: {one.ours}; expected {one.expected}: {one.verdict}" for one in parts),
                    *([f"- Remark: {remarks[f'claims/{claim.name}']}"] if f"claims/{claim.name}" in remarks else []), ""]
    return "\n".join([CLAIMS_HEAD, _table(Table("", ("claim", "in the paper", "verdict"), (tuple(rows),))), *details])


def studies_section(reader: StoreReader, studies: Sequence[str], remarks: Remarks) -> str:
    """The tables of studies beside the main one."""
    parts = []
    for name in studies:
        parts.append(f"### {name}\n\n{named(name).about}\n")
        if not covered(reader, name).finished:
            parts.append("No records yet.\n")
            continue
        paired = against_brb_table(reader, name)
        parts += [markdown(table) for table in (*tables(reader, name), *([paired] if paired else []))]
        parts += in_errors(reader, name)
        parts += [remarks[name] + "\n"] if name in remarks else []
        own = [f"- {key.removeprefix(name + '/')}: {text}" for key, text in remarks.items() if key.startswith(f"{name}/")]
        parts += ["\n".join(own) + "\n"] if own else []
    return "\n".join(parts)


def in_errors(reader: StoreReader, study: str) -> list[str]:
    """An ablation beside the paper as the main table is, where the paper prints errors."""
    if study not in WITH_ERRORS:
        return []
    cells = agreements(reader, WITH_ERRORS[study], (study,), table=study)
    return [markdown(agreement_table(cells, dataset, WITH_ERRORS[study])) for dataset in dict.fromkeys(
        cell.dataset for cell in cells)]


def figures_section(reader: StoreReader, figures: Collection[str], remarks: Remarks) -> str:
    drawn = []
    for name, recipe in FIGURES.items():
        if name in figures:
            said = [recipe.about, f"From {source(reader, name)}.", *([own] if (own := remarks.get(f"figures/{name}")) else [])]
            drawn.append(f"![{recipe.about}]({FIGURES_FOLDER}/{name}.svg)\n\n*{name}*: {' '.join(said)}\n")
    left = [f"{name} ({' or '.join(recipe.studies)})" for name, recipe in FIGURES.items() if name not in figures]
    missing = f"Not drawn for lack of records: {', '.join(left)}.\n" if left else ""
    return "\n".join(["## Figures\n", *drawn, missing])


def second_page(reader: StoreReader) -> list[str]:
    parts = ["# The paper, reproduced: NMI and ARI\n", "Written by `make reproduction`, as [the page of accuracies]"
             "(reproduction.md) is, and to be read the same way; remarks on cells are there.\n"]
    accuracies = {cell.name: cell for cell in agreements(reader)}
    for measure in ("nmi", "ari"):
        cells = agreements(reader, measure)
        counted = count(cells)
        parts.append(f"## {labels.measure(measure)}\n\n{counted['agree']} of {counted['known']} cells with records agree with "
                     "the paper or lie above it, KMNIST not counted.\n")
        parts += [markdown(agreement_table(cells, dataset, measure)) for dataset in (*SETS, *APART)
                  if any(cell.dataset == dataset for cell in cells)]
        parts += apart_by_measure(measure, cells, accuracies)
    return parts


def apart_by_measure(measure: str, cells: Sequence[Agreement], accuracies: Mapping[str, Agreement]) -> list[str]:
    """Those that the page of accuracies has no remark on."""
    own = [cell for cell in cells if cell.dataset in SETS and cell.differs and not accuracies[cell.name].differs]
    told = [f"- {labels.method(cell.algorithm, cell.variant, pretrained=cell.pretrained)}, {labels.dataset(cell.dataset)}: "
            f"{signed(cell.units, 1)}, by accuracy {signed(accuracies[cell.name].units, 1)}" for cell in own]
    if not own:
        return []
    counted = count(cells)
    return [f"By {labels.measure(measure)} {counted['differ']} cells lie more than two standard errors apart, {len(own)} of "
            "which do not by accuracy. Nothing was tried for these, and chance, which alone would give about "
            f"{round(BY_CHANCE * counted['known'])}, is the likeliest reason. In standard errors:\n", "\n".join(told), ""]


def cell_names(study: str) -> set[str]:
    """The cells of a study that remarks may name: STUDY/SET/ALGORITHM/VARIANT/pretrained or scratch."""
    spec = named(study)
    whole = {whole: part for part, whole in APART.items()}
    return {f"{study}/{whole.get(dataset, dataset)}/{algorithm}/{variant.name}/{'pretrained' if pretrained else 'scratch'}"
            for dataset in spec.datasets for algorithm in spec.algorithms for pretrained in spec.pretrained
            for variant in spec.variants}


def _table(table: Table) -> str:
    """Without its title, where a heading says it."""
    return markdown(table).split("\n", 2)[2]


def _joined(parts: Sequence[str]) -> str:
    return "\n".join(part.rstrip("\n") + "\n" for part in parts if part)
