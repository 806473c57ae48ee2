/* The layout of the frames of the protocol diffusion.
 *
 * `hardware/frame_header.py` makes it of the table in `workbench/protocols/diffusion/dissector.py`:
 * change that, not this file. */
#ifndef FRAMES_H
#define FRAMES_H

enum {
    INTEREST_TYPE = 1,
    INTEREST_SEQUENCE_AT = 1,
    INTEREST_SINK_AT = 5,
    INTEREST_ROUND_AT = 7,
    INTEREST_PREVIOUS_HOP_AT = 8,
    INTEREST_TTL_AT = 10,
    INTEREST_EXPIRATION_S_AT = 11,
    INTEREST_ATTRIBUTE_COUNT_AT = 13,
    INTEREST_BODY_AT = 14
};

enum {
    DATA_TYPE = 2,
    DATA_SEQUENCE_AT = 1,
    DATA_SOURCE_AT = 5,
    DATA_PREVIOUS_HOP_AT = 7,
    DATA_TTL_AT = 9,
    DATA_ATTRIBUTE_COUNT_AT = 10,
    DATA_IS_AGGREGATE = 128,
    DATA_IS_LISTED = 64,
    DATA_ATTRIBUTE_COUNT_BITS = 63,
    DATA_BODY_AT = 11
};

#endif
