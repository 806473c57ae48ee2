"""Records: their content, their presence in every file, and the refusal of damaged or unrelated files."""

import json
import math
import os
import subprocess
import sys
import zlib
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import workbench as wb
from tests.records import made
from tests.repository import REPOSITORY
from workbench.errors import DataError
from workbench.records import carriers, contents, record, record_of, table
from workbench.sweeps import code as sweeps_code
from workbench.sweeps.code import Codes
from workbench.views.drawing import Drawing
from workbench.widgets.take_away import TakeAway

# --- the content of a record ---


def test_record_has_scenario_hashes_metrics_versions_engine_and_platform(run):
    content = record_of(run)
    assert wb.Scenario.from_json(json.dumps(content["scenario"])) == run.scenario
    assert content["scenario_hash"] == run.scenario.hash and content["trace_hash"] == run.trace_hash
    assert content["trace_rows"] == len(run.trace) and content["engine"] == "reference"
    assert {"workbench", "python", "numpy", "numba"} == set(content["versions"])
    packages = {"sim", "attributes", "topology", "coding", "draws", "protocols", "protocols/diffusion"}
    assert packages == set(content["code"])
    assert content["platform"].strip() and "user_code" not in content
    assert content["metrics"]["delivered"] == run.metrics["delivered"]


def test_nan_is_null_in_a_record(run):
    metrics = record_of(run)["metrics"]
    missing = [name for name, value in run.metrics.items() if math.isnan(value)]
    assert missing and all(metrics[name] is None for name in missing)
    assert record.plain_metrics({"a": math.inf, "b": -math.inf}) == {"a": "inf", "b": "-inf"}
    json.loads(json.dumps(record_of(run), allow_nan=False))


def test_record_of_a_run_without_a_trace_has_no_trace_hash():
    content = record_of(made.scenario().run(engine="reference", record="metrics"))
    assert "trace_hash" not in content and content["metrics"]["expected"] > 0


def test_digests_cover_the_code_of_the_protocol_and_of_protocols_it_uses():
    rooms = {name: set(record.package_digests(protocol)) for name, protocol in
             {"gossip": wb.Gossip(), "flooding": wb.Flooding()}.items()}  # fmt: skip
    assert rooms["gossip"] - rooms["flooding"] == {"protocols/gossip"}
    assert "protocols/flooding" in rooms["gossip"]


@pytest.mark.parametrize("protocol", [wb.Gossip(), wb.Diffusion()])
def test_a_record_has_the_packages_whose_code_distinguishes_rows_of_a_sweep(monkeypatch, protocol):
    whole, before, distinguishing = sweeps_code.sources, Codes().digest(protocol), set()
    folders = (REPOSITORY / "workbench" / "protocols").glob("*/node.py")
    try:
        for room in (*sweeps_code.GENERIC, *(f"protocols/{path.parent.name}" for path in folders)):
            edited = whole(room) + b"edited"
            monkeypatch.setattr(sweeps_code, "sources", lambda name, r=room, e=edited: e if name == r else whole(name))
            sweeps_code.package_digest.cache_clear()
            if Codes().digest(protocol) != before:
                distinguishing.add(room)
    finally:
        sweeps_code.package_digest.cache_clear()
    assert distinguishing == set(record.package_digests(protocol))


def test_only_existing_packages_have_a_digest():
    rooms = ("sim", "protocols/flooding", "protocols/..", "protocols/../..", "/etc", "views", "protocols/nothing", "")
    assert set(record.digests_of_folders(rooms)) == {"sim", "protocols/flooding"}


def test_code_of_the_user_is_in_the_record_by_name():
    def keep_all(attributes):
        return attributes

    wb.register_filter("keep_all", keep_all)
    scenario = made.scenario(protocol=wb.Diffusion(filters=(wb.Filter("keep_all", 200),)))
    theirs = record_of(scenario.run(engine="reference"))["user_code"]
    assert theirs["filter keep_all"]["module"] == __name__ and theirs["filter keep_all"]["digest"]


# --- records in files ---


@pytest.mark.parametrize("kind", made.KINDS)
def test_every_kind_of_file_carries_the_same_record(files, run, kind):
    assert contents.read_contents(files / kind).records == (record_of(run),)


def test_the_same_run_gives_the_same_bytes(files, tmp_path):
    made.write(made.scenario().run(engine="reference"), tmp_path)
    for kind in ("figure.png", "figure.svg", "figure.pdf", "page.html", "folder/trace.parquet", "folder/record.json"):
        assert (tmp_path / kind).read_bytes() == (files / kind).read_bytes(), kind


def test_a_record_does_not_change_the_picture(run):
    drawing = run.figure()
    plain = Drawing(drawing.width, drawing.height, drawing.title, drawing.items)
    assert made.without(drawing.to_svg()) == plain.to_svg() != drawing.to_svg()
    pictures = [Image.open(BytesIO(picture.to_png())) for picture in (drawing, plain)]
    assert pictures[0].tobytes() == pictures[1].tobytes()
    assert carriers.NAME in pictures[0].info and carriers.NAME not in pictures[1].info


def test_a_trace_with_a_record_reads_as_before(files, run):
    assert pq.read_table(files / "folder" / "trace.parquet").select(run.trace.schema.names).equals(run.trace)


def test_a_page_has_the_records_of_its_figures_once_each(run, tmp_path):
    other = made.scenario(seed=6).run(engine="reference")
    extra = [("the same", "", run.figure(time_s=3)), ("another", "", other.figure())]
    page = run.save_html(tmp_path / "page.html", extra)
    assert contents.read_contents(page).records == (record_of(run), record_of(other))


def test_figures_of_a_protocol_carry_the_records_of_all_their_runs():
    protocol = wb.CodedDiffusion(generation_size=2)
    runs = {f"seed {seed}": made.scenario(protocol=protocol, seed=seed).run(engine="reference") for seed in (1, 2)}
    (text,) = carriers.texts_of_markup(wb.views.coverage_chart({"both": list(runs.values())}).to_svg())
    content = record.from_text(text)
    assert content["of"] == "runs" and [entry["name"] for entry in content["runs"]] == ["both #1", "both #2"]
    assert [entry["trace_hash"] for entry in content["runs"]] == [run.trace_hash for run in runs.values()]


def test_downloads_of_the_lab_carry_the_record(run, tmp_path):
    take_away = TakeAway(lambda: run)
    for kind in ("figure (SVG)", "figure (PDF)", "figure (PNG)", "run (Parquet)", "page that plays"):
        path = tmp_path / "taken"
        path.write_bytes(take_away.data(kind, run))
        assert contents.read_contents(path).records == (record_of(run),), kind


def test_a_drawing_without_a_run_has_no_record():
    assert (
        carriers.texts_of_markup(Drawing(10, 10).to_svg()) == []
        and carriers.texts_of_png(Drawing(10, 10).to_png()) == []
        and carriers.texts_of_pdf(Drawing(10, 10).to_pdf()) == []
    )


HOSTILE = '</script></metadata><!-- & ]]> "ö" \\u003c'


def test_no_text_in_a_record_ends_the_element_around_it(tmp_path):
    content = record.add_digest({"of": "run", "name": HOSTILE})
    text = record.to_text(content)
    svg = carriers.add_to_svg(Drawing(10, 10).to_svg(), text)
    for markup in (svg, f"<html>{carriers.script_element(text)}</html>"):
        assert [record.from_text(embedded) for embedded in carriers.texts_of_markup(markup)] == [content]
        assert made.without(markup).count("</") <= 1
    pdf = carriers.add_to_pdf(Drawing(5, 5).to_pdf(), text)
    assert [record.from_text(embedded) for embedded in carriers.texts_of_pdf(pdf)] == [content]
    png = carriers.add_to_png(Drawing(5, 5).to_png(), text)
    assert [record.from_text(embedded) for embedded in carriers.texts_of_png(png)] == [content]


def test_a_long_record_is_compressed_and_other_programs_open_the_picture():
    content = record.add_digest({"of": "run", "scenario": {"links": list(range(600_000))}})
    text = record.to_text(content)
    assert len(text) < len(json.dumps(content)) / 2 and record.from_text(text) == content
    picture = carriers.add_to_png(Drawing(20, 10).to_png(), text)
    assert Image.open(BytesIO(picture)).size == (40, 20)


def test_a_record_that_would_fill_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr(record, "LARGEST_B", 1000)
    bomb = record.to_text(record.add_digest({"scenario": "0" * record.LONGEST_PLAIN}))
    with pytest.raises(DataError, match="damaged or cut short"):
        record.from_text(bomb)


# --- sweeps' rows ---


def test_scenarios_of_a_sweep_are_stored_once_and_restored_completely():
    scenarios = [made.scenario(protocol=protocol, seed=seed) for protocol in (wb.Diffusion(), wb.Flooding())
                 for seed in range(3)]  # fmt: skip
    documents = ["", *(scenario.to_json() for scenario in scenarios)]
    points = table.points_of(documents)
    assert len(points["values"]["protocol"]) == 3 and len(points["values"]["seed"]) == 4
    first, *rest = table.documents(points, len(documents))
    assert first is None
    assert [wb.Scenario.from_json(json.dumps(document)) for document in rest] == scenarios


# --- damaged or unrelated files ---


def written(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def parquet(**columns):
    sink = BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "not a PNG, SVG, PDF, HTML or Parquet file"),
        (b"\x00\xff\xfe junk", "not a PNG, SVG, PDF, HTML or Parquet file"),
        ("# a notebook\nprint(1)", "not a PNG, SVG, PDF, HTML or Parquet file"),
        (Drawing(9, 9).to_png(), "no record of the workbench"),
        (Drawing(9, 9).to_svg(), "no record of the workbench"),
        ("<!doctype html><html></html>", "no record of the workbench"),
        (Drawing(9, 9).to_pdf(), "no record of the workbench"),
        (parquet(a=[1, 2]), "no record of the workbench"),
        ("{", "not valid JSON"),
        ("[" * 100_000, "not a PNG"),
        ("{" + '"a":[' * 100_000, "not valid JSON"),
        ('{"a": 1}', "not valid JSON of a workbench record"),
        (made.scenario().to_json(), "a scenario without a run's results"),
        ('{"format": "workbench-record", "version": 99}', "version 99; this workbench reads version 1"),
        ('{"format": "workbench-record", "version": 1, "of": "run"}', "does not match its digest"),
        (b"PAR1 and no more", "damaged, cut short, or another kind of file"),
        (Drawing(9, 9).to_png()[:60], "damaged or cut short"),
        (carriers.add_to_svg("<svg></svg>", record.to_text(record.add_digest({"of": "tea"}))), "'tea'"),
        (carriers.add_to_svg("<svg></svg>", record.to_text(record.add_digest({"of": "run"}))), "no metrics"),
        (
            carriers.add_to_svg("<svg></svg>", record.to_text(record.add_digest({"of": "run", "metrics": {}}))),
            "no scenario",
        ),
        (
            carriers.add_to_svg("<svg></svg>", record.to_text(record.add_digest({"of": "runs", "runs": [3]}))),
            "is damaged: it is not a JSON object",
        ),
    ],
)
def test_a_file_without_a_valid_record_is_refused_in_one_sentence(tmp_path, content, sentence):
    path = written(tmp_path, "file", content)
    with pytest.raises(DataError, match=sentence) as raised:
        wb.reproduce(path)
    assert str(raised.value).startswith(f"{path}: ") and "\n" not in str(raised.value)


def test_a_folder_without_a_record_and_a_missing_path_are_refused_in_one_sentence(tmp_path):
    with pytest.raises(DataError, match="neither a record"):
        wb.reproduce(tmp_path)
    with pytest.raises(DataError, match="No such file"):
        wb.reproduce(tmp_path / "nothing")
    written(tmp_path, "old.parquet", parquet(point=["a"], scenario=["b"]))
    with pytest.raises(DataError, match=r"the rows of old\.parquet lack the column document or scenario"):
        wb.reproduce(tmp_path)


UNBOUNDED = """
import os, resource, sys
import workbench as wb
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
for path in sys.argv[1:]:
    try:
        wb.reproduce(path)
    except wb.WorkbenchError as error:
        print(error)
"""


def test_pipes_devices_and_unclosed_records_are_refused_in_a_bounded_time(tmp_path):
    """One process reads all files; its time limit is far above that of a linear search, and far below a quadratic."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "folder" / "pipe.parquet")
    opening = carriers.add_to_svg("<svg></svg>", "").partition("</metadata>")[0].partition("\n")[2]
    open_records = written(tmp_path, "open.svg", "<svg>" + opening * 60_000)
    open_scripts = written(
        tmp_path, "open.html", "<html>" + carriers.script_element("").removesuffix("</script>") * 60_000
    )
    with (tmp_path / "large.svg").open("wb") as file:
        file.write(b"<svg>")
        file.truncate(contents.LARGEST_B + 1)  # A sparse file, which occupies no disk space.
    names = [tmp_path / "pipe", tmp_path / "folder", "/dev/zero", tmp_path / "large.svg", open_records, open_scripts]
    command = [sys.executable, "-c", UNBOUNDED, *map(str, names)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=REPOSITORY, check=True)
    sentences = [line.removeprefix(f"{name}: ") for line, name in zip(done.stdout.splitlines(), names, strict=True)]
    assert all("a pipe, a socket or a device" in sentence for sentence in sentences[:3])
    assert "has 1,073,741,825 bytes" in sentences[3]
    assert all("no record of the workbench" in sentence for sentence in sentences[4:])


def test_a_character_reference_of_many_digits_is_damage():
    with pytest.raises(DataError, match="damaged"):
        carriers.texts_of_markup(carriers.add_to_svg("<svg></svg>", "TEXT").replace("TEXT", "&#" + "9" * 5_000 + ";"))


@pytest.mark.parametrize("kind", ["figure.png", "figure.svg", "figure.pdf", "page.html", "folder/trace.parquet"])
@pytest.mark.parametrize("share", [0.001, 0.02, 0.3, 0.999])
def test_a_truncated_file_has_its_whole_record_or_is_refused_in_one_sentence(files, run, tmp_path, kind, share):
    whole = (files / kind).read_bytes()
    path = written(tmp_path, "cut", whole[: int(share * len(whole))])
    try:
        assert contents.read_contents(path).records == (record_of(run),)
    except DataError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    "kind", ["figure.png", "figure.svg", "figure.pdf", "folder/trace.parquet", "folder/record.json"]
)
def test_a_file_with_a_flipped_bit_has_the_same_record_or_is_refused_in_one_sentence(files, run, tmp_path, kind):
    whole = (files / kind).read_bytes()
    expected = record_of(run)
    at = whole.find(b"workbench:record" if kind.endswith(".pdf") else b"workbench-record")
    span = min(len(whole), 20_000)
    begin = max(0, at - 200)
    for step in range(0, span, 61):
        position = (begin + step) % len(whole)
        changed = bytearray(whole)
        changed[position] ^= 1 << step % 8
        path = written(tmp_path, "flipped", bytes(changed))
        try:
            file_contents = contents.read_contents(path)
        except DataError as error:
            assert "\n" not in str(error)
            continue
        assert file_contents.records == (expected,), position


@given(st.binary(max_size=60), st.sampled_from([b"", carriers.PNG_BEGIN, b"PAR1", b"<svg>", carriers.PDF_BEGIN, b"{"]))
def test_random_bytes_are_refused(tmp_path_factory, data, begin):
    path = written(tmp_path_factory.getbasetemp(), "any", begin + data)
    with pytest.raises(DataError):
        contents.read_contents(path)


@given(st.binary(max_size=200))
def test_any_chunks_of_a_png_are_read_or_refused(data):
    body = b"tEXt" + carriers.NAME.encode() + b"\0" + data
    chunk = len(body[4:]).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")
    (text,) = carriers.texts_of_png(carriers.PNG_BEGIN + chunk)
    with pytest.raises(DataError):
        record.from_text(text)
