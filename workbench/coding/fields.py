"""Finite fields, and rows of their symbols packed into bytes: the arithmetic of network coding.

Theory of operation
    ``field(order)`` returns GF(2), GF(2^4), GF(2^8), GF(2^16) or a prime field below 2^16. A symbol is an integer from
    0 to order - 1. In GF(2^k) it is a polynomial over GF(2): addition is exclusive or, and multiplication is modulo an
    irreducible polynomial for which x generates all symbols but zero. Up to GF(2^8), products come from tables of
    logarithms and powers of x, built at first use (766 bytes for GF(2^8)). The tables of GF(2^16) would take 384 KiB,
    too much for a mote. So two symbols of GF(2^16) are multiplied bit by bit. To multiply a row over GF(2^16) by a
    factor, four tables are built: one for each four bits of a symbol, with the factor's products with their 16 values.

    A *row* is a sequence of symbols packed into bytes, least significant bit first:

    ==============  ======================  =========================================
    field           symbols in a row        bytes of a chunk in one symbol
    ==============  ======================  =========================================
    GF(2)           eight a byte            1/8
    GF(2^4)         two a byte              1/2
    GF(2^8)         one a byte              1
    GF(2^16)        two bytes each          2
    GF(p), p < 256  one a byte              1/8 (p = 3), 1/4 (p = 5 to 13), 1/2 (above)
    GF(p), p > 256  two bytes each          1
    ==============  ======================  =========================================

    A *chunk* is a piece of the data to be coded. In GF(2^k) the row of a chunk consists of the same bytes. The order p
    of a prime field is not a power of two. Therefore a symbol holds only b bits of a chunk, where b is the largest of
    1, 2, 4 and 8 with 2^b < p, and a row is longer than its chunk: twice as long in GF(257).

Cost
    A byte of a row takes one or two table look-ups. Hosts compute whole payloads with `workbench.coding.bulk`.

Limits
    Chunks over GF(2^16) must have an even number of bytes (`workbench.coding.rlnc.split` ensures it).

Reference
    R. Lidl, H. Niederreiter: Finite Fields, Cambridge 1997. The polynomials are those of the library galois.

This file runs on a mote too (MicroPython's subset of Python).
"""

from array import array

from workbench.errors import DecodeError, EncodeError, ParameterError

# Degree -> irreducible polynomial; its bits are the coefficients: 0x11D is x^8 + x^4 + x^3 + x^2 + 1.
POLYNOMIALS = {1: 0x3, 4: 0x13, 8: 0x11D, 16: 0x1002D}
_DEGREES = {2: 1, 16: 4, 256: 8, 65536: 16}
_LARGEST_PRIME = 65521
_DEGREE_OF_TABLES = 8

_fields = {}


def field(order):
    """Return the field with ``order`` elements: 2, 16, 256, 65536, or a prime up to 65521.

    Equal orders return the same object. If ``order`` is a Field, it is returned unchanged. Raises ParameterError for
    any other value.
    """
    if isinstance(order, Field):
        return order
    if order not in _fields:
        if order in _DEGREES:
            _fields[order] = BinaryField(_DEGREES[order])
        elif isinstance(order, int) and order <= _LARGEST_PRIME and _is_prime(order):
            _fields[order] = PrimeField(order)
        else:
            raise ParameterError(
                "field is %r; its order must be 2, 16, 256, 65536 or a prime up to %d" % (order, _LARGEST_PRIME)
            )
    return _fields[order]


def _is_prime(number):
    divisor = 2
    while divisor * divisor <= number:
        if number % divisor == 0:
            return False
        divisor += 1
    return number > 1


class Field:
    """The base class of finite fields: arithmetic of symbols, and of rows of symbols packed into bytes.

    ``symbol_bits`` is the number of bits that a symbol takes in a row. ``data_bits`` is the number of bits of a chunk
    that a symbol holds. ``polynomial`` is the irreducible polynomial of GF(2^k), and 0 in prime fields.
    """

    def __init__(self, order, characteristic, degree, polynomial, symbol_bits, data_bits):
        self.order = order
        self.characteristic = characteristic
        self.degree = degree
        self.polynomial = polynomial
        self.symbol_bits = symbol_bits
        self.data_bits = data_bits

    def __repr__(self):
        return "GF(%d)" % self.order if self.degree == 1 else "GF(2^%d)" % self.degree

    @property
    def galois(self):
        """The array class of the Python library `galois` for this field (not on a mote)."""
        # Not an import statement: a mote's file would take its imports along.
        return __import__("workbench.coding.bulk", None, None, ["__name__"]).galois_class(self)

    def divide(self, a, b):
        """Return a / b. Raises ZeroDivisionError if b is zero."""
        return self.multiply(a, self.inverse(b))

    def inverse(self, a):
        """Return 1 / a. Raises ZeroDivisionError if a is zero."""
        if self.check(a) == 0:
            raise ZeroDivisionError("zero has no inverse in %r" % self)
        return self.power(a, self.order - 2)

    def power(self, a, exponent):
        """Return ``a`` to an integer power. A negative power is a power of the inverse; 0 to the power of 0 is 1."""
        if exponent < 0:
            a, exponent = self.inverse(a), -exponent
        product = 1
        while exponent:
            if exponent & 1:
                product = self.multiply(product, a)
            a = self.multiply(a, a)
            exponent >>= 1
        return product

    def check(self, symbol, error=DecodeError):
        """Return the symbol. Raises an exception of the class ``error`` if it is not a symbol of this field."""
        if not 0 <= symbol < self.order:
            raise error("symbol is %r; it must be from 0 to %d in %r" % (symbol, self.order - 1, self))
        return symbol

    # Rows

    def size_B(self, symbols):
        """Return the size in bytes of a row of ``symbols`` symbols."""
        return (symbols * self.symbol_bits + 7) // 8

    def row_B(self, chunk_B):
        """Return the size in bytes of the row into which `from_data` converts a chunk of ``chunk_B`` bytes."""
        return self.size_B(chunk_B * 8 // self.data_bits)

    def get(self, row, index):
        """Return the symbol at an index of a row."""
        if self.symbol_bits == 8:
            return row[index]
        if self.symbol_bits == 16:
            return row[2 * index] | row[2 * index + 1] << 8
        bit_position = index * self.symbol_bits
        return row[bit_position >> 3] >> (bit_position & 7) & (self.order - 1)

    def put(self, row, index, symbol):
        """Set the symbol at an index of a row (bytearray)."""
        if self.symbol_bits == 8:
            row[index] = symbol
        elif self.symbol_bits == 16:
            row[2 * index] = symbol & 255
            row[2 * index + 1] = symbol >> 8
        else:
            bit_position = index * self.symbol_bits
            other_bits = row[bit_position >> 3] & ~((self.order - 1) << (bit_position & 7))
            row[bit_position >> 3] = other_bits | symbol << (bit_position & 7)

    def pack(self, symbols, error=EncodeError):
        """Return the row (bytearray) of a sequence of symbols; unused bits of its last byte are zero.

        Raises an exception of the class ``error`` if a value is not a symbol of this field.
        """
        if self.order == 256 and isinstance(symbols, (bytes, bytearray, list, tuple)) and _are_bytes(symbols):
            return bytearray(symbols)
        row = bytearray(self.size_B(len(symbols)))
        for index in range(len(symbols)):
            self.put(row, index, self.check(int(symbols[index]), error))
        return row

    def unpack(self, row, count=None):
        """Return the first ``count`` symbols of a row as a list; None for all symbols that fit in the row."""
        if count is None:
            count = len(row) * 8 // self.symbol_bits
        return list(row[:count]) if self.symbol_bits == 8 else [self.get(row, index) for index in range(count)]

    def check_row(self, row):
        """Raise DecodeError unless ``row``, a sequence of bytes, consists of whole symbols of this field."""
        if len(row) * 8 % self.symbol_bits:
            raise DecodeError(
                "row of %r has %d bytes; it must be a multiple of %d, the size of a symbol"
                % (self, len(row), self.size_B(1))
            )

    def scale(self, row, factor):
        """Multiply a row (bytearray) by a symbol in place."""
        product = bytearray(len(row))
        self.axpy(product, factor, row)
        row[:] = product


class BinaryField(Field):
    """GF(2^k). Addition is exclusive or, so a symbol is its own negative."""

    def __init__(self, degree):
        Field.__init__(self, 1 << degree, 2, degree, POLYNOMIALS[degree], degree, degree)
        self._powers = None
        self._logarithms = None

    def add(self, a, b):
        """Return a + b."""
        return self.check(a) ^ self.check(b)

    subtract = add

    def negative(self, a):
        """Return -a, which is a."""
        return a

    def multiply(self, a, b):
        """Return a times b."""
        self.check(a)
        self.check(b)
        if a == 0 or b == 0:
            return 0
        if self.degree > _DEGREE_OF_TABLES:
            return self._multiply_by_bits(a, b)
        if self._powers is None:
            self._make_tables()
        return self._powers[self._logarithms[a] + self._logarithms[b]]

    def _multiply_by_bits(self, a, b):
        product = 0
        while b:
            if b & 1:
                product ^= a
            a <<= 1
            if a >= self.order:
                a ^= self.polynomial
            b >>= 1
        return product

    def _make_tables(self):
        # The powers are stored twice, so that a sum of two logarithms needs no modulo.
        powers = array("B", bytes(2 * (self.order - 1)))
        logarithms = array("B", bytes(self.order))
        symbol = 1
        for exponent in range(self.order - 1):
            powers[exponent] = powers[exponent + self.order - 1] = symbol
            logarithms[symbol] = exponent
            symbol = self._multiply_by_bits(symbol, 2)
        self._powers, self._logarithms = powers, logarithms

    def axpy(self, row, factor, other):
        """Add ``factor`` times the row ``other`` to ``row``, a bytearray of the same length, in place."""
        _check_lengths(row, other)
        if self.check(factor) == 0:
            return
        if factor == 1:
            for byte_index in range(len(row)):
                row[byte_index] ^= other[byte_index]
        elif self.degree == 8:
            self._axpy_by_logarithms(row, factor, other)
        else:
            self._axpy_by_nibbles(row, factor, other)

    def _axpy_by_logarithms(self, row, factor, other):
        if self._powers is None:
            self._make_tables()
        powers, logarithms = self._powers, self._logarithms
        factor_logarithm = logarithms[factor]
        for index in range(len(row)):
            byte = other[index]
            if byte:
                row[index] ^= powers[logarithms[byte] + factor_logarithm]

    def _axpy_by_nibbles(self, row, factor, other):
        # Multiplication is linear in the bits of a symbol, so a product is the sum of the products of its four-bit
        # groups.
        tables = [
            array("H", [self.multiply(nibble << shift, factor) for nibble in range(16)])
            for shift in range(0, self.degree, 4)
        ]
        if self.degree == 4:
            products = tables[0]
            for byte_index in range(len(row)):
                row[byte_index] ^= products[other[byte_index] & 15] | products[other[byte_index] >> 4] << 4
            return
        table_0, table_4, table_8, table_12 = tables
        for byte_index in range(0, len(row), 2):
            low_byte, high_byte = other[byte_index], other[byte_index + 1]
            product = (
                table_0[low_byte & 15] ^ table_4[low_byte >> 4] ^ table_8[high_byte & 15] ^ table_12[high_byte >> 4]
            )
            row[byte_index] ^= product & 255
            row[byte_index + 1] ^= product >> 8

    def from_data(self, data):
        """Return the row of a chunk: a copy of its bytes. Raises EncodeError unless the bytes are whole symbols."""
        if len(data) * 8 % self.symbol_bits:
            raise EncodeError(
                "chunk has %d bytes, which are not whole symbols of %r; use rlnc.split" % (len(data), self)
            )
        return bytearray(data)

    def to_data(self, row):
        """Return the chunk that `from_data` converted to this row, as bytes."""
        return bytes(row)


class PrimeField(Field):
    """GF(p): integers modulo a prime."""

    def __init__(self, order):
        data_bits = 8 if order > 256 else 4 if order > 16 else 2 if order > 4 else 1
        Field.__init__(self, order, order, 1, 0, 8 if order < 256 else 16, data_bits)

    def add(self, a, b):
        """Return a + b."""
        return (self.check(a) + self.check(b)) % self.order

    def subtract(self, a, b):
        """Return a - b."""
        return (self.check(a) - self.check(b)) % self.order

    def negative(self, a):
        """Return -a."""
        return -self.check(a) % self.order

    def multiply(self, a, b):
        """Return a times b."""
        return self.check(a) * self.check(b) % self.order

    def axpy(self, row, factor, other):
        """Add ``factor`` times the row ``other`` to ``row``, a bytearray of the same length, in place."""
        _check_lengths(row, other)
        self.check(factor)
        for index in range(len(row) * 8 // self.symbol_bits):
            self.put(row, index, (self.get(row, index) + factor * self.get(other, index)) % self.order)

    def check_row(self, row):
        """Raise DecodeError unless ``row``, a sequence of bytes, consists of whole symbols of this field."""
        Field.check_row(self, row)
        for index in range(len(row) * 8 // self.symbol_bits):
            self.check(self.get(row, index))

    def from_data(self, data):
        """Return the row of a chunk, which is a sequence of bytes.

        Each symbol holds ``self.data_bits`` bits of a byte, least significant bits first.
        """
        data_mask = (1 << self.data_bits) - 1
        return self.pack([byte >> shift & data_mask for byte in data for shift in range(0, 8, self.data_bits)])

    def to_data(self, row):
        """Return the chunk that `from_data` converted to this row. Raises DecodeError if no chunk gives this row."""
        symbols = self.unpack(row)
        symbols_per_byte = 8 // self.data_bits
        if len(symbols) % symbols_per_byte or any([symbol >> self.data_bits for symbol in symbols]):
            raise DecodeError(
                "row of %d symbols of %r is not made from whole bytes; a byte takes %d symbols with %d bits each"
                % (len(symbols), self, symbols_per_byte, self.data_bits)
            )
        chunk_bytes = bytearray(len(symbols) // symbols_per_byte)
        for symbol_index in range(len(symbols)):
            chunk_bytes[symbol_index // symbols_per_byte] |= (
                symbols[symbol_index] << symbol_index % symbols_per_byte * self.data_bits
            )
        return bytes(chunk_bytes)


def _are_bytes(symbols):
    return len(symbols) > 0 and min(symbols) >= 0 and max(symbols) < 256


def _check_lengths(row, other):
    if len(row) != len(other):
        raise ParameterError(
            "rows have %d and %d bytes; they must have the same length to be added" % (len(row), len(other))
        )
