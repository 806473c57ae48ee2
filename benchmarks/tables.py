"""Tables in Markdown whose columns line up in a terminal too."""


def table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; columns of numbers are on the right. A number that there is not is "-"."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    right = [all(_is_number(row[i]) for row in rows) for i in range(len(header))]

    def line(cells: list[str]) -> str:
        padded = [
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(cells, widths, right, strict=True)
        ]
        return f"| {' | '.join(padded)} |"

    rules = ("-" * (width + 1) + (":" if number else "-") for width, number in zip(widths, right, strict=True))
    return "\n".join([line(header), f"|{'|'.join(rules)}|", *map(line, rows)])


def _is_number(cell: str) -> bool:
    return cell == "-" or cell.replace(",", "").replace(".", "").replace("%", "").strip().isdigit()


def ratio(value: float) -> str:
    """A ratio with three digits that mean something."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value >= 0.1 else f"{value:.3f}"
