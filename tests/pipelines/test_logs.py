"""Logs: the same rows and reasons in memory, in Parquet and on Spark; formats of the user; measured links."""

import copy

import pandas as pd
import pytest

import workbench as wb
from workbench import datasets, pipelines
from workbench.datasets import parts
from workbench.datasets.chunks import read_chunk
from workbench.errors import DataError
from workbench.pipelines.queries import run_query

HEADER = (
    "timestamp,mac,frequency,length,rssi,crc,expected,srcmac,transctr,pkctr,txnumpk,txpower,txifdur,txlength,txfillbyte"
)
READINGS = "".join(
    f"2004-02-28 00:{n // 60:02}:{n % 60:02}.5 {n} {n % 5} {20 + n % 3}.25 37.5 45.08 2.69\n" for n in range(300)
)


def name_of(node):
    return f"00-00-00-00-00-00-00-{node:02x}"


def packet(second, receiver, transmitter, transaction, counter, channel=11, rssi=-60, crc=1, length=100, sent=4):
    """Return a line of a Mercator log."""
    return (
        f"2014-11-06_01.{second // 60:02}.{second % 60:02},{name_of(receiver)},{channel},{length},{rssi},{crc},1,"
        f"{name_of(transmitter)},{transaction},{counter},{sent},0,100,100,0x0a"
    )


# Transactions of four packets: sender 1 on channels 11, 12 and 11, sender 2 on channel 11; node 3 only listens.
PACKETS = [
    *(packet(0, receiver, 1, 1, counter) for receiver in (2, 3) for counter in range(4)),
    packet(9, 1, 2, 2, 0, rssi=-70), packet(9, 1, 2, 2, 2, rssi=-80), packet(9, 1, 2, 2, 2, rssi=-80),
    packet(10, 3, 2, 2, 1, crc=0), packet(10, 3, 2, 2, 9), packet(10, 3, 2, 2, 1, length=37),
    packet(20, 2, 1, 3, 3, channel=12),
    packet(70, 3, 1, 4, 1), packet(70, 3, 1, 4, 2),
    "cut,off",
]  # fmt: skip


@pytest.fixture
def mercator(tmp_path):
    path = tmp_path / "raw.csv"
    path.write_text("\n".join([HEADER, *PACKETS]))
    return path


# Reading


def test_read_log_returns_the_rows_of_the_loader(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text(READINGS + "cut\n")
    log = pipelines.read_log(path, "intel-readings")
    pd.testing.assert_frame_equal(log.rows.drop(columns="file"), datasets.intel_readings(path))
    assert log.rejected["line"].tolist() == [301]


def test_a_log_read_in_many_pieces_gives_the_same_rows(mercator, monkeypatch):
    whole = pipelines.read_log(mercator, "mercator")
    monkeypatch.setattr(parts, "CHUNK_B", 150)
    pieces = pipelines.read_log(mercator, "mercator")
    pd.testing.assert_frame_equal(pieces.rows, whole.rows)
    pd.testing.assert_frame_equal(pieces.rejected, whole.rejected)


def test_a_format_that_depends_on_earlier_lines_is_read_in_order(tmp_path, monkeypatch):
    path = tmp_path / "connectivity.txt"
    path.write_text("".join(f"{a} {b} 0.5\n" for a in range(20) for b in (a, a + 1, a + 1)))
    monkeypatch.setattr(parts, "CHUNK_B", 20)
    log = pipelines.read_log(path, "intel-connectivity")
    assert len(log.rows) == 20
    assert log.rejected["line"].tolist() == [line for line in range(1, 61) if line % 3 != 2]


def test_a_log_gives_the_same_rows_in_parquet_files_and_in_memory(mercator, tmp_path):
    in_memory, in_files = (pipelines.read_log(mercator, "mercator", out=out) for out in (None, tmp_path / "kept"))
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["rejected.parquet", "rows.parquet"]
    pd.testing.assert_frame_equal(pd.read_parquet(in_files.rows), in_memory.rows)
    pd.testing.assert_frame_equal(pd.read_parquet(in_files.rejected), in_memory.rejected)
    pd.testing.assert_frame_equal(in_files.reasons(), in_memory.reasons())
    pd.testing.assert_frame_equal(pipelines.links(in_files), pipelines.links(in_memory))


def test_a_refused_log_leaves_no_file(mercator, tmp_path):
    with pytest.raises(DataError, match="not in the expected format"):
        pipelines.read_log(mercator, "intel-readings", out=tmp_path / "kept")
    assert list((tmp_path / "kept").iterdir()) == []


def test_reasons_are_the_rules_that_lines_broke(mercator, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("\n".join([HEADER, packet(5, 1, 2, 1, 0), "cut"]))
    log = pipelines.read_log([mercator, other], "mercator")
    assert len(log.rows) == 15 and log.rows["file"].nunique() == 2
    assert log.rejected[["line", "rule", "reason"]].to_numpy().tolist() == [
        [13, "crc wrong", "crc wrong"],
        [14, "packet counter … of …", "packet counter 9 of 4"],
        [15, "length … of …", "length 37 of 100"],
        [19, "unreadable", "the line has 2 columns, not 15"],
        [3, "unreadable", "the line has 1 columns, not 15"],
    ]


def test_progress_ends_at_1(mercator):
    shares = []
    pipelines.read_log([mercator, mercator], "mercator", progress=shares.append)
    assert shares == sorted(shares) and 0.4 < shares[0] < 0.6 and shares[-1] == 1


@pytest.mark.parametrize(("path", "form", "sentence"), [
    ("absent", "mercator", "cannot be read"),
    ([], "mercator", "the list of logs is empty"),
    ("raw.csv", "mercato", "did you mean mercator.*intel-connectivity"),
    ("raw.csv", "intel-readings", "not in the expected format"),
])  # fmt: skip
def test_missing_logs_and_wrong_formats_are_refused_in_a_sentence(mercator, path, form, sentence):
    paths = mercator.parent / path if path else path
    for options in ({}, {"spark": "a session that is not used"}):
        with pytest.raises(DataError, match=sentence):
            pipelines.read_log(paths, form, **options)


# Formats of the user

OWN = pipelines.LogFormat(
    "mine",
    {"time_s": "iso", "node": "node", "name": str, "serial": None, "count": int, "voltage_V": float},
    separator=";",
    header=True,
    checks={"voltage_V is {voltage_V:.1f}": "voltage_V BETWEEN 1 AND 4", "node 0": "node > 0"},
)


def test_a_format_of_the_user_is_read_and_checked(tmp_path):
    path = tmp_path / "own.log"
    path.write_text(
        "time;node;name;serial;count;voltage\n"
        "2026-11-22T10:00:00.25;1;attic;x y;-3;2.5\n"
        " 2026-11-22 11:00:00.25+01:00 ; 2 ; Küche, links ;;4;2,5\n"
        "2026-11-22 10:00:01;1;attic;x;5;7\n"
        "2026-11-22T10:00:00;0;attic;x;5;0\n"
        "2026-11-22T10:00:00;1;attic;x;5.5;1\n"
    )
    log = pipelines.read_log(path, OWN)
    noon_s = 1795341600.25
    assert log.rows.drop(columns="file").to_numpy().tolist() == [
        [noon_s, 1, "attic", -3, 2.5],
        [noon_s, 2, "Küche, links", 4, 2.5],
    ]
    assert log.rejected[["line", "reason"]].to_numpy().tolist() == [
        [4, "voltage_V is 7.0"],
        [5, "voltage_V is 0.0; node 0"],
        [6, "b'5.5' is not a whole number"],
    ]


def test_times_in_milliseconds_and_seconds_become_seconds(tmp_path):
    path = tmp_path / "own.log"
    path.write_text("1163438041250 1163438041.125\n")
    form = pipelines.LogFormat("times", {"sent_s": "unix_ms", "time_s": "unix_s"})
    rows = pipelines.read_log(path, form).rows
    assert rows[["sent_s", "time_s"]].to_numpy().tolist() == [[1163438041.25, 1163438041.125]]


@pytest.mark.parametrize(("columns", "more", "sentence"), [
    ({}, {}, "log format mine has no column with a kind; give at least one column one of the kinds int, float, str"),
    ({"a": None}, {}, "has no column with a kind"),
    ({"a": "itn"}, {}, "column a is of kind 'itn'.*kinds are int, float, str"),
    ({"a b": int}, {}, "the column name is 'a b'"),
    ({"a": int}, {"separator": "ab"}, "the separator is 'ab'; it must be one ASCII character"),
    ({"a": int}, {"checks": {"b too large": "b < 3"}}, "the condition 'b < 3' of check 'b too large' is not valid"),
    ({"a": int}, {"checks": {"{b} too large": "a < 3"}}, "is not valid"),
])  # fmt: skip
def test_an_impossible_format_is_refused_when_it_is_made(columns, more, sentence):
    with pytest.raises(DataError, match=sentence):
        pipelines.LogFormat("mine", columns, **more)


ODD = [
    b"0", b"-7", b"+7", b"007", b"1.5", b"1,5", b"-0.0", b"1e3", b".5", b"nan", b"", b" 5 ", b"x y",
    b"\xc3\xa9", b"\xff", b'"a"', b"2147483648", b"1234567890123456", b"2026-11-22T10:00:00",
    b"2026-11-22 10:00:00.5", b"2026-11-22T10:00:00.123456", b"2026-11-22T10:00:00.1234567",
    b"2026-11-22T10:00:00Z", b"2026-11-22T10:00:00+01:00", b"2026-02-29T10:00:00", b"2026-11-22",
    b"20261122T100000", b"2026-11-22T24:00:00", b"N/A", b"null", b"a,b", b"\xa0", b"\t",
]  # fmt: skip


@pytest.mark.parametrize("separator", [None, ",", ";", "\t", "|"])
@pytest.mark.parametrize("texts", [{}, {"word": str, "again": "str"}])
def test_the_fast_path_of_a_users_format_reads_what_its_parser_reads(separator, texts):
    kinds = {"a": "iso", "b": "node", "c": int, "d": float, "e": "unix_s", "f": "unix_ms", "g": None, **texts}
    form = pipelines.LogFormat("mine", kinds, separator)
    slow = copy.copy(form)
    object.__setattr__(slow, "fast", ())
    good = [b"2026-11-22T10:00:00.25", b"3", b"-4", b"2.5", b"1163438041.125", b"1163438041250", b"any"]
    good += [b"word"] * len(texts)
    between = (separator or " ").encode()
    lines = [between.join([*good[:at], odd, *good[at + 1 :]]) for odd in ODD for at in range(len(good))]
    data = b"\n".join([between.join(good), *lines, between.join(good)])
    fast, plain = (read_chunk(data, version, version.parser()) for version in (form, slow))
    assert fast.rows.equals(plain.rows) and str(fast.rows.to_pylist()) == str(plain.rows.to_pylist())
    assert fast.rejected.equals(plain.rejected)
    calls = []
    assert len(read_chunk(between.join(good), form, calls.append).rows) == 1 and calls == []


# Links


def links_of(path, **options):
    frame = pipelines.links(pipelines.read_log(path, "mercator"), **options)
    return frame.set_index(["transmitter", "receiver", *options.get("by", ("channel",))])


def test_a_link_counts_packets_once_and_includes_receivers_that_heard_nothing(mercator):
    links = links_of(mercator)
    # Names are numbered in their order: nodes 1, 2, 3 become 0, 1, 2. Sender 1 sent 8 packets on channel 11, 4 on 12.
    assert links[["heard", "sent"]].apply(tuple, axis=1).to_dict() == {
        (0, 1, 11): (4, 8), (0, 2, 11): (6, 8), (0, 1, 12): (1, 4), (0, 2, 12): (0, 4),
        (1, 0, 11): (2, 4), (1, 2, 11): (0, 4),
    }  # fmt: skip
    assert links.loc[(1, 0, 11), ["pdr", "rssi_dBm"]].tolist() == [0.5, -75.0]
    assert pd.isna(links.loc[(0, 2, 12), "rssi_dBm"])
    assert links.loc[(1, 2, 11), ["transmitter_name", "receiver_name"]].tolist() == [name_of(2), name_of(3)]


def test_a_transaction_belongs_to_the_interval_in_which_it_begins(mercator):
    frame = pipelines.links(pipelines.read_log(mercator, "mercator"), by=(), every_s=60)
    link = frame[(frame["transmitter"] == 0) & (frame["receiver"] == 2)]
    assert (link["from_s"] - link["from_s"].min()).tolist() == [0, 60]
    assert link[["heard", "sent"]].to_numpy().tolist() == [[4, 8], [2, 4]]


def test_nodes_of_different_logs_are_not_paired(mercator, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("\n".join([HEADER, packet(0, 9, 8, 1, 0)]))
    frame = pipelines.links(pipelines.read_log([mercator, other], "mercator"), by=())
    assert len(frame) == 5
    assert frame.iloc[-1][["transmitter", "receiver", "heard", "sent"]].tolist() == [3, 4, 1, 4]


def test_a_link_table_becomes_a_network(mercator, tmp_path):
    table = pipelines.links(pipelines.read_log(mercator, "mercator"))
    table.to_csv(tmp_path / "links.csv", index=False)
    for source in (table, tmp_path / "links.csv"):
        arcs = {(a, b): pdr for a, b, pdr in wb.topology.from_links(source).edges(data="pdr")}
        assert arcs == {(0, 1): pytest.approx(5 / 12), (0, 2): 0.5, (1, 0): 0.5}


def test_rows_of_a_link_are_weighted_by_packets_sent():
    table = pd.DataFrame({"transmitter": 1, "receiver": 2, "pdr": [0.5, 1.0], "heard": [5, 30], "sent": [10, 30]})
    assert wb.topology.from_links(table).edges[1, 2]["pdr"] == 0.875
    halved = table.assign(pdr=table["pdr"] / 2)
    assert wb.topology.from_links(halved).edges[1, 2]["pdr"] == 0.4375


@pytest.mark.parametrize(("column", "value", "sentence"), [
    ("sent", 0, "row 0, column sent: 0; it must be a number above 0"),
    ("pdr", 1.25, "row 0, column pdr: 1.25; a delivery ratio must be"),
    ("receiver", 1, "row 0: node 1 has a link to itself"),
])  # fmt: skip
def test_impossible_counts_are_refused(column, value, sentence):
    table = pd.DataFrame({"transmitter": [1], "receiver": [2], "pdr": [1.0], "heard": [4], "sent": [4]})
    with pytest.raises(DataError, match=sentence):
        wb.topology.from_links(table.assign(**{column: value}))


def test_rows_without_a_needed_column_are_refused_in_a_sentence(mercator):
    rows = pipelines.read_log(mercator, "mercator").rows
    with pytest.raises(DataError, match="have no column 'chanel'.*columns are time_s, receiver"):
        pipelines.links(rows, by=("chanel",))
    with pytest.raises(DataError, match="every_s is 0"):
        pipelines.links(rows, every_s=0)


# The output of this command for the real logs, where ID stands for 14-15-92-00-12-91-.
#   awk -F, '$6==1 && $7==1 && $4==$14 && $8=="IDcb-fd" && $2=="IDca-eb" && $3==13 {n++; s+=$5} END {print n, s/n}' FILE
BY_HAND = {
    "rennes-2014.11.06-01.30.34_raw.csv": (9512, 87, [
        ("cb-fd", "ca-eb", 13, 18, 100, -84.4444), ("cb-fd", "ba-c7", 13, 100, 100, -72.58),
        ("ba-c7", "cb-fd", 22, 100, 100, -60.0), ("ca-eb", "ba-c7", 13, 100, 100, -66.7),
    ]),
    "euratech-2015.04.08-22.33.35_raw.csv": (10550, 2710, [
        ("b2-7b", "b0-b4", 11, 10, 10, -60.0), ("bc-2d", "ba-46", 11, 3, 10, -87.0),
        ("cc-aa", "b9-5f", 11, 5, 10, -81.0), ("b1-8d", "af-78", 11, 8, 10, -77.375),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_HAND)
def test_links_of_the_real_logs_equal_those_counted_by_hand(name, real_data):
    rows, rejected, counted = BY_HAND[name]
    log = pipelines.read_log(real_data / "iotlab-raw" / name, "mercator")
    assert (len(log.rows), len(log.rejected)) == (rows, rejected)
    links = pipelines.links(log).set_index(["transmitter_name", "receiver_name", "channel"])
    for transmitter, receiver, channel, *numbers in counted:
        link = links.loc[(f"14-15-92-00-12-91-{transmitter}", f"14-15-92-00-12-91-{receiver}", channel)]
        assert link[["heard", "sent"]].tolist() == numbers[:2]
        assert link["rssi_dBm"] == pytest.approx(numbers[2], abs=1e-4)


def test_every_line_of_a_real_log_is_a_row_or_has_its_reason(real_data):
    path = real_data / "iotlab-raw" / "euratech-2015.04.08-22.33.35_raw.csv"
    log = pipelines.read_log(path, "mercator")
    assert len(log.rows) + len(log.rejected) == path.read_bytes().count(b"\n") - 1
    counts = run_query("SELECT rule, lines FROM {reasons}", reasons=log.reasons()).set_index("rule")["lines"]
    # awk -F, 'FNR>1 {if ($6!=1) c++; else if ($7!=1) e++; else if ($4!=$14) l++} END {print c, e, l}' FILE
    assert counts.to_dict() == {"crc wrong": 2701, "not expected": 7, "length … of …": 2}
