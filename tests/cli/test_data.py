"""`workbench data links`: the table that it writes, its output, and its error messages."""

import pandas as pd
import pytest

import workbench as wb
from workbench import cli

HEAD = (
    "timestamp,mac,frequency,length,rssi,crc,expected,srcmac,transctr,pkctr,txnumpk,txpower,txifdur,txlength,txfillbyte"
)
A, B = "00-00-00-00-00-00-00-0a", "00-00-00-00-00-00-00-0b"


def row(channel, packet, crc=1):
    return f"2014-11-06_01.00.00,{B},{channel},100,-60,{crc},1,{A},{channel},{packet},2,0,100,100,0x0a"


@pytest.fixture
def raw(tmp_path):
    path = tmp_path / "raw.csv"
    path.write_text("\n".join([HEAD, row(11, 0), row(11, 1), row(12, 0), row(12, 1, crc=0), "cut", ""]))
    return path


def test_links_are_written_and_omitted_lines_are_counted(raw, tmp_path, capsys):
    out, rejected = tmp_path / "new" / "links.csv", tmp_path / "rejected.csv"
    assert cli.main(["data", "links", str(raw), "--out", str(out), "--rejected", str(rejected)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{raw}: 1 lines left out: crc wrong",
        f"{raw}: 1 lines left out: unreadable",
        f"wrote 2 rows of links into {out}",
    ]
    links = pd.read_csv(out)
    assert links[["transmitter", "receiver", "channel", "heard", "sent"]].to_numpy().tolist() == [
        [0, 1, 11, 2, 2], [0, 1, 12, 1, 2],
    ]  # fmt: skip
    assert list(wb.topology.from_links(out).edges(data="pdr")) == [(0, 1, 0.75)]
    assert pd.read_csv(rejected)["line"].tolist() == [5, 6]


def test_links_of_one_channel_by_interval(raw, tmp_path):
    out = tmp_path / "links.csv"
    assert cli.main(["data", "links", str(raw), "--out", str(out), "--channel", "12", "--every-s", "60"]) == 0
    assert pd.read_csv(out)[["channel", "pdr"]].to_numpy().tolist() == [[12, 0.5]]


def test_links_of_neighbor_reports(tmp_path):
    path, out = tmp_path / "N1.txt", tmp_path / "links.csv"
    path.write_bytes(b"1163438002000 0 0 16 13 8 234\n1163438002000 0 0 13 16 245 235\n")
    assert cli.main(["data", "links", str(path), "--out", str(out), "--format", "ulb-neighbors"]) == 0
    assert pd.read_csv(out)[["transmitter", "receiver", "pdr"]].to_numpy().tolist() == [[13, 16, 1], [16, 13, 1]]


@pytest.mark.parametrize(("options", "sentence"), [
    (["--channel", "26"], "--channel 26: the logs have no frames"),
    (["--every-s", "0"], "every_s is 0"),
    (["--format", "ulb-neighbors"], "not in the expected format"),
    (["--format", "ulb-neighbors", "--channel", "11"], "lack channels and times"),
])  # fmt: skip
def test_impossible_options_end_in_one_sentence(raw, tmp_path, capsys, options, sentence):
    out = tmp_path / "links.csv"
    assert cli.main(["data", "links", str(raw), "--out", str(out), *options]) == 2
    printed = capsys.readouterr().err
    assert len(printed.splitlines()) == 1 and sentence in printed
    assert not out.exists()


def test_missing_log_ends_in_one_sentence(tmp_path, capsys):
    assert cli.main(["data", "links", str(tmp_path / "no.csv"), "--out", str(tmp_path / "links.csv")]) == 2
    assert "cannot be read" in capsys.readouterr().err
