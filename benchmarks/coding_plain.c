/* Network coding over GF(2^8), polynomial 0x11D, in plain C: what a programmer writes first, and what a compiler can
 * make vector instructions of. Built with -O3 -march=native.
 *
 * axpy_table looks products up in a table of 64 KiB. axpy_shift multiplies by shifts and exclusive ors, without a table
 * and without a branch on the data. The decoder eliminates as packets come (Gauss and Jordan) on rows of encoding
 * vector and information vector. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef void axpy_function(uint8_t *restrict, uint8_t, const uint8_t *restrict, int64_t);

static uint8_t product_of[256][256];

static uint8_t multiply(uint8_t a, uint8_t b)
{
    uint8_t product = 0;
    for (; b; b >>= 1, a = (uint8_t)(a << 1 ^ (a >> 7) * 0x1D))
        if (b & 1)
            product ^= a;
    return product;
}

void make_tables(void)
{
    for (int a = 0; a < 256; a++)
        for (int b = 0; b < 256; b++)
            product_of[a][b] = multiply((uint8_t)a, (uint8_t)b);
}

static void axpy_table(uint8_t *restrict y, uint8_t factor, const uint8_t *restrict x, int64_t size)
{
    const uint8_t *products = product_of[factor];
    for (int64_t i = 0; i < size; i++)
        y[i] ^= products[x[i]];
}

static void axpy_shift(uint8_t *restrict y, uint8_t factor, const uint8_t *restrict x, int64_t size)
{
    uint8_t mask[8];
    for (int bit = 0; bit < 8; bit++)
        mask[bit] = (uint8_t)-(factor >> bit & 1);
    for (int64_t i = 0; i < size; i++) {
        uint8_t a = x[i], sum = 0;
        for (int bit = 0; bit < 8; bit++) {
            sum ^= a & mask[bit];
            a = (uint8_t)(a << 1) ^ (uint8_t)((uint8_t)-(a >> 7) & 0x1D);
        }
        y[i] ^= sum;
    }
}

static axpy_function *const axpy_of[] = {axpy_table, axpy_shift};

/* out[k] = sum of coefficients[k][j] * rows[j], for `count` combinations of m rows of `size` bytes. */
void encode(int64_t way, uint8_t *out, const uint8_t *rows, const uint8_t *coefficients, int64_t count, int64_t m, int64_t size)
{
    memset(out, 0, (size_t)(count * size));
    for (int64_t k = 0; k < count; k++)
        for (int64_t j = 0; j < m; j++)
            axpy_of[way](out + k * size, coefficients[k * m + j], rows + j * size, size);
}

static uint8_t inverse_of(uint8_t a)
{
    for (int b = 1; b < 256; b++)
        if (product_of[a][b] == 1)
            return (uint8_t)b;
    return 0;
}

static void reduce(axpy_function *axpy, uint8_t *row, const uint8_t *matrix, const uint8_t *present, int64_t m, int64_t width, int64_t size)
{
    for (int64_t pivot = 0; pivot < m; pivot++)
        if (present[pivot] && row[pivot])
            axpy(row, row[pivot], matrix + pivot * width, size);
}

/* Takes m packets into a matrix of m rows of m + size bytes, which has the chunks in the end; gives the rank. */
int64_t decode(int64_t way, uint8_t *matrix, const uint8_t *vectors, const uint8_t *informations, int64_t m, int64_t size)
{
    axpy_function *axpy = axpy_of[way];
    const int64_t width = m + size;
    uint8_t *present = calloc((size_t)m, 1), *row = malloc((size_t)width), *unit = malloc((size_t)width);
    int64_t rank = 0;
    for (int64_t packet = 0; packet < m; packet++) {
        memcpy(row, vectors + packet * m, (size_t)m);
        memcpy(row + m, informations + packet * size, (size_t)size);
        reduce(axpy, row, matrix, present, m, width, width);
        int64_t pivot = 0;
        while (pivot < m && !row[pivot])
            pivot++;
        if (pivot == m)
            continue;
        memset(unit, 0, (size_t)width);
        axpy(unit, inverse_of(row[pivot]), row, width);
        for (int64_t other = 0; other < m; other++)
            if (present[other] && matrix[other * width + pivot])
                axpy(matrix + other * width, matrix[other * width + pivot], unit, width);
        memcpy(matrix + pivot * width, unit, (size_t)width);
        present[pivot] = 1;
        rank++;
    }
    free(present);
    free(row);
    free(unit);
    return rank;
}

/* How many of `count` encoding vectors depend on none of the rows of a reduced matrix of encoding vectors. */
int64_t innovative(int64_t way, const uint8_t *matrix, const uint8_t *present, const uint8_t *vectors, int64_t count, int64_t m)
{
    uint8_t row[256];
    int64_t found = 0;
    for (int64_t k = 0; k < count; k++) {
        memcpy(row, vectors + k * m, (size_t)m);
        reduce(axpy_of[way], row, matrix, present, m, m, m);
        int any = 0;
        for (int64_t i = 0; i < m; i++)
            any |= row[i];
        found += any != 0;
    }
    return found;
}
