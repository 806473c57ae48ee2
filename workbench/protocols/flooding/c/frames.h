/* The layout of the frames of the protocol flooding.
 *
 * `hardware/frame_header.py` makes it of the table in `workbench/protocols/flooding/dissector.py`:
 * change that, not this file. */
#ifndef FRAMES_H
#define FRAMES_H

enum {
    FLOOD_TYPE = 70,
    FLOOD_ORIGIN_AT = 1,
    FLOOD_SEQUENCE_AT = 5,
    FLOOD_TTL_AT = 9,
    FLOOD_ATTRIBUTE_COUNT_AT = 11,
    FLOOD_BODY_AT = 12
};

#endif
