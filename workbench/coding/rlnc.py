"""Random linear network coding: encoder, recoder and progressive decoder of a generation.

Theory of operation
    A *generation* is m chunks x_1 ... x_m of the same length. A *coded packet* carries an *encoding vector* of m
    coefficients and an *information vector*, the linear combination of the chunks with them, symbol by symbol. Who
    holds chunks draws coefficients and encodes (`Encoder`); who holds coded packets combines those, without having
    decoded anything (`Recoder`); who holds m packets with linearly independent encoding vectors has the chunks
    (`Decoder`). A packet is *innovative* if its encoding vector is no linear combination of those at hand: it adds to
    the rank.

    The decoder eliminates as packets come (Gauss and Jordan). After each packet its rows are in reduced row echelon
    form: the first coefficient of a row that is not zero, its *pivot*, is 1, and all other rows have 0 there. So a row
    whose other coefficients are 0 is a chunk, often before all are there, and a complete matrix is the identity.

    On a host, larger generations are computed by `workbench.coding.bulk`, which is loaded when it is first needed and
    gives the same results.

Cost
    An added packet takes a row operation for each row at hand to reduce it, and another for each row to clear its pivot
    there. A decoder keeps at most m rows of m + n symbols.

Limits
    A wrong coefficient or byte spoils what is decoded and cannot be told here: frames carry a checksum. Packets of one
    generation belong together by the caller's word.

Reference
    B. Adamson et al.: Taxonomy of Coding Techniques for Efficient Network Communications, RFC 8406, 2018 (terms).
    T. Ho et al.: A Random Linear Network Coding Approach to Multicast, IEEE Trans. Inf. Theory 52(10), 2006.

This file runs on a mote too (MicroPython's subset of Python).
"""

from collections import namedtuple

from workbench import draws
from workbench.coding.fields import field as field_of
from workbench.errors import DecodeError, EncodeError, ParameterError

# Bytes of a decoder's matrix from which the host's kernels are worth loading; a coefficient counts as one in any field.
BULK_FROM_BYTES = 1024

CodedPacket = namedtuple("CodedPacket", ("encoding_vector", "information_vector"))


def chunk_B(length_B, generation_size, field):
    """Bytes of each chunk of data of so many bytes: as few as hold it and are whole symbols of a `fields.Field`."""
    symbol_B = (field.data_bits + 7) // 8
    return -(-length_B // (generation_size * symbol_B)) * symbol_B


def split(data, generation_size, field=256):
    """Data as ``generation_size`` chunks of the same length, whole symbols of the field, zeros at the end of the last.

    The length of the data is for the caller to keep: `join` takes it.
    """
    _check_generation_size(generation_size)
    size_B = chunk_B(len(data), generation_size, field_of(field))
    padded = bytes(data) + bytes(generation_size * size_B - len(data))
    return [padded[index * size_B : (index + 1) * size_B] for index in range(generation_size)]


def join(chunks, length_B):
    """The data (bytearray) that `split` made chunks of; DecodeError if they are of no data of that length.

    The chunks may be made one by one, as a generator does: all of them beside the whole take twice the memory.
    """
    joined = bytearray(max(length_B, 0))
    size_B = 0
    is_padded = True
    for chunk in chunks:
        taken = max(0, min(len(chunk), length_B - size_B))
        joined[size_B : size_B + taken] = chunk[:taken]
        is_padded = is_padded and not any(chunk[taken:])
        size_B += len(chunk)
    if not 0 <= length_B <= size_B:
        raise DecodeError("%d bytes of chunks hold no data of %r bytes" % (size_B, length_B))
    if not is_padded:
        raise DecodeError("chunks have more than zeros behind their %d bytes of data" % length_B)
    return joined


def draw_coefficients(field, count, random, density=None):
    """Draw ``count`` coefficients from a `draws.Stream`, again if all are zero.

    Without a density each is uniform over the field. With one, a coefficient differs from zero with that probability,
    and is then uniform over the rest of the field.
    """
    while True:
        if density is not None:
            drawn = [1 + random.below(field.order - 1) if random.uniform() < density else 0 for _ in range(count)]
        elif field.characteristic == 2:
            drawn = _draw_binary(field.degree, count, random)
        else:
            drawn = [random.below(field.order) for _ in range(count)]
        if any(drawn):
            return tuple(drawn)


def _draw_binary(degree, count, random):
    # A draw has 64 bits, which is several symbols.
    drawn = []
    for _ in range(0, count * degree, 64):
        bits = random.bits()
        if degree == 8:
            drawn += bits.to_bytes(8, "little")
        else:
            drawn += [bits >> shift & ((1 << degree) - 1) for shift in range(0, 64, degree)]
    return drawn[:count]


class Encoder:
    """Makes coded packets of the chunks of one generation.

    ``chunks`` are bytes, or sequences of symbols, of the same length; ``field`` is an order or a `fields.Field`.
    ``random`` is the `draws.Stream` of this encoder: those who send to the same neighbors need streams of their own,
    for encoders without one make the same packets. ``systematic``: first the chunks themselves, in order. ``density``:
    see `draw_coefficients`. ``bulk``: compute with `workbench.coding.bulk` or not; without it, the size decides.
    """

    def __init__(self, chunks, field=256, random=None, systematic=False, density=None, bulk=None):
        self.field = field_of(field)
        self.generation_size = len(chunks)
        _check_generation_size(self.generation_size)
        _check_density(density)
        rows = [self.field.from_data(c) if _is_bytes(c) else self.field.pack(c) for c in chunks]
        sizes_B = sorted({len(row) for row in rows})
        if len(sizes_B) > 1:
            raise EncodeError(
                "chunks of %d and of %d bytes: all of a generation have one length" % (sizes_B[0], sizes_B[-1])
            )
        self.random = _stream(random)
        self.density = density
        self._rows = _kind("Rows", bulk, self.generation_size, sizes_B[0], Rows)(self.field, rows)
        self._plain_left = self.generation_size if systematic else 0

    def encode(self):
        """The next CodedPacket."""
        if self._plain_left:
            index = self.generation_size - self._plain_left
            self._plain_left -= 1
            return self.combine([1 if i == index else 0 for i in range(self.generation_size)])
        return self.combine(draw_coefficients(self.field, self.generation_size, self.random, self.density))

    def combine(self, coefficients):
        """The CodedPacket with these coefficients, one for each chunk."""
        if len(coefficients) != self.generation_size:
            raise EncodeError(
                "%d coefficients for a generation of %d chunks: there is one for each"
                % (len(coefficients), self.generation_size)
            )
        coefficients = self.field.unpack(self.field.pack(coefficients), self.generation_size)
        return CodedPacket(tuple(coefficients), self._rows.combine(coefficients))


class Decoder:
    """Takes the coded packets of one generation, in any order, until it has the chunks.

    ``generation_size`` is m; ``field`` is an order or a `fields.Field`; ``bulk`` as for `Encoder`. ``arrivals`` are the
    pivots of the innovative packets in the order in which they came.
    """

    def __init__(self, generation_size, field=256, bulk=None):
        _check_generation_size(generation_size)
        self.generation_size = generation_size
        self.field = field_of(field)
        self.arrivals = []
        self._bulk = bulk
        self._information_B = None
        self._matrix = None

    @property
    def rank(self):
        """Innovative packets so far."""
        return len(self.arrivals)

    @property
    def is_complete(self):
        """Whether there are as many innovative packets as chunks."""
        return len(self.arrivals) == self.generation_size

    def add(self, encoding_vector, information_vector):
        """Take a coded packet; says whether it was innovative. What is not is dropped.

        The encoding vector is a sequence of m symbols. The information vector is a row of symbols as bytes, or a list,
        tuple or array of symbols; all of a generation have one length. DecodeError if either is not.
        """
        vector = self._vector(encoding_vector)
        information = self._information(information_vector)
        if self._matrix is None:
            kind = _kind("Elimination", self._bulk, self.generation_size, len(information), Elimination)
            self._matrix = kind(self.field, self.generation_size, len(information))
            self._information_B = len(information)
        if self.is_complete:
            return False
        pivot = self._matrix.insert(vector, information)
        if pivot is None:
            return False
        self.arrivals.append(pivot)
        return True

    def is_innovative(self, encoding_vector):
        """Whether a packet with this encoding vector would be innovative."""
        vector = self._vector(encoding_vector)
        if self._matrix is None:
            return any(vector)
        return not self.is_complete and self._matrix.is_innovative(vector)

    def _vector(self, encoding_vector):
        if len(encoding_vector) != self.generation_size:
            raise DecodeError(
                "an encoding vector of %d coefficients is of no generation of %d chunks"
                % (len(encoding_vector), self.generation_size)
            )
        return self.field.pack(encoding_vector, DecodeError)

    def _information(self, information_vector):
        if _is_bytes(information_vector):
            row = information_vector
            self.field.check_row(row)
        else:
            row = self.field.pack(information_vector, DecodeError)
        if self._information_B is not None and len(row) != self._information_B:
            raise DecodeError(
                "an information vector of %d bytes is none of this generation, which has %d"
                % (len(row), self._information_B)
            )
        return row

    # The matrix, for whoever draws it

    @property
    def pivots(self):
        """The pivot of each row, in the order of the rows."""
        return tuple(sorted(self.arrivals))

    @property
    def rows(self):
        """The rows as CodedPackets in the order of their pivots: reduced row echelon form."""
        return [self.row(pivot) for pivot in self.pivots]

    def row(self, pivot):
        """The row with that pivot, as a CodedPacket; DecodeError if there is none."""
        return CodedPacket(self.vector(pivot), bytes(self._matrix.informations([pivot])[0]))

    def vector(self, pivot):
        """The coefficients of the row with that pivot; DecodeError if there is none."""
        if pivot not in self.arrivals:
            raise DecodeError("no row has its pivot at %r: they are at %r" % (pivot, self.pivots))
        return tuple(self.field.unpack(self._matrix.vector(pivot), self.generation_size))

    @property
    def decoded(self):
        """The numbers of the chunks that are decoded already."""
        return tuple([pivot for pivot in self.pivots if sum([1 for one in self.vector(pivot) if one]) == 1])

    # What comes out

    def chunk(self, index):
        """A chunk that is decoded already; DecodeError if it is not."""
        if index not in self.decoded:
            raise DecodeError("chunk %r is not decoded yet: %r are" % (index, self.decoded))
        return self.field.to_data(self._matrix.informations([index])[0])

    def decode(self):
        """All chunks, as a list of bytes; DecodeError before there are as many innovative packets as chunks."""
        if not self.is_complete:
            raise DecodeError(
                "%d of %d innovative packets do not make a generation" % (self.rank, self.generation_size)
            )
        return [self.field.to_data(row) for row in self._matrix.informations(self.pivots)]

    def combine(self, coefficients):
        """The CodedPacket that combines the rows, in the order of `pivots`, with these coefficients."""
        if not self.arrivals:
            raise EncodeError("a decoder of rank 0 has nothing to combine: it needs an innovative packet first")
        if len(coefficients) != self.rank:
            raise EncodeError("%d coefficients for %d rows: there is one for each" % (len(coefficients), self.rank))
        coefficients = self.field.unpack(self.field.pack(coefficients), self.rank)
        vector, information = self._matrix.combine(self.pivots, coefficients)
        return CodedPacket(tuple(self.field.unpack(vector, self.generation_size)), bytes(information))


class Recoder:
    """Makes coded packets of those that a decoder has, complete or not.

    ``random`` and ``density`` are as for `Encoder`. The coefficients are drawn for the decoder's rows, which span the
    same space as the packets that came.
    """

    def __init__(self, decoder, random=None, density=None):
        _check_density(density)
        self.decoder = decoder
        self.random = _stream(random)
        self.density = density

    def recode(self):
        """The next CodedPacket; EncodeError as long as the decoder has nothing."""
        rank = self.decoder.rank
        return self.decoder.combine(
            draw_coefficients(self.decoder.field, rank, self.random, self.density) if rank else ()
        )


class Rows:
    """Rows of one length that are combined again and again; the host's counterpart is in `workbench.coding.bulk`."""

    def __init__(self, field, rows):
        self.field = field
        self.rows = rows

    def combine(self, coefficients):
        """The sum of coefficient times row, as bytes."""
        total = bytearray(len(self.rows[0]))
        for index in range(len(self.rows)):
            if coefficients[index]:
                self.field.axpy(total, coefficients[index], self.rows[index])
        return bytes(total)


class Elimination:
    """A matrix in reduced row echelon form that grows row by row; for the host there is one in `workbench.coding.bulk`.

    A row is an encoding vector and behind it an information vector, both packed; ``rows`` has it at its pivot.
    """

    def __init__(self, field, generation_size, information_B):
        self.field = field
        self.generation_size = generation_size
        self.vector_B = field.size_B(generation_size)
        self.information_B = information_B
        self.rows = [None] * generation_size

    def insert(self, vector, information):
        """Take a row unless it depends on those there are; gives its pivot, or None."""
        new = vector + information
        self._reduce(new)
        pivot = self._pivot(new)
        if pivot is None:
            return None
        field = self.field
        field.scale(new, field.inverse(field.get(new, pivot)))
        for row in self.rows:
            if row is not None and field.get(row, pivot):
                field.axpy(row, field.negative(field.get(row, pivot)), new)
        self.rows[pivot] = new
        return pivot

    def is_innovative(self, vector):
        """Whether an encoding vector is no linear combination of the rows'."""
        reduced = bytearray(vector)
        self._reduce(reduced)
        return any(reduced)

    def _reduce(self, new):
        for pivot in range(self.generation_size):
            row, coefficient = self.rows[pivot], self.field.get(new, pivot)
            if row is not None and coefficient:
                self.field.axpy(new, self.field.negative(coefficient), row[: len(new)])

    def _pivot(self, row):
        for index in range(self.generation_size):
            if self.field.get(row, index):
                return index
        return None

    def vector(self, pivot):
        """The packed encoding vector of the row with that pivot."""
        return self.rows[pivot][: self.vector_B]

    def informations(self, pivots):
        """The information vectors of the rows with those pivots."""
        return [self.rows[pivot][self.vector_B :] for pivot in pivots]

    def combine(self, pivots, coefficients):
        """(packed encoding vector, information vector) of the sum of coefficient times row."""
        row = Rows(self.field, [self.rows[pivot] for pivot in pivots]).combine(coefficients)
        return row[: self.vector_B], row[self.vector_B :]


def _is_bytes(value):
    return isinstance(value, (bytes, bytearray, memoryview))


def _check_generation_size(generation_size):
    if not (isinstance(generation_size, int) and generation_size >= 1):
        raise ParameterError("generation size %r: it is a whole number of chunks from 1 on" % (generation_size,))


def _check_density(density):
    if density is not None and not 0 < density <= 1:
        raise ParameterError("density %r: it is a share of the coefficients above 0 and up to 1" % (density,))


def _stream(random):
    return draws.Stream(draws.make_key(0, draws.PROTOCOL)) if random is None else random


def _kind(name, bulk, generation_size, row_B, plain):
    """The class of that name: the host's if it is asked for, or if there is much to compute and the host has it."""
    pays = generation_size * (generation_size + row_B) >= BULK_FROM_BYTES
    if not (pays if bulk is None else bulk):
        return plain
    try:
        bulk_fields = __import__("workbench.coding.bulk", None, None, ["__name__"])
    except ImportError:
        if bulk:
            raise
        return plain
    return getattr(bulk_fields, name)
