"""Tables in Markdown whose columns are also aligned in a terminal."""


def table(header: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table. Columns of numbers are right-aligned, and may contain "-" for a missing number."""
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
    """Format a ratio with three significant digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value >= 0.1 else f"{value:.3f}"
