/* Network coding over GF(2^8) with Intel's ISA-L (erasure_code.h), whose polynomial is 0x11D too. It has no elimination
 * of rows as they come, so decoding inverts the matrix of all encoding vectors. */
#include <isa-l/erasure_code.h>
#include <stdint.h>
#include <stdlib.h>

/* out[k] = sum of coefficients[k][j] * rows[j], for `count` combinations of m rows of `size` bytes. */
void encode(uint8_t *out, uint8_t *rows, uint8_t *coefficients, int64_t count, int64_t m, int64_t size)
{
    uint8_t *tables = malloc((size_t)(32 * m * count)), **from = malloc((size_t)m * sizeof *from), **to = malloc((size_t)count * sizeof *to);
    for (int64_t j = 0; j < m; j++)
        from[j] = rows + j * size;
    for (int64_t k = 0; k < count; k++)
        to[k] = out + k * size;
    ec_init_tables((int)m, (int)count, coefficients, tables);
    ec_encode_data((int)size, (int)m, (int)count, tables, from, to);
    free(tables);
    free(from);
    free(to);
}

/* The chunks of m packets; gives m, or -1 if their vectors have no inverse. */
int64_t decode(uint8_t *out, const uint8_t *vectors, uint8_t *informations, int64_t m, int64_t size)
{
    uint8_t *copy = malloc((size_t)(m * m)), *inverse = malloc((size_t)(m * m));
    for (int64_t i = 0; i < m * m; i++)
        copy[i] = vectors[i];
    int64_t rank = gf_invert_matrix(copy, inverse, (int)m) ? -1 : m;
    if (rank > 0)
        encode(out, informations, inverse, m, m, size);
    free(copy);
    free(inverse);
    return rank;
}
