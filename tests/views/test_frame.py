"""A dissected frame as HTML."""

import re

import workbench as wb
from workbench.protocols.dissection import Dissection, Field
from workbench.protocols.flooding import wire
from workbench.views.dissection import MOST_BYTES, page


def test_page_has_all_bytes_and_all_fields():
    frame = wire.encode(wire.Flood(7, 300, 9, wb.parse("TEMP IS 26.5, INSTANCE IS 3")))
    dissection = wb.dissect(wb.Flooding(), frame)
    text = dissection._repr_html_()
    digits = re.findall(r'<span style="[^"]*" title="[^"]*">([0-9a-f ]+)</span>', text)
    assert bytes.fromhex(" ".join(digits)) == frame
    assert text.count("<tr><td>") == len(list(dissection.tree()))
    for cell in ("<td>5–8</td>", ">sequence</span></td><td>300</td>", "<td>TEMP IS 26.5, INSTANCE IS 3</td>"):
        assert cell in text


def test_bytes_of_a_field_have_one_color_in_hex_and_table():
    text = wb.dissect(wb.Flooding(), wire.encode(wire.Flood(7, 300, 9, wb.parse("TEMP IS 26.5"))))._repr_html_()
    in_hex = dict(re.findall(r'<span style="background:(#\w+);[^"]*" title="(\w+)">', text)[:4])
    in_table = dict(re.findall(r'background:(#\w+);margin-left:0px">(\w+)<', text)[:4])
    assert in_hex == in_table and list(in_hex.values()) == ["type", "origin", "sequence", "ttl"]


def test_content_of_a_frame_is_escaped():
    text = page(Dissection(b"ab", (Field("<i>", 0, 2, "<script>&"),)))
    assert "<i>" not in text and "<script>" not in text and "&lt;script&gt;&amp;" in text


def test_bytes_beyond_a_limit_are_counted_and_long_texts_are_cut():
    data = bytes(MOST_BYTES + 5)
    text = page(Dissection(data, (Field("a", 0, 100, "x" * 1000), Field("b", 100, len(data), ""))))
    assert "and 5 bytes more" in text and "x" * 301 not in text
    assert page(Dissection(b"", ())).count("0 bytes") == 1
