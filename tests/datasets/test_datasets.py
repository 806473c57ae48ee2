"""Known data sets: finding their files, and reading their formats even if the file is damaged."""

import hashlib
import math
import warnings

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench import datasets, topology
from workbench.datasets import parts
from workbench.errors import DataError

READINGS = b"1163438041250 20 1 21,21 2,81 51,53 22,08 20 28\n1163438041468 10 1 20,07 3 51,46 22,3 2 2\n"
NEIGHBORS = b"1163438002000 0 0 16 13 8 234\n1163438002000 0 0 16 15 245 235\n"
INTEL = b"2004-03-31 03:38:15.757551 2 1 122.153 -3.91901 11.04 2.03397\n"
CONNECTIVITY = b"1 2 0.81\n2 1 0.5\n1 3 0\n"
POSITIONS = b"1 21.5 23\n2 24.5 20\n"

FORMATS = [
    (datasets.ulb_readings, READINGS),
    (datasets.ulb_neighbors, NEIGHBORS),
    (datasets.intel_readings, INTEL),
    (datasets.intel_connectivity, CONNECTIVITY),
    (datasets.intel_positions, POSITIONS),
]


@pytest.fixture
def data_folder(tmp_path, monkeypatch):
    """Return an empty folder that is searched first."""
    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path))
    return tmp_path


def write(folder, content, name="data.txt"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


# --- finding ---


def test_the_users_folder_is_searched_first(data_folder):
    assert datasets.folder_candidates()[0] == data_folder


def test_the_platforms_folder_is_searched_too(monkeypatch, tmp_path):
    monkeypatch.delenv("WORKBENCH_DATA", raising=False)
    for name in ("XDG_DATA_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    first = datasets.folder_candidates()[0]
    assert tmp_path in first.parents and first.parts[-2:] == ("workbench", "datasets")


def test_a_file_other_than_the_known_one_is_used_with_a_warning(data_folder):
    path = write(data_folder, READINGS, "ulb-library/R1.txt")
    with pytest.warns(UserWarning, match="differs from the known file of data set ulb-library"):
        assert datasets.find("ulb-library", "readings")["readings"] == path


def test_the_error_for_a_missing_role_names_the_file_and_its_source(data_folder):
    if any((folder / "intel-lab" / "data.txt").is_file() for folder in datasets.folder_candidates()):
        pytest.skip("the Intel Lab readings are on this machine")
    with pytest.raises(DataError) as error:
        datasets.find("intel-lab", "readings")
    assert "intel-lab/data.txt not found" in str(error.value) and str(data_folder) in str(error.value)
    assert "db.csail.mit.edu/labdata" in str(error.value)


@pytest.mark.parametrize("name", ["", "intel", "../iotlab", 7, None])
def test_an_unknown_data_set_names_the_known_ones(name):
    with pytest.raises(DataError, match="known data sets are iotlab/strasbourg, iotlab/lille, ulb-library, intel-lab"):
        datasets.find(name)


def test_an_unknown_role_names_the_known_ones():
    with pytest.raises(DataError, match="has no file for role 'images'; its roles are readings, neighbors"):
        datasets.find("ulb-library", "images")


def test_the_list_of_data_sets_shows_origin_terms_and_available_files(data_folder):
    write(data_folder, CONNECTIVITY, "intel-lab/connectivity.txt")
    listing = datasets.describe().set_index("name")
    assert "links" in listing.loc["intel-lab", "here"]
    assert (listing[["title", "origin", "licence", "files", "how"]].map(len) > 10).all().all()


def test_real_files_have_the_known_checksums(real_data):
    known = [file for data_set in datasets.DATA_SETS for file in data_set.files if file.sha256]
    for file in known:
        path = next(real_data / name for name in file.paths if (real_data / name).is_file())
        assert hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert set(datasets.find("lille")) == {"links", "positions"}


# --- formats ---


def test_ulb_readings_have_decimal_commas(tmp_path):
    frame = datasets.ulb_readings(write(tmp_path, READINGS))
    assert frame.iloc[0].to_dict() == {
        "time_s": 1163438041.25, "node": 20, "sequence": 1, "internal_temperature_C": 21.21, "voltage_V": 2.81,
        "humidity_pct": 51.53, "temperature_C": 22.08, "par": 20, "tsr": 28,
    }  # fmt: skip
    assert frame["voltage_V"].tolist() == [2.81, 3.0]


@pytest.mark.parametrize("blank", [b" ", b"\xa0", b"\xc2\xa0"])
def test_ulb_sequence_numbers_above_999_are_split_by_a_blank(tmp_path, blank):
    lines = READINGS.replace(b" 20 1 ", b" 20 1" + blank + b"012 ").replace(b" 10 1 ", b" 10 999 ")
    frame = datasets.ulb_readings(write(tmp_path, lines))
    assert frame["sequence"].tolist() == [1012, 999]
    assert frame["internal_temperature_C"].tolist() == [21.21, 20.07]


@pytest.mark.parametrize("sequence", [b"1 12", b"1012 012", b"1 0123", b"1 01,2"])
def test_ulb_lines_with_a_column_too_many_are_damaged(tmp_path, sequence):
    frame = datasets.ulb_readings(write(tmp_path, READINGS.replace(b" 20 1 ", b" 20 " + sequence + b" ")))
    assert frame["node"].tolist() == [10]
    assert frame.attrs["skipped"] == 1 and frame.attrs["first_skipped"].startswith("line 1: ")


@pytest.mark.parametrize(
    ("logged", "lqi", "power_dBm"), [(8, 120, -37), (128, 0, -173), (129, 254, -172), (245, 138, -56)]
)
def test_ulb_link_quality_is_converted_by_the_formula_of_its_authors(tmp_path, logged, lqi, power_dBm):
    line = b"1163438002000 3 17 16 13 %d 234\n" % logged
    (row,) = datasets.ulb_neighbors(write(tmp_path, line)).to_dict("records")
    assert row == {
        "time_s": 1163438002.0, "packet": 3, "round": 17, "node": 16, "source": 13, "lqi": lqi, "rssi": 234,
        "power_dBm": power_dBm,
    }  # fmt: skip


def test_intel_readings_have_dates_and_cut_lines(tmp_path):
    lines = (
        INTEL + b"2004-02-28 00:59:16.02785 3 1 19.9884\n" + b"2004-02-28 00:59:16 3 2 19.9884 37.0933 45.08 2.69964\n"
    )
    frame = datasets.intel_readings(write(tmp_path, lines))
    assert pd.to_datetime(frame["time_s"], unit="s").dt.round("ms").astype(str).tolist() == [
        "2004-03-31 03:38:15.758",
        "2004-02-28 00:59:16.000",
    ]
    assert frame["humidity_pct"].tolist() == [-3.91901, 37.0933]
    assert frame.attrs == {"lines": 3, "skipped": 1, "first_skipped": "line 2: the line has 5 columns, not 8"}


def test_the_error_for_a_file_read_in_chunks_names_its_first_invalid_line(tmp_path, monkeypatch):
    path = write(tmp_path, 30 * INTEL + b"cut\n" + 30 * INTEL + b"cut again, later\n")
    whole = datasets.intel_readings(path)
    monkeypatch.setattr(parts, "CHUNK_B", 200)
    pieces = datasets.intel_readings(path)
    pd.testing.assert_frame_equal(pieces, whole)
    assert pieces.attrs == {"lines": 62, "skipped": 2, "first_skipped": "line 31: the line has 1 columns, not 8"}


def test_intel_connectivity_is_a_link_table(tmp_path):
    frame = datasets.intel_connectivity(write(tmp_path, CONNECTIVITY + b"2 2 1\n1 2 0.3\n2 3 1.01\n"))
    assert frame.attrs["skipped"] == 3
    assert list(topology.from_links(frame).edges(data="pdr")) == [(1, 2, 0.81), (2, 1, 0.5)]


def test_intel_positions_are_positions(tmp_path):
    frame = datasets.intel_positions(write(tmp_path, POSITIONS))
    assert topology.from_positions(frame, radius_m=5).nodes(data="pos")[2] == (24.5, 20.0)


@pytest.mark.parametrize(("load", "content"), FORMATS)
def test_the_error_for_a_file_of_another_format_names_the_expected_one(tmp_path, load, content):
    other_formats = [
        valid for _, valid in FORMATS if valid != content and {content, valid} != {CONNECTIVITY, POSITIONS}
    ]
    for wrong in (b"", b"\n\n", b"<html>\n<body>no data</body>\n", bytes(range(256)), *other_formats):
        with pytest.raises(DataError, match=r"is not in the expected format .*; its lines should have"):
            load(write(tmp_path, wrong))
    for absent in (tmp_path / "absent.txt", tmp_path, "a\0b"):
        with pytest.raises(DataError, match="cannot be read"):
            load(absent)


DAMAGE = st.lists(st.binary(max_size=60).map(lambda line: line.replace(b"\n", b"")), max_size=9)  # on each side


@pytest.mark.parametrize(("load", "content"), FORMATS)
@settings(max_examples=40, deadline=None)
@given(before=DAMAGE, after=DAMAGE)
def test_damaged_lines_are_skipped_and_counted(tmp_path_factory, load, content, before, after):
    path = write(tmp_path_factory.mktemp("log"), b"\n".join([*before, content, *after]))
    frame = load(path)
    assert len(frame) >= len(content.splitlines())
    assert len(frame) + frame.attrs["skipped"] == frame.attrs["lines"] >= len(frame)
    assert not frame.isna().any().any()


@pytest.mark.parametrize(("load", "content"), FORMATS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_cut_and_flipped_bytes_raise_nothing_but_a_data_error(tmp_path_factory, load, content, data):
    damaged = bytearray(content[: data.draw(st.integers(0, len(content)))])
    for index in data.draw(st.lists(st.integers(0, max(0, len(damaged) - 1)), max_size=3)):
        if damaged:
            damaged[index] ^= data.draw(st.integers(1, 255))
    try:
        load(write(tmp_path_factory.mktemp("log"), bytes(damaged)))
    except DataError as error:
        assert "expected format" in str(error)


# --- links from neighbor observations ---


def observations(rows):
    columns = ["round", "packet", "node", "source", "lqi", "rssi", "power_dBm"]
    return pd.DataFrame([(*row, 100 + row[0], 235, -50 - row[0]) for row in rows], columns=columns)


def test_delivery_ratio_is_the_share_of_rounds_in_which_a_neighbor_was_heard():
    # 2 hears 1 in rounds 0, 1 and 3 of 0..3; 1 hears 2 always; 3, which is silent, hears 1 once.
    rows = [(number, 0, 2, 1) for number in (0, 1, 3)] + [(2, 0, 2, 3)]
    rows += [(number, 0, 1, 2) for number in range(4)] + [(2, 0, 3, 1), (3, 0, 3, 2)]
    links = datasets.links_from_neighbors(observations(rows)).set_index(["transmitter", "receiver"])
    assert links.loc[(1, 2), ["pdr", "rounds"]].tolist() == [0.75, 4]
    assert links.loc[(2, 1), "pdr"] == 1
    assert links.loc[(1, 3), ["pdr", "rounds"]].tolist() == [0.5, 2]
    assert links.loc[(1, 2), "lqi"] == pytest.approx(100 + 4 / 3)


def test_a_round_in_which_no_mote_heard_a_neighbor_does_not_count():
    rows = [(number, 0, 2, 1) for number in range(5)] + [(number, 0, 2, 3) for number in range(10)]
    links = datasets.links_from_neighbors(observations(rows)).set_index(["transmitter", "receiver"])
    assert links.loc[(1, 2), ["pdr", "rounds"]].tolist() == [1.0, 5]


def test_a_report_with_a_lost_packet_does_not_count():
    # In round 1 packet 1 of node 2's report, with neighbor 3, is missing.
    rows = [(0, 0, 2, 1), (0, 1, 2, 3), (0, 2, 2, 4), (1, 0, 2, 1), (1, 2, 2, 4), (1, 0, 4, 3)]
    frame = observations(rows)
    links = datasets.links_from_neighbors(frame).set_index(["transmitter", "receiver"])
    assert links.loc[(3, 2), ["pdr", "rounds"]].tolist() == [1.0, 1]
    unknown = datasets.links_from_neighbors(frame.drop(columns="packet")).set_index(["transmitter", "receiver"])
    assert unknown.loc[(3, 2), ["pdr", "rounds"]].tolist() == [0.5, 2]


def test_links_never_heard_have_no_delivery_and_make_no_arc():
    links = datasets.links_from_neighbors(observations([(0, 0, 2, 1), (0, 0, 1, 3)]))
    graph = topology.from_links(links)
    assert graph.number_of_edges() == 2 and set(graph) == {1, 2, 3}


def test_links_of_intervals_follow_the_observations_and_make_a_link_trace():
    # 2 hears 1 in both rounds of the first minute, and in one of two of the second.
    rows = [(number, 0, 2, 1) for number in (0, 1, 2)] + [(3, 0, 2, 9), (3, 0, 3, 1)]
    frame = observations(rows).assign(time_s=lambda table: 1000.0 + 30 * table["round"])
    links = datasets.links_from_neighbors(frame, every_s=60).set_index(["transmitter", "receiver", "from_s"])
    assert links.loc[(1, 2, 1000.0), "pdr"] == 1 and links.loc[(1, 2, 1060.0), "pdr"] == 0.5
    trace = wb.link_trace(links.reset_index()).trace
    times_of_arc = zip(trace.times_s, trace.transmitters, trace.receivers, trace.pdr, strict=True)
    assert [(time_s, pdr) for time_s, *arc, pdr in times_of_arc if arc == [1, 2]] == [(0.0, 1.0), (60.0, 0.5)]


@pytest.mark.parametrize("every_s", [0, -1, "a", math.nan])
def test_an_interval_of_links_must_be_positive(every_s):
    with pytest.raises(DataError, match="must be a number of seconds above 0"):
        datasets.links_from_neighbors(observations([(0, 0, 2, 1)]).assign(time_s=0.0), every_s=every_s)


def test_neighbor_observations_without_a_required_column_are_refused():
    with pytest.raises(DataError, match="no column 'round'; they need round, node, source"):
        datasets.links_from_neighbors(pd.DataFrame({"node": [1]}))


# --- the real files ---


def test_real_ulb_readings(real_data):
    frame = datasets.ulb_readings(real_data / "ulb-library" / "R1.txt")
    assert len(frame) == 7563 and frame.attrs["skipped"] == 0
    assert frame["node"].nunique() == 19 and frame["sequence"].max() == 406
    assert frame["temperature_C"].between(20, 23).all() and frame["voltage_V"].between(2.6, 3.0).all()


def test_real_ulb_neighbors_make_a_network(real_data):
    frame = datasets.ulb_neighbors(real_data / "ulb-library" / "N1.txt")
    assert len(frame) == 127903 and frame.attrs["skipped"] == 0
    links = datasets.links_from_neighbors(frame)
    assert len(links) == 19 * 18 and links["pdr"].between(0.75, 1).all()
    forward = links.set_index(["transmitter", "receiver"])["power_dBm"]
    backward = links.set_index(["receiver", "transmitter"])["power_dBm"].rename_axis(forward.index.names)
    assert forward.corr(backward.reindex(forward.index)) > 0.95  # power is reciprocal
    graph = topology.from_links(links, min_pdr=0.9)
    assert len(graph) == 19 and graph.graph["recipe"]["min_pdr"] == 0.9


def test_real_intel_positions(real_data):
    frame = datasets.intel_positions(real_data / "intel-lab-mote-locations.txt")
    assert frame["node"].tolist() == list(range(1, 55)) and frame.attrs["skipped"] == 0
