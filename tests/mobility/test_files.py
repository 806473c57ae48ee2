"""Movement files of other programs: their meaning, exact round trips, and errors for any other bytes."""

import gzip
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import DataError, ParameterError
from workbench.mobility import (
    GaussMarkov,
    RandomWaypoint,
    Track,
    Waypoints,
    files,
    positions,
    read_bonnmotion,
    read_cooja,
    read_ns2,
    write_bonnmotion,
)

READERS = (read_bonnmotion, read_ns2, read_cooja)
VALID = {
    read_bonnmotion: "# BonnMotion\n0 1 2 10 5 6\n0.0 3.0 4.0\n",
    read_ns2: '$node_(0) set X_ 1.0\n$node_(0) set Y_ 2.0\n$ns_ at 2.0 "$node_(0) setdest 5.0 6.0 1.5"\n',
    read_cooja: "# node time x y\n0 0 1 2\n1 0.0 3 4\n0 2.5 1.5 2\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder for files that a test writes again for each example."""
    return tmp_path_factory.mktemp("movements")


def read(reader, tmp_path, content, **options):
    path = tmp_path / "moves.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return reader(path, **options)


def at(waypoints, *times_s):
    track = waypoints.track(0, (99, 99), (100, 100), 10, 1)
    return positions(track, [round(time_s * 1e6) for time_s in times_s]).tolist()


# --- BonnMotion ---


def test_a_line_of_bonnmotion_is_the_path_of_a_node(tmp_path):
    content = "# a comment\n\n0.0 1.0 2.0 10.0 5.0 6.0\r\n\n3 7 8\n"
    expected = {0: Waypoints([(0, 1, 2), (10, 5, 6)]), 1: Waypoints([(0, 7, 8), (3, 7, 8)])}
    assert read(read_bonnmotion, tmp_path, content) == expected
    assert read(read_bonnmotion, tmp_path, gzip.compress(content.encode())) == expected
    assert list(read(read_bonnmotion, tmp_path, content, nodes=[8, 3])) == [8, 3]


def test_bonnmotion_may_repeat_a_waypoint(tmp_path):
    assert read(read_bonnmotion, tmp_path, "0 1 1 5 2 2 5 2 2 6 1 1")[0] == Waypoints([(0, 1, 1), (5, 2, 2), (6, 1, 1)])


track_vertices = st.lists(
    st.tuples(st.integers(0, 10**15), st.integers(-(10**12), 10**12), st.integers(-(10**12), 10**12)),
    min_size=1,
    max_size=5,
    unique_by=lambda vertex: vertex[0],
).map(sorted)
any_track = track_vertices.map(
    lambda vertices: Track(
        np.array([0, *(time for time, _, _ in vertices if time > 0)]),
        np.array([vertices[0][1:], *(vertex[1:] for vertex in vertices if vertex[0] > 0)]) / 1e4,
    )
)


@given(
    tracks=st.dictionaries(st.integers(0, 2**31 - 1), any_track, min_size=1, max_size=4),
    suffix=st.sampled_from(["", ".gz"]),
)
def test_tracks_survive_a_file_of_bonnmotion_exactly(folder, tracks, suffix):
    path = folder / f"tracks.movements{suffix}"
    write_bonnmotion(path, tracks)
    paths = read_bonnmotion(path, nodes=sorted(tracks))
    assert paths.keys() == tracks.keys()
    for node, track in tracks.items():
        twin = paths[node].track(node, (9, 9), (9, 9), 1, 1)
        assert np.array_equal(twin.times_us, track.times_us) and np.array_equal(twin.positions_m, track.positions_m)


@pytest.mark.parametrize("model", [RandomWaypoint(pause_s=3), GaussMarkov()], ids=lambda model: model.kind)
def test_drawn_tracks_survive_a_file_of_bonnmotion_exactly(tmp_path, model):
    tracks = dict(enumerate(model.tracks(range(20), [(0, 0)] * 20, (50, 50), 60, 1)))
    write_bonnmotion(tmp_path / "a.movements.gz", tracks)
    for node, waypoints in read_bonnmotion(tmp_path / "a.movements.gz").items():
        twin = waypoints.track(node, (9, 9), (9, 9), 1, 1)
        assert np.array_equal(twin.times_us, tracks[node].times_us)
        assert np.array_equal(twin.positions_m, tracks[node].positions_m)


def test_the_same_tracks_give_the_same_bytes(tmp_path):
    tracks = {
        4: Track(np.array([0, 1_500_000]), np.array([[0.0, -0.0], [1.25, 3.0]])),
        2: Track(np.array([0]), np.ones((1, 2))),
    }
    write_bonnmotion(tmp_path / "plain", tracks)
    assert (tmp_path / "plain").read_text() == "0 1.0 1.0\n0 0.0 0.0 1.5 1.25 3.0\n"
    for name in ("a.gz", "b.gz"):
        write_bonnmotion(tmp_path / name, tracks)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert (tmp_path / "a.gz").read_bytes()[4:8] == bytes(4)  # the header has no time of writing


def test_a_track_that_cannot_be_written_is_an_error(tmp_path):
    with pytest.raises(ParameterError, match="The track of node 1 is"):
        write_bonnmotion(tmp_path / "file", {1: [(0, 1, 2)]})
    with pytest.raises(DataError, match="cannot be written"):
        write_bonnmotion(tmp_path, {})


@pytest.mark.parametrize("nodes", [[1], [1, 1], [1, 2, 3], [0, -1]])
def test_nodes_that_do_not_fit_the_lines_are_refused(tmp_path, nodes):
    with pytest.raises(ParameterError, match="nodes"):
        read(read_bonnmotion, tmp_path, "0 1 2\n0 3 4\n", nodes=nodes)


# --- ns-2 ---

START = "$node_(0) set X_ 0.0\n$node_(0) set Y_ 10\n"


def test_setdest_moves_a_node_with_constant_speed(tmp_path):
    content = f"# nodes: 1\n{START}$node_(0) set Z_ 5\nset god_ [God instance]\n$god_ set-dist 0 1 2\n"
    content += '$ns_ at 1 "$god_ set-dist 0 1 3"\n$ns_ at 2.0 "$node_(0) setdest 8.0 10.0 2.0"; # go\n'
    x_m = [position_m[0] for position_m in at(read(read_ns2, tmp_path, content)[0], 0, 2, 3, 5, 6, 9)]
    assert x_m == [0, 0, 2, 6, 8, 8]


def test_a_new_destination_is_approached_from_where_the_node_is(tmp_path):
    content = START + '$ns_ at 4 "$node_(0) setdest 4 20 4"\n$ns_ at 0 "$node_(0) setdest 20 10 1"\n'
    path = read(read_ns2, tmp_path, content)[0]
    assert path == Waypoints([(0, 0, 10), (4, 4, 10), (6.5, 4, 20)])


def test_a_speed_of_0_stops_a_node_and_a_second_destination_at_once_replaces_the_first(tmp_path):
    content = START + '$ns_ at 0 "$node_(0) setdest 20 10 1"\n$ns_ at 3 "$node_(0) setdest 9 9 0"\n'
    content += '$ns_ at 5 "$node_(0) setdest 9 9 1"\n$ns_ at 5 "$node_(0) setdest 3 12 1"\n'
    assert read(read_ns2, tmp_path, content)[0] == Waypoints([(0, 0, 10), (3, 3, 10), (5, 3, 10), (7, 3, 12)])


def test_a_position_that_is_set_later_is_a_jump(tmp_path):
    content = (
        START + '$ns_ at 4 "$node_(0) set X_ 7"\n$ns_ at 4 "$node_(0) set Y_ 8"\n$ns_ at 0 "$node_(0) set Y_ 11"\n'
    )
    assert at(read(read_ns2, tmp_path, content)[0], 0, 3.999999, 4, 9) == [[0, 11], [0, 11], [7, 8], [7, 8]]


def test_a_destination_that_is_never_reached_is_approached_until_the_end_of_time(tmp_path):
    content = START + '$ns_ at 0 "$node_(0) setdest 20 10 0.00000001"\n$ns_ at 1 "$node_(0) setdest 20 10 1e-320"\n'
    assert at(read(read_ns2, tmp_path, content)[0], 0, 1e9) == [[0, 10], [0, 10]]
    content = START + '$ns_ at 0 "$node_(0) setdest 20 10 0.00000001"\n'
    assert at(read(read_ns2, tmp_path, content)[0], 0, 5e8, 1e9) == [[0, 10], [5, 10], [10, 10]]


def test_a_destination_is_not_reached_before_the_next_microsecond(tmp_path):
    path = read(read_ns2, tmp_path, START + '$ns_ at 2 "$node_(0) setdest 9 10 1e9"\n')[0]
    assert at(path, 2, 2.000001) == [[0, 10], [9, 10]]


def test_setdest_is_followed_as_a_small_simulation_follows_it(tmp_path):
    random = np.random.default_rng(1)
    here, destination, speed, content, expected = np.array([0.0, 10.0]), None, 0.0, START, []
    for second in range(120):  # a destination every few seconds, which is often not reached
        if second % 7 == 3:
            destination, speed = np.round(random.uniform(0, 30, 2), 3), round(random.uniform(0.5, 6), 3)
            content += f'$ns_ at {second} "$node_(0) setdest {destination[0]} {destination[1]} {speed}"\n'
        expected.append(here)
        if destination is not None:
            left = np.linalg.norm(destination - here)
            here = destination if left <= speed else here + (destination - here) * speed / left
    path = read(read_ns2, tmp_path, content)[0]
    assert np.abs(np.array(at(path, *range(120))) - expected).max() < 5e-4


def test_the_start_may_be_at_the_end_and_other_spellings_are_read(tmp_path):
    content = '$ns at 1 "\\$node(3) setdest 1 0 1" \n  $node_(3) set Y_ 0;\n$node_(3) set X_ 0\n'
    assert read(read_ns2, tmp_path, content) == {3: Waypoints([(0, 0, 0), (1, 0, 0), (2, 1, 0)])}


# --- Cooja ---


def test_a_node_jumps_at_the_time_of_each_line(tmp_path):
    path = read(read_cooja, tmp_path, "#node time x y\n0 1.0 1 2\n1 1 9 9\n0 3.5 4.0 2\n0\t5  4.0 3\n")[0]
    times_s = [0, 1, 3.499999, 3.5, 4.999999, 5, 99]
    assert at(path, *times_s) == [[1, 2], [1, 2], [1, 2], [4, 2], [4, 2], [4, 3], [4, 3]]


def test_of_lines_with_the_same_time_the_last_counts(tmp_path):
    path = read(read_cooja, tmp_path, "0 0 1 1\n0 0 2 2\n0 4 3 3\n0 4 5 5\n0 4.000001 6 6\n")[0]
    assert at(path, 0, 3.999999, 4, 4.000001) == [[2, 2], [2, 2], [5, 5], [6, 6]]


# --- errors ---


@pytest.mark.parametrize(
    ("reader", "content", "message"),
    [
        (read_bonnmotion, "", "moves.txt has no movements; it must have a line 'time x y"),
        (read_bonnmotion, "0 1 2\n0 1 2 3\n", "moves.txt, line 2 has 4 numbers; a line must have 3 numbers for each"),
        (read_bonnmotion, "\n0 1 x\n", "line 2: 'x' is not a finite number"),
        (read_bonnmotion, "0 1 1_0\n", "line 1: '1_0' is not a finite number"),
        (read_bonnmotion, "0 1 nan\n", "line 1: 'nan' is not a finite number"),
        (read_bonnmotion, "0 1 1e9\n", "line 1: point 0 is .* its coordinates from"),
        (read_bonnmotion, "-1 1 1\n", "line 1: point 0 is .* its time must be from 0"),
        (
            read_bonnmotion,
            "5 1 1 4 2 2",
            "line 1: point 1 is at 4.0 s, .* at 5.0 s; times must ascend",
        ),
        (read_bonnmotion, "0 1 1 5 1 1 5 2 2", "line 1: point 2 is at 5.0 s, .* at 5.0 s; times must ascend"),
        (read_ns2, "", "moves.txt has no movements; it must have lines such as '.node_"),
        (
            read_ns2,
            "$node_(1) set X_ 0",
            r"node 1 has no position at the start; add the line '\$node_\(1\) set Y_ 0.0'",
        ),
        (read_ns2, '$ns_ at 1 "$node_(1) setdest 1 1 1"', "node 1 has no position at the start"),
        (read_ns2, START + '$ns_ at 1 "$node_(0) setdest 1 1"', r"line 3: .* a line must be '\$node_"),
        (read_ns2, START + '$ns_ at 1 "$node_(0) setdest 1 1 -1"', "line 3: the speed is -1 m/s; it must be 0 or more"),
        (read_ns2, START + '$ns_ at 1 "$node_(0) setdest 1 1 1', "line 3: .* a line must be"),
        (read_ns2, START + '$ns_ at x "$node_(0) setdest 1 1 1"', "line 3: 'x' is not a finite number"),
        (read_ns2, START + '$ns_ at 1e10 "$node_(0) setdest 1 1 1"', "line 3: the time is 1e10 s; it must be from 0"),
        (read_ns2, START + '$ns_ at 1 "$node_(0) setdest 1 1e9 1"', "line 3: the position is"),
        (read_ns2, START + "$node_(0) setdest 1 1 1", "line 3: .* a line must be"),
        (read_ns2, "$node_(99999999999999999999) set X_ 1", "line 1: .* a line must be"),
        (read_ns2, "$node_(2147483648) set X_ 1", "line 1: .* a line must be"),
        (read_ns2, "hello", "line 1: 'hello'; a line must be"),
        (read_cooja, "# nothing", "moves.txt has no movements; it must have lines 'node time_s x_m y_m'"),
        (read_cooja, "0 1 2", "line 1: '0 1 2'; a line must be 'node time_s x_m y_m'"),
        (read_cooja, "0.5 1 2 3", "line 1: '0.5 1 2 3'; a line must be"),
        (read_cooja, "0 1 2 inf", "line 1: 'inf' is not a finite number"),
        (read_cooja, "0 5 0 0\n0 4 1 1", "line 2: the time 4 s is before that of the node's previous line"),
        *((reader, b"\xff\xfe\x00", "moves.txt is not a text file in UTF-8") for reader in READERS),
        *((reader, gzip.compress(b"0 1 2\n" * 99, mtime=0)[:-9], "not a complete gzip file") for reader in READERS),
        *((reader, b"\x1f\x8bx", "not a complete gzip file") for reader in READERS),
    ],
)
def test_an_error_names_the_file_the_line_and_the_form(tmp_path, reader, content, message):
    with pytest.raises(DataError, match=message):
        read(reader, tmp_path, content)


@pytest.mark.parametrize("reader", READERS)
def test_a_file_that_cannot_be_read_is_an_error(tmp_path, reader):
    for path, message in [
        (tmp_path / "absent", "cannot be read .*; give the path of a movement file"),
        (tmp_path, "cannot be read"),
        ("a\0b", "is not the path of a file"),
        (3, "The file is of type int; give the path of a file"),
        (None, "The file is of type NoneType"),
    ]:
        with pytest.raises(DataError, match=message):
            reader(path)


@pytest.mark.parametrize("reader", READERS)
def test_files_that_are_too_large_are_refused(tmp_path, reader, monkeypatch):
    monkeypatch.setattr(files, "LARGEST_FILE_B", 1000)
    for content in (b"\n" * 1001, gzip.compress(b"\n" * 1001, mtime=0), gzip.compress(b"\n" * 1_000_000)):
        with pytest.raises(DataError, match="has more than 0.001 MB of text"):
            read(reader, tmp_path, content)
    monkeypatch.setattr(files, "MOST_WAYPOINTS", 1)
    with pytest.raises(DataError, match="has more than 1 waypoints"):
        read(reader, tmp_path, VALID[reader])


def survive(reader, path, content):
    """Read ``content``, and check that the result is paths or a DataError."""
    path.write_bytes(content)
    try:
        paths = reader(path)
    except DataError as error:
        assert 0 < len(str(error)) < 400 and "\n" not in str(error)
    else:
        assert paths and all(
            isinstance(waypoints, Waypoints) and waypoints.points[0][0] == 0 for waypoints in paths.values()
        )


words = st.sampled_from(
    [
        "0",
        "1",
        "-1",
        "2.5",
        "1e300",
        "nan",
        "1e-320",
        "9" * 5000,
        "$node_(0)",
        "$node_(7)",
        "set",
        "X_",
        "Y_",
        "Z_",
        "$ns_",
        "at",
    ]
    + ['"$node_(0)', "setdest", '"', "#", ";", "\n", "\n", "\n", "\r", "\0", "\u2028", "²", "$god_", '1"', "_", "\\"]
)


@pytest.mark.parametrize("reader", READERS)
@given(
    content=st.one_of(st.binary(max_size=60), st.lists(words, max_size=30).map(lambda parts: " ".join(parts).encode()))
)
def test_readers_survive_any_bytes(folder, reader, content):
    survive(reader, folder / "any", content)
    survive(reader, folder / "any", gzip.compress(content, mtime=0))


@pytest.mark.parametrize("reader", READERS)
@given(data=st.data())
def test_readers_survive_damaged_files(folder, reader, data):
    content = bytearray(VALID[reader].encode() * 2)
    for _ in range(data.draw(st.integers(1, 3))):
        at_byte = data.draw(st.integers(0, len(content) - 1))
        content[at_byte : at_byte + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    survive(reader, folder / "damaged", bytes(content))
    packed = bytearray(gzip.compress(bytes(content)))
    packed[data.draw(st.integers(0, len(packed) - 1))] ^= data.draw(st.integers(1, 255))
    survive(reader, folder / "damaged", bytes(packed))


def test_numbers_of_a_compressed_file_are_checked_by_zlib(tmp_path):
    with pytest.raises(DataError, match="not a complete gzip file"):
        read(read_bonnmotion, tmp_path, b"\x1f\x8b\x08\0\0\0\0\0\0\3" + zlib.compress(b"0 1 2")[:6] + b"\xff" * 20)
