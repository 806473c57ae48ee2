"""Key-space split mapping: from the values in a query or an event to its part of the key space.

Theory of operation
    Each of the d *dimensions* is an attribute's key with a range of values. It gets l of the key space's k bits: k // d
    bits, and one more in the first k % d dimensions. A value is hashed to its cell h(v) =
    floor((v - lo) / (hi - lo) * 2^l), clamped to 0 ... 2^l - 1. The cells of all dimensions, joined, are a string of
    k bits. So a query is a *box*, (lowest, highest) cell of each dimension. SK(Q) is the set of all strings whose cells
    lie in the box. An event's box has a single cell of each dimension, so EK(e) is one string. As h is monotone, an
    event that matches a query lies in the query's box.

    The attribute model also allows queries whose constraints of a dimension are not one closed interval, and events
    with no value or several values of a dimension. They are mapped so that the box of an event overlaps the box of each
    query that it matches. A box that becomes too wide does no harm: the rendezvous node, and later the sink, match
    exactly.

    constraints GT and LT                       the same cells as GE and LE
    constraint EQ                               as GE and LE together
    constraints NE and EQ_ANY                   all cells of the dimension
    no constraint of a dimension in a query     all cells of the dimension
    no value of a dimension in an event         cell 0: the event can match only queries that do not constrain it
    several values of a dimension in an event   the cells from the smallest value to the largest
    constraints that no single value meets,     the cells between the two bounds, 20 to 30: an event with the values
    such as "> 30 and < 20"                     10 and 40 meets both constraints

Cost
    A box may hold many strings; only `Mapping.cells` enumerates them. `first_cell` takes d steps.

Reference
    R. Baldoni et al.: Content-based publish-subscribe over structured overlay networks, ICDCS 2005 (mapping 3).

This file runs on a mote too (MicroPython's subset of Python).
"""

from collections import namedtuple

from workbench.attributes.model import EQ, GE, GT, IS, LE, LT

# key: the number of the attribute's key; low, high: the range of values, as integers in the scale of the frames; bits:
# the number of the key space's bits that belong to the dimension.
Dimension = namedtuple("Dimension", ("key", "low", "high", "bits"))


def split_bits(key_bits, dimensions):
    """Return the number of bits of each dimension's cells, such as [3, 3, 2] for 8 ``key_bits`` and 3 dimensions.

    ``dimensions``: the number of dimensions, which share the bits of a string.
    """
    bits_each, remainder = divmod(key_bits, dimensions)
    return [bits_each + 1 if dimension_index < remainder else bits_each for dimension_index in range(dimensions)]


class Mapping:
    """The mapping from values of the dimensions to strings of ``key_bits`` bits. Methods return strings as integers.

    A box is a tuple with the (lowest, highest) cell of each dimension. It contains the strings whose cells lie in these
    ranges. ``dimensions``: a list of (key number, lowest value, highest value).
    """

    def __init__(self, dimensions, key_bits):
        bits_per_dimension = split_bits(key_bits, len(dimensions))
        self.key_bits = key_bits
        self.dimensions = [
            Dimension(key, low, high, bit_count) for (key, low, high), bit_count in zip(dimensions, bits_per_dimension)
        ]

    def event_box(self, attributes):
        """Return the box of an event: a tuple with (lowest, highest) cell of each dimension.

        Both are the same cell, unless the event has several values of the dimension. Without a value, both are cell 0.
        """
        box = []
        for dimension in self.dimensions:
            dimension_values = [
                value
                for attribute_key, operator, value in attributes
                if attribute_key == dimension.key and operator == IS
            ]
            lowest_value, highest_value = (
                (min(dimension_values), max(dimension_values)) if dimension_values else (dimension.low, dimension.low)
            )
            box.append((cell(dimension, lowest_value), cell(dimension, highest_value)))
        return tuple(box)

    def query_box(self, attributes):
        """Return the box of a query: a tuple with (lowest, highest) cell of each dimension.

        The box of each event that matches the query overlaps this box. Without constraints of a dimension, the box has
        all of its cells.
        """
        box = []
        for dimension in self.dimensions:
            lowest_value, highest_value = dimension.low, dimension.high
            has_lower_bound = has_upper_bound = False
            for attribute_key, operator, bound in attributes:
                if attribute_key != dimension.key:
                    continue
                if operator in (EQ, GE, GT):
                    lowest_value = max(lowest_value, bound) if has_lower_bound else bound
                    has_lower_bound = True
                if operator in (EQ, LE, LT):
                    highest_value = min(highest_value, bound) if has_upper_bound else bound
                    has_upper_bound = True
            if has_lower_bound and has_upper_bound and lowest_value > highest_value:
                lowest_value, highest_value = highest_value, lowest_value
            lowest_cell = cell(dimension, lowest_value) if has_lower_bound else 0
            box.append((lowest_cell, cell(dimension, highest_value) if has_upper_bound else (1 << dimension.bits) - 1))
        return tuple(box)

    def first_cell(self, box, at_least=0):
        """Return the lowest bit string in a box that is not below ``at_least``, or None; strings are integers.

        ``box``: (lowest, highest) cell of each dimension. Returns None if all strings of the box are below
        ``at_least``.
        """
        string_cells = self._split_string(at_least)
        for index, (lowest_cell, highest_cell) in enumerate(box):
            cell_number = string_cells[index]
            if lowest_cell <= cell_number <= highest_cell:
                continue
            earlier_cells = string_cells[:index]
            if cell_number < lowest_cell:
                return self._join_parts(earlier_cells + [lowest for lowest, _ in box[index:]])
            # This part is too high: increment the last earlier part that can grow, and reset all parts after it.
            while earlier_cells:
                last_cell_number = earlier_cells.pop()
                if last_cell_number < box[len(earlier_cells)][1]:
                    return self._join_parts(
                        earlier_cells + [last_cell_number + 1] + [lowest for lowest, _ in box[len(earlier_cells) + 1 :]]
                    )
            return None
        return at_least

    def last_cell(self, box):
        """Return the highest bit string in a box (range of cells in each dimension), as an integer."""
        return self._join_parts([high for _, high in box])

    def clip(self, box, region):
        """Return a region with shorter intervals, each of which begins with a string of the box.

        A region is a tuple of intervals (lowest string, highest string). The lowest string of each interval is raised
        to the first string of the box in that interval. An interval without such a string is removed. The highest
        string does not change, so later strings of an interval may still be outside of the box.
        """
        clipped_intervals = []
        for interval_start, interval_end in region:
            first_string = self.first_cell(box, interval_start)
            if first_string is not None and first_string <= interval_end:
                clipped_intervals.append((first_string, interval_end))
        return tuple(clipped_intervals)

    def hull(self, box):
        """Return ((first, last),), the region from the first to the last bit string of a box (integers)."""
        return ((self.first_cell(box), self.last_cell(box)),)

    def cells(self, box):
        """Return all bit strings in a box (range of cells in each dimension) as ascending integers."""
        strings = []
        next_string = self.first_cell(box)
        while next_string is not None and next_string < 1 << self.key_bits:
            strings.append(next_string)
            next_string = self.first_cell(box, next_string + 1) if next_string + 1 < 1 << self.key_bits else None
        return strings

    def _split_string(self, number):
        """Split a bit string (an integer) into a cell number for each dimension; return these as a list."""
        cell_numbers = []
        shift = self.key_bits
        for dimension in self.dimensions:
            shift -= dimension.bits
            cell_numbers.append(number >> shift & ((1 << dimension.bits) - 1))
        return cell_numbers

    def _join_parts(self, parts):
        """Return the bit string, as an integer, that consists of the cells in ``parts``, one of each dimension."""
        string = 0
        for dimension, cell_number in zip(self.dimensions, parts):
            string = string << dimension.bits | cell_number
        return string


def cell(dimension, value):
    """Return h(value), the number of a value's cell, from 0 to 2^l - 1; ``dimension``: a `Dimension` of l bits."""
    cell_number = ((value - dimension.low) << dimension.bits) // (dimension.high - dimension.low)
    return min(max(cell_number, 0), (1 << dimension.bits) - 1)
