"""Files that describe an artifact, its checksums and its archive."""

import json
import subprocess
import zipfile

import pytest
import yaml

from tests.publishing.notebooks import write_paper
from workbench.errors import DataError
from workbench.publishing import descriptions, packing, pages


@pytest.fixture
def paper(tmp_path):
    """Return a paper with two authors and a license of its text."""
    fields = {"text_license": "CC-BY-4.0", "keywords": ["gossip"], "doi": "10.5281/zenodo.7"}
    return write_paper(tmp_path / "p.ipynb", '# A "title": $x$ | y\n\nAn abstract.', paper=fields)


@pytest.fixture
def folder(tmp_path):
    """Return a folder with some files of an artifact."""
    folder = tmp_path / "artifact"
    for name in ("notebook/p.ipynb", "paper.html", "claims.json", "figures/figure-01.svg", "measured.json", "run.sh"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    return folder


def test_the_citation_names_authors_licenses_and_the_software(paper):
    citation = yaml.safe_load(descriptions.citation(paper))
    assert citation["cff-version"] == "1.2.0" and citation["title"] == 'A "title": $x$ | y'
    assert citation["authors"][0] == {
        "given-names": "Ada",
        "family-names": "Lovelace",
        "orcid": "https://orcid.org/0000-0002-1825-0097",
    }
    assert citation["license"] == ["Apache-2.0", "CC-BY-4.0"] and citation["doi"] == "10.5281/zenodo.7"
    assert str(citation["date-released"]) == "2026-11-29"
    assert citation["references"][-1]["title"] == "sensor-pubsub-workbench"


def test_zenodo_gets_creators_with_the_family_name_first(paper):
    deposit = json.loads(descriptions.zenodo(paper))
    assert deposit["creators"] == [{"name": "Lovelace, Ada", "orcid": "0000-0002-1825-0097"}, {"name": "A group"}]
    assert deposit["license"] == "apache-2.0" and "CC-BY-4.0" in deposit["notes"]


def test_the_licenses_name_the_holders_and_the_license(paper):
    assert "Apache License" in descriptions.code_license()
    text = descriptions.text_license(paper)
    assert "Copyright 2026 Ada Lovelace, A group" in text and "creativecommons.org/licenses/by/4.0/" in text


def test_every_reference_in_the_crate_has_an_entity_and_every_file_is_listed(paper, folder):
    crate = json.loads(descriptions.crate(paper, folder, "3.11.7", left_out=("measured.json",)))
    entities = {entity["@id"]: entity for entity in crate["@graph"]}
    assert len(entities) == len(crate["@graph"])

    def references(value):
        if isinstance(value, dict) and set(value) == {"@id"}:
            yield value["@id"]
        elif isinstance(value, (dict, list)):
            for part in value.values() if isinstance(value, dict) else value:
                yield from references(part)

    missing = set(references(crate["@graph"])) - set(entities) - {descriptions.PROFILE}
    assert not missing
    root = entities["./"]
    assert {"name", "description", "datePublished", "license"} <= set(root)
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {part["@id"] for part in root["hasPart"]} == files - {"measured.json"}


def test_the_library_of_ro_crate_reads_the_crate(paper, folder):
    rocrate = pytest.importorskip("rocrate.rocrate", reason="rocrate is not installed: pip install rocrate")
    (folder / "ro-crate-metadata.json").write_text(descriptions.crate(paper, folder, "3.11.7"))
    crate = rocrate.ROCrate(folder)
    assert crate.name == paper.title and len(crate.root_dataset["author"]) == 2
    assert crate.mainEntity.id == "notebook/p.ipynb" and "run.sh" in {entity.id for entity in crate.data_entities}


def test_the_readme_has_a_row_for_each_claim_and_no_placeholder(paper):
    claim = {
        "claim": "a | b",
        "verdict": "open",
        "value": 0.5,
        "interval": [0, 1],
        "unit": "ms",
        "published": "",
        "figure": "Figure 2",
        "drawings": ["figures/figure-01.svg", "figures/figure-01.pdf"],
    }
    text = descriptions.readme(paper, [claim], "3.11.7", 1, has_pdf=True)
    assert "| 1 | a \\| b | open | 0.5 ms [0, 1] |  | Figure 2, figures/figure-01.svg |" in text
    assert "@" not in text and "Python 3.11 with" in text
    assert "records no claims" in descriptions.readme(paper, [], "3.11.7", 0, has_pdf=False)


def test_the_script_is_valid_for_a_posix_shell(paper, tmp_path):
    script = tmp_path / "reproduce.sh"
    script.write_text(descriptions.reproduce_script(paper, "3.11.7"))
    subprocess.run(["sh", "-n", str(script)], check=True, timeout=60)
    assert "@" not in script.read_text() and "python3.11" in script.read_text()


def test_equal_files_give_equal_archives_with_a_fixed_date(folder, tmp_path):
    packing.write_archive(folder, tmp_path / "a.zip")
    (folder / "claims.json").touch()
    packing.write_archive(folder, tmp_path / "b.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as archive, zipfile.ZipFile(tmp_path / "b.zip") as other:
        entries = archive.infolist()
        assert {entry.date_time for entry in entries} == {packing.FIXED_DATE}
        assert [entry.filename.partition("/")[2] for entry in entries] == sorted(
            path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
        )
        assert [(entry.CRC, entry.external_attr) for entry in entries] == [
            (entry.CRC, entry.external_attr) for entry in other.infolist()
        ]
        modes = {entry.filename: entry.external_attr >> 16 for entry in entries}
        assert modes["a/run.sh"] & 0o111 and not modes["a/claims.json"] & 0o111


def test_changed_and_missing_files_are_found_by_their_checksums(folder):
    packing.write_sums(folder, ["measured.json"])
    (folder / "measured.json").write_text("1")
    assert packing.changed_files(folder) == []
    (folder / "claims.json").write_text("1")
    (folder / "run.sh").unlink()
    assert packing.changed_files(folder) == ["claims.json", "run.sh"]
    (folder / packing.SUMS).write_text("x")
    with pytest.raises(DataError, match="has no valid SHA256SUMS"):
        packing.changed_files(folder)


def test_requirements_are_exact_versions_without_the_workbench_itself():
    lines = packing.pinned(["pytest"])
    names = [line.partition("==")[0] for line in lines]
    assert {"numpy", "pandas", "ipykernel", "pytest", "pluggy"} <= set(names) and names == sorted(names)
    assert packing.DISTRIBUTION not in names and all(line.count("==") == 1 for line in lines)


def test_formulas_become_mathml_and_others_stay_tex():
    pytest.importorskip("latex2mathml", reason="latex2mathml is not installed: pip install latex2mathml")
    assert pages.formula(r"\frac{a}{b}", "inline").startswith("<math") and "mfrac" in pages.formula(
        r"\frac{a}{b}", "block"
    )


def test_a_formula_that_cannot_be_converted_stays_tex(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "latex2mathml.converter", None)
    assert pages.formula("a<b", "inline") == "<code>a&lt;b</code>"
