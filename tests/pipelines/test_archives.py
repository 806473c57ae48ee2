"""Compressed logs give the rows, reasons and line numbers of plain ones; a damaged archive raises one error."""

import gzip
import zlib

import pandas as pd
import pyarrow as pa
import pytest

from tests.pipelines.test_logs import HEADER, PACKETS, READINGS, packet
from workbench import datasets, pipelines
from workbench.datasets import archives, parts
from workbench.errors import DataError

LINES = "\n".join([HEADER, *PACKETS])
LONG = READINGS.encode() * 40 + b"cut\n"


def zstd(data):
    """Return the data as a Zstandard archive without a checksum."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


COMPRESSORS = {"gz": gzip.compress, "zst": zstd}


@pytest.fixture(params=COMPRESSORS)
def suffix(request):
    return request.param


def write(path, data):
    path.write_bytes(data)
    return path


@pytest.fixture
def plain(tmp_path):
    return write(tmp_path / "raw.csv", LINES.encode())


def compress(path, suffix):
    """Write the archive of a file beside it and return its path."""
    return write(path.with_name(f"{path.name}.{suffix}"), COMPRESSORS[suffix](path.read_bytes()))


def check_equal(log, expected):
    """Check that two logs have the same rows and rejected lines, apart from the files' names."""
    for table, expected_table in ((log.rows, expected.rows), (log.rejected, expected.rejected)):
        pd.testing.assert_frame_equal(table.drop(columns="file"), expected_table.drop(columns="file"))


@pytest.mark.parametrize("chunk_B", [150, parts.CHUNK_B])
def test_an_archive_gives_the_rows_reasons_and_line_numbers_of_its_log(plain, suffix, chunk_B, tmp_path, monkeypatch):
    expected = pipelines.read_log(plain, "mercator")
    monkeypatch.setattr(parts, "CHUNK_B", chunk_B)
    archive = compress(plain, suffix)
    log = pipelines.read_log(archive, "mercator")
    check_equal(log, expected)
    assert log.rejected["line"].tolist() == [13, 14, 15, 19] and set(log.rows["file"]) == {str(archive)}
    in_files = pipelines.read_log(archive, "mercator", out=tmp_path / "kept")
    check_equal(pipelines.Log(*map(pd.read_parquet, (in_files.rows, in_files.rejected))), expected)


def test_an_archive_is_recognized_without_its_suffix(plain, suffix, tmp_path):
    expected = pipelines.read_log(plain, "mercator")
    check_equal(pipelines.read_log(write(tmp_path / "log", compress(plain, suffix).read_bytes()), "mercator"), expected)


def test_an_archive_of_several_parts_is_read_to_its_end(suffix, tmp_path):
    """Programs that append to a log compress each piece for itself."""
    halves = LONG[: len(LONG) // 2], LONG[len(LONG) // 2 :]
    path = write(tmp_path / f"data.txt.{suffix}", b"".join(map(COMPRESSORS[suffix], halves)))
    log = pipelines.read_log(path, "intel-readings")
    assert len(log.rows) == 12_000 and log.rejected["line"].tolist() == [12_001]


def test_loaders_read_archives(tmp_path, suffix):
    path = write(tmp_path / "data.txt", READINGS.encode())
    pd.testing.assert_frame_equal(datasets.intel_readings(compress(path, suffix)), datasets.intel_readings(path))


def test_progress_counts_the_bytes_of_the_archive(tmp_path, suffix, monkeypatch):
    monkeypatch.setattr(parts, "CHUNK_B", 100_000)
    path, shares = compress(write(tmp_path / "data.txt", LONG), suffix), []
    pipelines.read_log(path, "intel-readings", progress=shares.append)
    assert len(shares) > 3 and shares == sorted(shares) and shares[-1] == 1


# Damage


def damaged(path, sentence, **options):
    """Check that reading raises one DataError with this sentence, and return its text."""
    with pytest.raises(DataError, match=sentence) as error:
        pipelines.read_log(path, "intel-readings", **options)
    assert str(path) in str(error.value)
    return str(error.value)


def test_an_archive_that_is_cut_short_is_refused_and_leaves_no_file(tmp_path, suffix):
    content = COMPRESSORS[suffix](LONG)
    for end, options in ((-1, {}), (len(content) // 2, {"out": tmp_path / "kept"}), (-9, {"spark": "not used"})):
        path = write(tmp_path / f"data.txt.{suffix}", content[:end])
        damaged(path, rf"is cut short.*read what `{archives.codec_of(path)} -dc FILE > NEW_FILE` recovers", **options)
    assert list((tmp_path / "kept").iterdir()) == []


def test_the_lines_that_an_error_calls_complete_can_be_decompressed(tmp_path):
    content = gzip.compress(LONG, 1)
    cut = content[: len(content) // 2]
    text = damaged(write(tmp_path / "data.txt.gz", cut), "at least its first [0-9,]+ lines are complete")
    lines = int(text.split("first ")[1].split(" lines")[0].replace(",", ""))
    readable_B = len(zlib.decompressobj(wbits=31).decompress(cut))
    complete_B = len(b"".join(LONG.splitlines(keepends=True)[:lines]))
    assert readable_B - 2 * archives._BLOCK_B < complete_B <= readable_B


def test_a_changed_byte_of_an_archive_with_a_checksum_is_detected(tmp_path):
    content = gzip.compress(LONG)
    for at in range(20, len(content) - 8, len(content) // 50):
        path = write(tmp_path / "data.txt.gz", content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        damaged(path, "is damaged after line|beginning is damaged|is cut short")


def test_an_archive_without_a_complete_line_is_refused(tmp_path, suffix):
    damaged(write(tmp_path / f"data.txt.{suffix}", COMPRESSORS[suffix](LONG)[:12]), "no line is known to be complete")


def test_a_file_with_the_suffix_of_an_archive_must_be_one(tmp_path, suffix):
    path = write(tmp_path / f"data.txt.{suffix}", READINGS.encode())
    damaged(path, "is not a (gzip|zstd) archive, or its beginning is damaged.*remove the suffix")


# Patterns


def test_a_pattern_selects_files_in_the_order_of_their_names(tmp_path, plain, suffix):
    for name in ("b", "a", "c/d"):
        folder = (tmp_path / "logs" / name).parent
        folder.mkdir(parents=True, exist_ok=True)
        (tmp_path / "logs" / f"{name}.csv.{suffix}").write_bytes(compress(plain, suffix).read_bytes())
    log = pipelines.read_log(f"{tmp_path}/logs/*.{suffix}", "mercator")
    assert list(log.rows["file"].unique()) == [f"{tmp_path}/logs/{name}.csv.{suffix}" for name in "ab"]
    below = pipelines.read_log([tmp_path / "logs" / "**" / f"*.{suffix}", plain], "mercator").rows["file"].unique()
    assert len(below) == 4 and below[-1] == str(plain)


def test_a_pattern_without_files_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"no file matches '.*/\*\.gz'"):
        pipelines.read_log(f"{tmp_path}/*.gz", "mercator")


def test_a_file_whose_name_looks_like_a_pattern_is_read(tmp_path, plain):
    path = write(tmp_path / "raw[1].csv", plain.read_bytes())
    assert len(pipelines.read_log(path, "mercator").rows) == 14


# Headers


def test_a_mercator_log_without_its_header_keeps_its_first_row(tmp_path, plain, suffix):
    expected = pipelines.read_log(plain, "mercator")
    for path in (write(tmp_path / "cut.csv", "\n".join(PACKETS).encode()), compress(tmp_path / "cut.csv", suffix)):
        log = pipelines.read_log(path, "mercator")
        pd.testing.assert_frame_equal(log.rows.drop(columns="file"), expected.rows.drop(columns="file"))
        assert log.rejected["line"].tolist() == [12, 13, 14, 18]


def test_a_first_line_that_is_rejected_has_its_number(tmp_path):
    path = write(tmp_path / "raw.csv", "\n".join([packet(5, 1, 2, 1, 0, crc=0), packet(5, 1, 2, 1, 1)]).encode())
    log = pipelines.read_log(path, "mercator")
    assert len(log.rows) == 1 and log.rejected[["line", "rule"]].to_numpy().tolist() == [[1, "crc wrong"]]


@pytest.mark.parametrize("options", [{}, {"spark": "not used"}])
def test_a_log_of_the_user_without_its_header_is_refused(tmp_path, options):
    kinds = {"node": "node", "name": str}
    path = write(tmp_path / "own.log", b"1;a\n2;b\n3;c\n")
    for lines in (1, 2):
        form = pipelines.LogFormat("own", kinds, ";", header=lines)
        with pytest.raises(DataError, match=r"own.log has no header: .* line 1 is a row \(1;a\); .*header=0"):
            pipelines.read_log(path, form, **options)
    write(path, b"node;name\n2;b\n3;c\n")
    assert len(pipelines.read_log(path, pipelines.LogFormat("own", kinds, ";", header=2)).rows) == 1


def test_a_header_of_a_format_of_texts_is_skipped(tmp_path):
    path = write(tmp_path / "own.log", b"first;second\na;b\n")
    form = pipelines.LogFormat("own", {"first": str, "second": str}, ";", header=1)
    assert pipelines.read_log(path, form).rows["first"].tolist() == ["a"]
