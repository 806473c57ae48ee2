"""Random linear network coding: encoder, recoder and progressive decoder of a generation.

Theory of operation
    A *generation* is m chunks x_1 ... x_m of the same length. A *coded packet* carries an *encoding vector* of m
    coefficients and an *information vector*, the linear combination of the chunks with these coefficients, symbol by
    symbol. A node with the chunks chooses random coefficients and encodes (`Encoder`). A node with coded packets
    combines them without decoding (`Recoder`). A node with m packets whose encoding vectors are linearly independent
    can decode the chunks (`Decoder`). A packet is *innovative* if its encoding vector is linearly independent of those
    received before: it increases the rank.

    The decoder performs Gauss-Jordan elimination as packets arrive. After each packet its rows are in reduced row
    echelon form: the first nonzero coefficient of a row, its *pivot*, is 1, and all other rows have 0 in that column. A
    row whose other coefficients are 0 is a decoded chunk, often before the matrix is complete.

    On a host, `workbench.coding.bulk` computes larger generations. It loads at first use and gives the same results.

Cost
    An added packet takes one row operation per row to reduce it, and another per row to clear its pivot column. A
    decoder keeps at most m rows of m + n symbols, n being the symbols of an information vector.

Limits
    A wrong coefficient or byte spoils the decoded chunks, and the decoder cannot detect it. So frames need a checksum.
    The caller must not mix packets of different generations.

Reference
    B. Adamson et al.: Taxonomy of Coding Techniques for Efficient Network Communications, RFC 8406, 2018 (terms).
    T. Ho et al.: A Random Linear Network Coding Approach to Multicast, IEEE Trans. Inf. Theory 52(10), 2006.

This file runs on a mote too (MicroPython's subset of Python).
"""

from collections import namedtuple

from workbench import draws
from workbench.coding.fields import field as field_of
from workbench.errors import DecodeError, EncodeError, ParameterError

# From this size of a decoder's matrix on, the host loads its kernels; a coefficient counts as one byte in any field.
BULK_FROM_BYTES = 1024

CodedPacket = namedtuple("CodedPacket", ("encoding_vector", "information_vector"))


def chunk_B(length_B, generation_size, field):
    """Return the size of a chunk in bytes, if `split` cuts ``length_B`` bytes into ``generation_size`` chunks.

    The result is the smallest size that holds the data and is a whole number of symbols of ``field`` (a
    `fields.Field`).
    """
    symbol_B = (field.data_bits + 7) // 8
    return -(-length_B // (generation_size * symbol_B)) * symbol_B


def split(data, generation_size, field=256):
    """Split data into ``generation_size`` chunks of equal length, padded with zeros at the end.

    Each chunk is a whole number of symbols of the field. The caller must keep the length of the data, which `join`
    needs.
    """
    _check_generation_size(generation_size)
    chunk_size_B = chunk_B(len(data), generation_size, field_of(field))
    padded_data = bytes(data) + bytes(generation_size * chunk_size_B - len(data))
    return [padded_data[index * chunk_size_B : (index + 1) * chunk_size_B] for index in range(generation_size)]


def join(chunks, length_B):
    """Return the data (bytearray) that `split` cut into these chunks.

    ``length_B`` is the length of the data. ``chunks`` may be a generator, so that not all chunks are in memory at once.
    Raises DecodeError if the chunks have fewer than ``length_B`` bytes, or if a byte after the data is not zero.
    """
    joined_data = bytearray(max(length_B, 0))
    chunks_B = 0
    is_zero_padded = True
    for chunk in chunks:
        data_B = max(0, min(len(chunk), length_B - chunks_B))
        joined_data[chunks_B : chunks_B + data_B] = chunk[:data_B]
        is_zero_padded = is_zero_padded and not any(chunk[data_B:])
        chunks_B += len(chunk)
    if not 0 <= length_B <= chunks_B:
        raise DecodeError("length_B is %r; it must be from 0 to the %d bytes of the chunks" % (length_B, chunks_B))
    if not is_zero_padded:
        raise DecodeError(
            "the chunks have nonzero bytes after their %d bytes of data; the padding must be zero" % length_B
        )
    return joined_data


def draw_coefficients(field, count, random, density=None):
    """Return a tuple of ``count`` random coefficients, not all zero, from the `draws.Stream` ``random``.

    Without ``density``, each coefficient is uniform over the field. With ``density``, each is nonzero with that
    probability, and the nonzero ones are uniform over the nonzero symbols.
    """
    while True:
        if density is not None:
            coefficients = [
                1 + random.below(field.order - 1) if random.uniform() < density else 0 for _ in range(count)
            ]
        elif field.characteristic == 2:
            coefficients = _draw_binary(field.degree, count, random)
        else:
            coefficients = [random.below(field.order) for _ in range(count)]
        if any(coefficients):
            return tuple(coefficients)


def _draw_binary(degree, count, random):
    # One draw has 64 random bits, enough for several symbols.
    symbols = []
    for _ in range(0, count * degree, 64):
        random_bits = random.bits()
        if degree == 8:
            symbols += random_bits.to_bytes(8, "little")
        else:
            symbols += [random_bits >> shift & ((1 << degree) - 1) for shift in range(0, 64, degree)]
    return symbols[:count]


class Encoder:
    """An encoder of the chunks of one generation.

    ``chunks`` are bytes, or sequences of symbols, of the same length; ``field`` is an order or a `fields.Field`.
    ``random`` is a `draws.Stream`. Without it, all encoders use the same coefficients, so nodes that send to the same
    neighbors need different streams. ``systematic``: whether the first packets are the chunks themselves, in order.
    ``density``: probability that a coefficient is nonzero (None: coefficients are uniform). ``bulk``: whether to use
    `workbench.coding.bulk`; None uses it if the generation is large and the module is installed.
    """

    def __init__(self, chunks, field=256, random=None, systematic=False, density=None, bulk=None):
        self.field = field_of(field)
        self.generation_size = len(chunks)
        _check_generation_size(self.generation_size)
        _check_density(density)
        chunk_rows = [self.field.from_data(c) if _is_bytes(c) else self.field.pack(c) for c in chunks]
        sizes_B = sorted({len(chunk_row) for chunk_row in chunk_rows})
        if len(sizes_B) > 1:
            raise EncodeError(
                "chunks have %d and %d bytes; all chunks of a generation must have the same length"
                % (sizes_B[0], sizes_B[-1])
            )
        self.random = _get_stream(random)
        self.density = density
        self._rows = _choose_implementation("Rows", bulk, self.generation_size, sizes_B[0], Rows)(
            self.field, chunk_rows
        )
        self._systematic_left = self.generation_size if systematic else 0

    def encode(self):
        """Return the next CodedPacket: a random combination of all chunks.

        A systematic encoder first returns the chunks themselves, one in each call.
        """
        if self._systematic_left:
            chunk_index = self.generation_size - self._systematic_left
            self._systematic_left -= 1
            return self.combine([1 if i == chunk_index else 0 for i in range(self.generation_size)])
        return self.combine(draw_coefficients(self.field, self.generation_size, self.random, self.density))

    def combine(self, coefficients):
        """Return the CodedPacket that combines the chunks with these coefficients, one for each chunk.

        Raises EncodeError if the number of coefficients is wrong, or if a coefficient is not a symbol of the field.
        """
        if len(coefficients) != self.generation_size:
            raise EncodeError(
                "combine has %d coefficients; it needs one for each of the generation's %d chunks"
                % (len(coefficients), self.generation_size)
            )
        coefficients = self.field.unpack(self.field.pack(coefficients), self.generation_size)
        return CodedPacket(tuple(coefficients), self._rows.combine(coefficients))


class Decoder:
    """A decoder that collects coded packets of one generation, in any order, until it can decode the chunks.

    ``generation_size``: number of chunks. ``field``: an order or a `fields.Field`. ``bulk``: whether to use
    `workbench.coding.bulk`; None uses it for large generations if it is installed. ``arrivals`` lists, for each
    linearly independent packet in the order of arrival, its pivot: the index of the matrix row that it filled.
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
        """The rank of the decoding matrix: the number of linearly independent packets that the decoder has received."""
        return len(self.arrivals)

    @property
    def memory_B(self):
        """Memory of the decoder on a mote in bytes: 20, plus the packed vectors and 4 bytes for each row of its matrix.

        The multiplication tables are constants, and are not counted. With `workbench.coding.bulk`, rows are larger.
        """
        row_B = self.field.size_B(self.generation_size) + (self._information_B or 0)
        return 20 + self.rank * (4 + row_B)

    @property
    def is_complete(self):
        """True if the decoder has as many linearly independent packets as there are chunks."""
        return len(self.arrivals) == self.generation_size

    def add(self, encoding_vector, information_vector):
        """Add a coded packet, and return True; drop it and return False if it is not innovative.

        A packet is innovative if its encoding vector is linearly independent of those of the packets added before.

        The encoding vector is a sequence of symbols, one for each chunk. The information vector is a row of symbols as
        bytes, or a list, tuple or array of symbols. All information vectors of a generation have the same length.
        Raises DecodeError if a vector has a wrong length, or a value that is not a symbol.
        """
        vector = self._pack_vector(encoding_vector)
        information = self._pack_information(information_vector)
        if self._matrix is None:
            elimination_class = _choose_implementation(
                "Elimination", self._bulk, self.generation_size, len(information), Elimination
            )
            self._matrix = elimination_class(self.field, self.generation_size, len(information))
            self._information_B = len(information)
        if self.is_complete:
            return False
        pivot = self._matrix.insert(vector, information)
        if pivot is None:
            return False
        self.arrivals.append(pivot)
        return True

    def is_innovative(self, encoding_vector):
        """Return whether this encoding vector is linearly independent of those of the packets added before."""
        vector = self._pack_vector(encoding_vector)
        if self._matrix is None:
            return any(vector)
        return not self.is_complete and self._matrix.is_innovative(vector)

    def _pack_vector(self, encoding_vector):
        if len(encoding_vector) != self.generation_size:
            raise DecodeError(
                "an encoding vector has %d coefficients; the generation has %d chunks"
                % (len(encoding_vector), self.generation_size)
            )
        return self.field.pack(encoding_vector, DecodeError)

    def _pack_information(self, information_vector):
        if _is_bytes(information_vector):
            information_row = information_vector
            self.field.check_row(information_row)
        else:
            information_row = self.field.pack(information_vector, DecodeError)
        if self._information_B is not None and len(information_row) != self._information_B:
            raise DecodeError(
                "an information vector has %d bytes; those of this generation have %d"
                % (len(information_row), self._information_B)
            )
        return information_row

    # The matrix, for views

    @property
    def pivots(self):
        """The pivot (first nonzero column) of each row of the matrix, in ascending order."""
        return tuple(sorted(self.arrivals))

    @property
    def rows(self):
        """The rows of the decoding matrix, in reduced row echelon form, as CodedPackets in the order of `pivots`."""
        return [self.row(pivot) for pivot in self.pivots]

    def row(self, pivot):
        """Return the row whose first nonzero column is ``pivot``, as a CodedPacket.

        Raises DecodeError if the matrix has no such row.
        """
        return CodedPacket(self.vector(pivot), bytes(self._matrix.informations([pivot])[0]))

    def vector(self, pivot):
        """Return the encoding vector, as a tuple, of the row whose first nonzero column is ``pivot``.

        Raises DecodeError if the matrix has no such row.
        """
        if pivot not in self.arrivals:
            raise DecodeError(
                "pivot is %r; it must be one of the pivots of the decoder's rows, %r" % (pivot, self.pivots)
            )
        return tuple(self.field.unpack(self._matrix.vector(pivot), self.generation_size))

    @property
    def decoded(self):
        """The indices of the chunks that are decoded so far, as a tuple."""
        return tuple([pivot for pivot in self.pivots if sum([1 for symbol in self.vector(pivot) if symbol]) == 1])

    # The results

    def chunk(self, index):
        """Return the chunk with this index, as bytes. Raises DecodeError if it is not decoded yet."""
        if index not in self.decoded:
            raise DecodeError("chunk %r is not decoded yet; the decoded chunks are %r" % (index, self.decoded))
        return self.field.to_data(self._matrix.informations([index])[0])

    def decode(self):
        """Return all chunks as a list of bytes. Raises DecodeError if the decoder is not complete."""
        if not self.is_complete:
            raise DecodeError(
                "the decoder has only %d of %d innovative packets; add more packets" % (self.rank, self.generation_size)
            )
        return [self.field.to_data(row) for row in self._matrix.informations(self.pivots)]

    def combine(self, coefficients):
        """Return the CodedPacket that combines the matrix's rows with these coefficients, in the order of `pivots`.

        Raises EncodeError while the decoder has rank 0, if there is not one coefficient for each row, or if a
        coefficient is not a symbol of the field.
        """
        if not self.arrivals:
            raise EncodeError(
                "the decoder has rank 0; it can combine nothing before it has a coded packet: add one first"
            )
        if len(coefficients) != self.rank:
            raise EncodeError(
                "combine has %d coefficients; it needs one for each of the decoder's %d rows"
                % (len(coefficients), self.rank)
            )
        coefficients = self.field.unpack(self.field.pack(coefficients), self.rank)
        vector, information = self._matrix.combine(self.pivots, coefficients)
        return CodedPacket(tuple(self.field.unpack(vector, self.generation_size)), bytes(information))


class Recoder:
    """A recoder: it combines the packets of a decoder, complete or not, into new coded packets.

    ``random`` is a `draws.Stream` for the coefficients. ``density``: probability that a coefficient is nonzero (None:
    uniform). The coefficients multiply the rows of the decoder's matrix, which span the same space as the packets that
    arrived.
    """

    def __init__(self, decoder, random=None, density=None):
        _check_density(density)
        self.decoder = decoder
        self.random = _get_stream(random)
        self.density = density

    def recode(self):
        """Return a random combination of the decoder's rows as a CodedPacket.

        Raises EncodeError while the decoder has rank 0.
        """
        rank = self.decoder.rank
        return self.decoder.combine(
            draw_coefficients(self.decoder.field, rank, self.random, self.density) if rank else ()
        )


class Rows:
    """Rows of equal length, stored for repeated linear combinations; `workbench.coding.bulk` has a faster version."""

    def __init__(self, field, rows):
        self.field = field
        self.rows = rows

    def combine(self, coefficients):
        """Return the sum of the rows, each multiplied by its coefficient, as bytes."""
        combined_row = bytearray(len(self.rows[0]))
        for index in range(len(self.rows)):
            if coefficients[index]:
                self.field.axpy(combined_row, coefficients[index], self.rows[index])
        return bytes(combined_row)


class Elimination:
    """A matrix in reduced row echelon form that grows row by row; `workbench.coding.bulk` has a faster version.

    A row is an encoding vector followed by an information vector, both packed. ``rows[pivot]`` is the row whose first
    nonzero column is ``pivot``, or None.
    """

    def __init__(self, field, generation_size, information_B):
        self.field = field
        self.generation_size = generation_size
        self.vector_B = field.size_B(generation_size)
        self.information_B = information_B
        self.rows = [None] * generation_size

    def insert(self, vector, information):
        """Insert a packet as a row if its encoding vector is linearly independent; return the row's pivot, or None.

        ``vector``: the packed encoding vector, a bytearray; ``information``: the packed information vector.
        """
        new_row = vector + information
        self._reduce_row(new_row)
        pivot = self._find_pivot(new_row)
        if pivot is None:
            return None
        field = self.field
        field.scale(new_row, field.inverse(field.get(new_row, pivot)))
        for matrix_row in self.rows:
            if matrix_row is not None and field.get(matrix_row, pivot):
                field.axpy(matrix_row, field.negative(field.get(matrix_row, pivot)), new_row)
        self.rows[pivot] = new_row
        return pivot

    def is_innovative(self, vector):
        """Return whether an encoding vector is linearly independent of the matrix's rows."""
        reduced_vector = bytearray(vector)
        self._reduce_row(reduced_vector)
        return any(reduced_vector)

    def _reduce_row(self, new_row):
        for pivot in range(self.generation_size):
            row, coefficient = self.rows[pivot], self.field.get(new_row, pivot)
            if row is not None and coefficient:
                self.field.axpy(new_row, self.field.negative(coefficient), row[: len(new_row)])

    def _find_pivot(self, row):
        for index in range(self.generation_size):
            if self.field.get(row, index):
                return index
        return None

    def vector(self, pivot):
        """Return the packed encoding vector of the row whose first nonzero column is ``pivot``."""
        return self.rows[pivot][: self.vector_B]

    def informations(self, pivots):
        """Return the information vectors (the data) of the rows whose first nonzero columns are ``pivots``."""
        return [self.rows[pivot][self.vector_B :] for pivot in pivots]

    def combine(self, pivots, coefficients):
        """Return (packed encoding vector, information vector) of a linear combination of rows.

        ``pivots``: first nonzero columns of the rows to combine. ``coefficients``: the factor of each of these rows.
        """
        combined_row = Rows(self.field, [self.rows[pivot] for pivot in pivots]).combine(coefficients)
        return combined_row[: self.vector_B], combined_row[self.vector_B :]


def _is_bytes(value):
    return isinstance(value, (bytes, bytearray, memoryview))


def _check_generation_size(generation_size):
    if not (isinstance(generation_size, int) and generation_size >= 1):
        raise ParameterError("generation size is %r; it must be a whole number, at least 1" % (generation_size,))


def _check_density(density):
    if density is not None and not 0 < density <= 1:
        raise ParameterError("density is %r; it must be above 0 and at most 1" % (density,))


def _get_stream(random):
    return draws.Stream(draws.make_key(0, draws.PROTOCOL)) if random is None else random


def _choose_implementation(name, bulk, generation_size, row_B, plain):
    """Choose between two implementations of the class ``name``: that of `workbench.coding.bulk` and ``plain``.

    ``bulk`` true selects the class of the bulk module, false ``plain``. If ``bulk`` is None, the class of the bulk
    module is returned if that module can be imported and the matrix is large. The matrix has ``generation_size`` rows,
    each with an encoding vector and ``row_B`` bytes of data.
    """
    is_large = generation_size * (generation_size + row_B) >= BULK_FROM_BYTES
    if not (is_large if bulk is None else bulk):
        return plain
    try:
        bulk_module = __import__("workbench.coding.bulk", None, None, ["__name__"])
    except ImportError:
        if bulk:
            raise
        return plain
    return getattr(bulk_module, name)
