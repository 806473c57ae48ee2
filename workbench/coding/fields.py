"""Finite fields, and rows of their symbols packed into bytes: what network coding computes with.

Theory of operation
    ``field(order)`` gives GF(2), GF(2^4), GF(2^8), GF(2^16) or a prime field below 2^16. A symbol is an integer from 0
    to order - 1. In GF(2^k) it is a polynomial over GF(2): addition is exclusive or, and multiplication is modulo an
    irreducible polynomial for which x generates all symbols but zero. Up to GF(2^8) products come from tables of
    logarithms and powers of x, made when they are first asked for (766 bytes for GF(2^8)). Those of GF(2^16) would take
    384 KiB, too much for a mote, so it multiplies bit by bit, and a row by four tables of 16 products.

    A *row* is symbols packed into bytes, from the least significant bit on:

    ==============  ======================  =========================================
    field           symbols in a row        bytes of a chunk in a symbol
    ==============  ======================  =========================================
    GF(2)           eight a byte            1/8
    GF(2^4)         two a byte              1/2
    GF(2^8)         one a byte              1
    GF(2^16)        two bytes each          2
    GF(p), p < 256  one a byte              1/8 (3), 1/4 (5 to 13) or 1/2 (17 to 251)
    GF(p), p > 256  two bytes each          1
    ==============  ======================  =========================================

    In GF(2^k) a chunk of bytes is its own row. The order of a prime field is no power of two, so a symbol holds as many
    bits of a chunk as divide a byte and fit below p, and a row is longer than its chunk: twice as long in GF(257).

Cost
    A byte of a row takes one or two table look-ups. For whole payloads the host has `workbench.coding.bulk`.

Limits
    Chunks over GF(2^16) have an even number of bytes (`workbench.coding.rlnc.split` sees to that).

Reference
    R. Lidl, H. Niederreiter: Finite Fields, Cambridge 1997. The polynomials are those of the library galois.

This file runs on a mote too (MicroPython's subset of Python).
"""

from array import array

from workbench.errors import DecodeError, EncodeError, ParameterError

# Degree -> irreducible polynomial, with its bits as the coefficients: 0x11D is x^8 + x^4 + x^3 + x^2 + 1.
POLYNOMIALS = {1: 0x3, 4: 0x13, 8: 0x11D, 16: 0x1002D}
_DEGREES = {2: 1, 16: 4, 256: 8, 65536: 16}
_LARGEST_PRIME = 65521
_DEGREE_OF_TABLES = 8

_fields = {}


def field(order):
    """The field of that order (2, 16, 256, 65536, or a prime up to 65521), the same object every time.

    A Field is given back as it is. Any other order is a ParameterError.
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
                "there is no field of order %r here: 2, 16, 256, 65536 and primes up to %d are"
                % (order, _LARGEST_PRIME)
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
    """What all fields have.

    ``symbol_bits`` is the room of a symbol in a row, ``data_bits`` what it holds of a chunk; ``polynomial`` is 0 in
    prime fields.
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
        """The class of the library galois for this field, with arrays and matrices (not on a mote)."""
        # Not by a statement: what a mote's file imports would go there with it.
        return __import__("workbench.coding.bulk", None, None, ["__name__"]).galois_class(self)

    def divide(self, a, b):
        """a / b; ZeroDivisionError if b is zero."""
        return self.multiply(a, self.inverse(b))

    def inverse(self, a):
        """1 / a; ZeroDivisionError if a is zero."""
        if self.check(a) == 0:
            raise ZeroDivisionError("zero has no inverse in %r" % self)
        return self.power(a, self.order - 2)

    def power(self, a, exponent):
        """a to an integer power; a negative one is a power of the inverse, and 0 to the power of 0 is 1."""
        if exponent < 0:
            a, exponent = self.inverse(a), -exponent
        result = 1
        while exponent:
            if exponent & 1:
                result = self.multiply(result, a)
            a = self.multiply(a, a)
            exponent >>= 1
        return result

    def check(self, symbol, error=DecodeError):
        """The symbol, if it is one of this field; an ``error`` if not."""
        if not 0 <= symbol < self.order:
            raise error("%r is no symbol of %r: they go from 0 to %d" % (symbol, self, self.order - 1))
        return symbol

    # Rows

    def size_B(self, symbols):
        """Bytes of a row of so many symbols."""
        return (symbols * self.symbol_bits + 7) // 8

    def row_B(self, chunk_B):
        """Bytes of the row of a chunk of so many bytes (`from_data`)."""
        return self.size_B(chunk_B * 8 // self.data_bits)

    def get(self, row, index):
        """The symbol at an index of a row."""
        if self.symbol_bits == 8:
            return row[index]
        if self.symbol_bits == 16:
            return row[2 * index] | row[2 * index + 1] << 8
        position = index * self.symbol_bits
        return row[position >> 3] >> (position & 7) & (self.order - 1)

    def put(self, row, index, symbol):
        """Set the symbol at an index of a row (bytearray)."""
        if self.symbol_bits == 8:
            row[index] = symbol
        elif self.symbol_bits == 16:
            row[2 * index] = symbol & 255
            row[2 * index + 1] = symbol >> 8
        else:
            position = index * self.symbol_bits
            kept = row[position >> 3] & ~((self.order - 1) << (position & 7))
            row[position >> 3] = kept | symbol << (position & 7)

    def pack(self, symbols, error=EncodeError):
        """The row (bytearray) of a sequence of symbols; what is left of its last byte is zero.

        An ``error`` is raised if one is no symbol of this field: who decodes wants a DecodeError.
        """
        if self.order == 256 and isinstance(symbols, (bytes, bytearray, list, tuple)) and _are_bytes(symbols):
            return bytearray(symbols)
        row = bytearray(self.size_B(len(symbols)))
        for index in range(len(symbols)):
            self.put(row, index, self.check(int(symbols[index]), error))
        return row

    def unpack(self, row, count=None):
        """The first ``count`` symbols of a row as a list; all that there is room for without a count."""
        if count is None:
            count = len(row) * 8 // self.symbol_bits
        return list(row[:count]) if self.symbol_bits == 8 else [self.get(row, index) for index in range(count)]

    def check_row(self, row):
        """Raise DecodeError unless these bytes are a row of whole symbols of this field."""
        if len(row) * 8 % self.symbol_bits:
            raise DecodeError("%d bytes are no row of %r: its symbols take %d each" % (len(row), self, self.size_B(1)))

    def scale(self, row, factor):
        """Multiply a row (bytearray) by a symbol, in place."""
        product = bytearray(len(row))
        self.axpy(product, factor, row)
        row[:] = product


class BinaryField(Field):
    """GF(2^k). Sums are exclusive ors, so a symbol is its own negative."""

    def __init__(self, degree):
        Field.__init__(self, 1 << degree, 2, degree, POLYNOMIALS[degree], degree, degree)
        self._powers = None
        self._logarithms = None

    def add(self, a, b):
        """a + b."""
        return self.check(a) ^ self.check(b)

    subtract = add

    def negative(self, a):
        """-a, which is a."""
        return a

    def multiply(self, a, b):
        """a times b."""
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
        # The powers stand there twice, so that a sum of two logarithms needs no modulo.
        powers = array("B", bytes(2 * (self.order - 1)))
        logarithms = array("B", bytes(self.order))
        symbol = 1
        for exponent in range(self.order - 1):
            powers[exponent] = powers[exponent + self.order - 1] = symbol
            logarithms[symbol] = exponent
            symbol = self._multiply_by_bits(symbol, 2)
        self._powers, self._logarithms = powers, logarithms

    def axpy(self, row, factor, other):
        """row += factor * other, in place; both are rows of the same length, the first a bytearray."""
        _check_lengths(row, other)
        if self.check(factor) == 0:
            return
        if factor == 1:
            for index in range(len(row)):
                row[index] ^= other[index]
        elif self.degree == 8:
            self._axpy_by_logarithms(row, factor, other)
        else:
            self._axpy_by_halves(row, factor, other)

    def _axpy_by_logarithms(self, row, factor, other):
        if self._powers is None:
            self._make_tables()
        powers, logarithms = self._powers, self._logarithms
        logarithm = logarithms[factor]
        for index in range(len(row)):
            byte = other[index]
            if byte:
                row[index] ^= powers[logarithms[byte] + logarithm]

    def _axpy_by_halves(self, row, factor, other):
        # A product is linear in the bits of a symbol: the products of its groups of four bits add up to it.
        tables = [
            array("H", [self.multiply(nibble << shift, factor) for nibble in range(16)])
            for shift in range(0, self.degree, 4)
        ]
        if self.degree == 4:
            products = tables[0]
            for index in range(len(row)):
                row[index] ^= products[other[index] & 15] | products[other[index] >> 4] << 4
            return
        first, second, third, fourth = tables
        for index in range(0, len(row), 2):
            low, high = other[index], other[index + 1]
            product = first[low & 15] ^ second[low >> 4] ^ third[high & 15] ^ fourth[high >> 4]
            row[index] ^= product & 255
            row[index + 1] ^= product >> 8

    def from_data(self, data):
        """The row of a chunk of bytes, which is the same bytes; EncodeError if they are no whole symbols."""
        if len(data) * 8 % self.symbol_bits:
            raise EncodeError("a chunk of %d bytes is no row of %r: split it for this field" % (len(data), self))
        return bytearray(data)

    def to_data(self, row):
        """The chunk of bytes that a row is of."""
        return bytes(row)


class PrimeField(Field):
    """GF(p): integers modulo a prime."""

    def __init__(self, order):
        data_bits = 8 if order > 256 else 4 if order > 16 else 2 if order > 4 else 1
        Field.__init__(self, order, order, 1, 0, 8 if order < 256 else 16, data_bits)

    def add(self, a, b):
        """a + b."""
        return (self.check(a) + self.check(b)) % self.order

    def subtract(self, a, b):
        """a - b."""
        return (self.check(a) - self.check(b)) % self.order

    def negative(self, a):
        """-a."""
        return -self.check(a) % self.order

    def multiply(self, a, b):
        """a times b."""
        return self.check(a) * self.check(b) % self.order

    def axpy(self, row, factor, other):
        """row += factor * other, in place; both are rows of the same length, the first a bytearray."""
        _check_lengths(row, other)
        self.check(factor)
        for index in range(len(row) * 8 // self.symbol_bits):
            self.put(row, index, (self.get(row, index) + factor * self.get(other, index)) % self.order)

    def check_row(self, row):
        """Raise DecodeError unless these bytes are a row of symbols of this field."""
        Field.check_row(self, row)
        for index in range(len(row) * 8 // self.symbol_bits):
            self.check(self.get(row, index))

    def from_data(self, data):
        """The row of a chunk of bytes: ``data_bits`` of it in each symbol, from the least significant on."""
        mask = (1 << self.data_bits) - 1
        return self.pack([byte >> shift & mask for byte in data for shift in range(0, 8, self.data_bits)])

    def to_data(self, row):
        """The chunk of bytes that a row is of; DecodeError if it is the row of none."""
        symbols = self.unpack(row)
        in_byte = 8 // self.data_bits
        if len(symbols) % in_byte or any([symbol >> self.data_bits for symbol in symbols]):
            raise DecodeError(
                "a row of %d symbols of %r is of no bytes: %d make a byte, with %d bits each"
                % (len(symbols), self, in_byte, self.data_bits)
            )
        data = bytearray(len(symbols) // in_byte)
        for index in range(len(symbols)):
            data[index // in_byte] |= symbols[index] << index % in_byte * self.data_bits
        return bytes(data)


def _are_bytes(symbols):
    return len(symbols) > 0 and min(symbols) >= 0 and max(symbols) < 256


def _check_lengths(row, other):
    if len(row) != len(other):
        raise ParameterError(
            "rows of %d and %d bytes cannot be added: both must have one length" % (len(row), len(other))
        )
