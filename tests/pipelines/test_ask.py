"""Queries in SQL: the same answer for every kind of table."""

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workbench.errors import DataError
from workbench.pipelines.queries import run_query

HEARD = pd.DataFrame({"node": [1, 1, 2, 2, 2], "power_dBm": [-60.0, -70.0, -80.0, -81.0, -90.0]})
QUERY = "SELECT node, count(*) AS heard, percentile(power_dBm, 0.5) AS median FROM {heard} GROUP BY node ORDER BY node"
ANSWER = pd.DataFrame({"node": [1, 2], "heard": [2, 3], "median": [-65.0, -81.0]})


@pytest.mark.parametrize("kind", ["frame", "arrow", "file", "folder"])
def test_a_query_gives_the_same_answer_over_any_kind_of_table(kind, tmp_path):
    table = pa.Table.from_pandas(HEARD)
    pq.write_table(table[:2], tmp_path / "a.parquet")
    pq.write_table(table[2:], tmp_path / "b.parquet")
    pq.write_table(table, tmp_path.with_suffix(".parquet"))
    heard = {"frame": HEARD, "arrow": table, "file": str(tmp_path.with_suffix(".parquet")), "folder": tmp_path}[kind]
    pd.testing.assert_frame_equal(run_query(QUERY, heard=heard), ANSWER)


@pytest.mark.parametrize(("heard", "sentence"), [
    (7, "heard is a int; it must be a DataFrame, an Arrow table or a path"),
    ("nowhere", "nowhere does not exist"),
])  # fmt: skip
def test_a_value_that_is_not_a_table_is_refused_in_a_sentence(heard, sentence):
    with pytest.raises(DataError, match=sentence):
        run_query(QUERY, heard=heard)


def test_a_folder_is_read_without_files_and_folders_that_begin_with_an_underscore(tmp_path):
    (tmp_path / "_more").mkdir()
    for name in ("a.parquet", "_draft.parquet", "_more/b.parquet"):
        pq.write_table(pa.Table.from_pandas(HEARD), tmp_path / name)
    assert run_query("SELECT count(*) AS rows FROM {heard}", heard=tmp_path)["rows"].tolist() == [len(HEARD)]
    assert run_query("SELECT count(*) AS rows FROM {heard}", heard=tmp_path / "_more")["rows"].tolist() == [len(HEARD)]
