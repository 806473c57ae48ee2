"""PDF files of drawings: vector graphics with embedded fonts, equal bytes for equal drawings."""

import hashlib
import os
import re
import subprocess
import sys
import zlib

import numpy as np
import pytest

import workbench as wb
from tests.repository import REPOSITORY
from workbench.views import palette
from workbench.views.drawing import Drawing


def sample():
    """Return a drawing with items of every kind."""
    page = Drawing(200, 100, title="A title (ö)")
    page.segment(10, 20, 190, 20, colour="#CC0000", width=4, dash=(8, 4))
    page.segments(np.array([[0, 0, 100, 100], [0, 100, 100, 0]], float), colour="#00CC00")
    page.segments(np.array([[0, 0, 50, 50], [0, 50, 50, 0]], float), opacity=0.5)
    page.circle(60, 40, 12, fill="#0000CC", stroke="#CC00CC", opacity=0.25, dash=(3, 2))
    page.markers("circle", np.array([[20, 80], [40, 80]], float), 5, "#00CCCC", "#000000")
    page.markers("triangle", np.array([[60, 80], [80, 80]], float), 5, "#CCCC00")
    page.arrow(100, 80, 150, 80, colour="#666666")
    page.polyline([(10, 60), (20, 70), (30, 60)], width=2, opacity=0.75)
    page.polyline([(10, 60)])
    page.text(10, 15, "start 5 µs → $x$", bold=True)
    page.text(190, 15, "end", anchor="end", halo="#FFFFFF")
    page.text(180, 90, "turned", anchor="middle", turn=90)
    page.text(180, 90, "\t")
    return page


def streams(pdf):
    """Return the decompressed streams of a PDF file."""
    compressed = re.findall(rb"/FlateDecode.*?>>\s*stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL)
    return [zlib.decompress(stream) for stream in compressed]


def content(drawing, **options):
    """Return the operators of the page of a drawing, without line breaks."""
    return " ".join(streams(drawing.to_pdf(**options))[0].decode("latin-1").split())


def test_the_page_has_the_size_of_the_drawing_and_no_pixels_and_no_date():
    pdf = sample().to_pdf()
    assert pdf.startswith(b"%PDF-1.") and b"/MediaBox [ 0 0 150 75 ]" in pdf
    assert b"/Image" not in pdf.replace(b"/ImageC /ImageI", b"").replace(b"/ImageB", b"")
    assert b"Date" not in pdf and b"/Title" in pdf


def test_texts_stay_texts_in_embedded_fonts():
    pdf = sample().to_pdf()
    assert set(re.findall(rb"/BaseFont /[A-Z]{6}\+([\w-]+)", pdf)) == {b"Aileron-Regular", b"DejaVuSans"}
    assert b"/FontFile2" in pdf and b"/Type3" not in pdf
    # The tables by which viewers convert glyphs to characters, in hexadecimal.
    tables = b"".join(stream for stream in streams(pdf) if b"begincmap" in stream).lower()
    assert all(f"<{ord(character):04x}>".encode() in tables for character in "µ→$")
    assert content(sample()).count("BT") == len(["start 5 ", "µ", "s ", "→", " $x$", "end", "turned"])


def test_colours_widths_dashes_and_positions_are_those_of_the_drawing():
    page = Drawing(200, 100)
    page.segment(10, 20, 190, 20, colour="#CC0000", width=4, dash=(8, 4))
    operators = content(page)
    assert "7.5 60 m 142.5 60 l S" in operators and "0.8 0 0 RG" in operators
    assert "3 w" in operators and "[ 6 3 ] 0 d" in operators and "1 J" in operators
    page = Drawing(200, 100)
    page.polygon([(0, 0), (20, 0), (0, 20)], fill="#00CC00")
    assert "0 0.8 0 rg" in content(page) and "0 75 m 15 75 l 0 60 l" in content(page)


def test_translucent_lines_are_drawn_one_by_one():
    ends = np.array([[0, 0, 50, 50], [0, 50, 50, 0]], float)
    strokes = []
    for opacity in (1, 0.5):
        page = Drawing(50, 50)
        page.segments(ends, opacity=opacity)
        strokes.append(re.findall(r"\bS\b", content(page)))
        assert f"/CA {opacity:g} ".encode() in page.to_pdf()
    assert list(map(len, strokes)) == [1, 2]


def test_turned_and_anchored_texts_have_their_places():
    page = Drawing(100, 100)
    page.text(80, 40, "turned", turn=90)
    assert re.search(r"0 1 -1 0 60 45 cm", content(page))
    page = Drawing(100, 100)
    page.text(80, 40, "end", anchor="end")
    (x,) = re.findall(r"1 0 -?0 1 (\S+) 45 cm", content(page))
    assert 60 - float(x) == pytest.approx(0.75 * wb.views.drawing.text_width("end"), abs=0.3)


def test_a_dark_file_has_the_dark_background():
    red, green, blue = (value / 255 for value in palette.rgb(palette.DARK_BACKGROUND))
    colours = re.findall(r"(\S+) (\S+) (\S+) rg", content(Drawing(10, 10), dark=True))
    assert tuple(map(float, colours[0])) == pytest.approx((red, green, blue), abs=1e-3)


PROCESS = """
import hashlib
import sys
from tests.views.test_pdf import sample
sample().to_svg()
assert "matplotlib" not in sys.modules
print(hashlib.sha256(sample().to_pdf()).hexdigest())
"""


def test_another_process_writes_the_same_bytes_and_imports_matplotlib_for_pdf_only():
    environment = os.environ | {"PYTHONHASHSEED": "7", "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", PROCESS]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=True)
    assert process.stdout.strip() == hashlib.sha256(sample().to_pdf()).hexdigest()


def test_settings_of_matplotlib_neither_change_the_file_nor_are_changed():
    import matplotlib

    before = sample().to_pdf()
    with matplotlib.rc_context({"pdf.compression": 0, "pdf.fonttype": 3, "text.usetex": True}):
        assert sample().to_pdf() == before
        assert matplotlib.rcParams["pdf.compression"] == 0 and matplotlib.rcParams["text.usetex"]


def test_without_matplotlib_a_sentence_names_the_remedy(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "workbench.views.pdf", raising=False)
    monkeypatch.delattr(wb.views, "pdf", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(wb.WorkbenchError, match=r"a PDF needs matplotlib .*: pip install 'matplotlib>=3\.9,<4'"):
        Drawing(10, 10).save(tmp_path / "a.pdf")
    assert not (tmp_path / "a.pdf").exists()
