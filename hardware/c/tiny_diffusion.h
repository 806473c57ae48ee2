/* TinyDiffusion's definition file: sizes, keys, operators, application types and settings.
 *
 * `hardware/definition_file.py` makes it of the parameters and of the registry of keys in Python: change those, not
 * this file. A size may also be set where the library is compiled: cc -DMAX_INTERESTS=5 ... */
#ifndef TINY_DIFFUSION_H
#define TINY_DIFFUSION_H

/* Sizes */

/* entries: MAX_INTERESTS of the definition file */
#ifndef MAX_INTERESTS
#define MAX_INTERESTS 10
#endif
/* per interest: MAX_GRADIENTS: a mote's usual degree */
#ifndef MAX_GRADIENTS
#define MAX_GRADIENTS 10
#endif
/* per interest: MAX_REINFORCEMENTS: data gradients, one a source */
#ifndef MAX_REINFORCEMENTS
#define MAX_REINFORCEMENTS 10
#endif
/* per call: MAX_ATT */
#ifndef MAX_ATTRIBUTES
#define MAX_ATTRIBUTES 10
#endif
/* entries: MAX_DATA: duplicate list, and waiting samples */
#ifndef MAX_DATA
#define MAX_DATA 20
#endif
/* per data gradient: as many as gradients, if each leads to another sink */
#ifndef MAX_SINKS
#define MAX_SINKS 10
#endif
/* per data message: a mote's usual degree */
#ifndef MAX_NEXT_HOPS
#define MAX_NEXT_HOPS 10
#endif
/* per node: two for each interest, if half of them share one */
#ifndef MAX_SUBSCRIPTIONS
#define MAX_SUBSCRIPTIONS 20
#endif
/* neighbors: the black list; a dense testbed has mostly weak links */
#ifndef MAX_BLACK
#define MAX_BLACK 255
#endif
/* entries: five caches: an evicted interest is still known */
#ifndef MAX_SEEN_INTERESTS
#define MAX_SEEN_INTERESTS 50
#endif
/* bytes: the wide profile; 29 B is TinyOS's; a region takes five attributes */
#ifndef MESSAGE_B
#define MESSAGE_B 60
#endif

/* The most that the attributes of a message take: what is behind the shorter header, that of data. */
#define ATTRIBUTES_ROOM (MESSAGE_B - 10)

/* Keys: how many steps make one unit, and the unit */

enum {
    APP_KEY = 50, /* 1 = 1 application type */
    TEMP_KEY = 51, /* 100 = 1 °C */
    HUMIDITY_KEY = 52, /* 100 = 1 % */
    INSTANCE_KEY = 53, /* 1 = 1 */
    X_KEY = 54, /* 10 = 1 m */
    Y_KEY = 55, /* 10 = 1 m */
    INTENSITY_KEY = 56, /* 1 = 1 */
    CONFIDENCE_KEY = 57, /* 100 = 1 % */
    TIME_KEY = 58, /* 1 = 1 s */
    INTERVAL_KEY = 59, /* 10 = 1 s */
    VELOCITY_KEY = 60, /* 100 = 1 m/s */
    DIRECTION_KEY = 61, /* 10 = 1 ° */
    PRESSURE_KEY = 62, /* 10 = 1 hPa */
    UV_KEY = 63, /* 100 = 1 index */
    RADIATION_KEY = 64, /* 10 = 1 W/m² */
    Z_KEY = 65, /* 10 = 1 m */
    LATITUDE_KEY = 66, /* 100 = 1 ° */
    LONGITUDE_KEY = 67, /* 100 = 1 ° */
    TARGET_KEY = 68, /* 1 = 1 */
    PAYLOAD_KEY = 69, /* a blob, bytes */
    TOPIC_KEY = 70, /* a blob, text */
    FIRST_KEY = 50,
    LAST_KEY = 250
};

#define IS_BLOB(key) ((key) == 69 || (key) == 70)

/* Operators */

enum {
    IS = 1,
    EQ = 2,
    NE = 3,
    GT = 4,
    GE = 5,
    LT = 6,
    LE = 7,
    EQ_ANY = 8
};

/* Application types: values of APP_KEY */

enum {
    NULL_SENSOR_TYPE = 0,
    TEMPERATURE_TYPE = 1,
    HUMIDITY_TYPE = 2,
    PRESSURE_TYPE = 3,
    LEAF_WETNESS_TYPE = 4,
    PAR_TYPE = 5,
    UV_TYPE = 6,
    SOLAR_RADIATION_TYPE = 7,
    RAIN_LEVEL_TYPE = 8,
    EYE_LEVEL_LIGHT_TYPE = 9,
    WIND_SPEED_TYPE = 10,
    WIND_DIRECTION_TYPE = 11,
    SOIL_MOISTURE_TYPE = 12,
    TEMPERATURE_PROBE_TYPE = 13,
    BATTERYVOLTAGE_TYPE = 14
};

/* Settings: of a struct diffusion_settings */

#define TINY_DIFFUSION_SETTINGS \
    { .ttl = 50, \
      .max_repeats = 3, \
      .reinforce_after = 1, \
      .exploratory_gradients = 1, \
      .matching = 0, \
      .merge_interests = 0, \
      .lifetime_s = 150, \
      .refresh_us = 30000000, \
      .known_for_us = 60000000, \
      .tick_us = 1000000, \
      .sample_lifetime_us = 60000000, \
      .blacklist_loss = 0.75, \
      .blacklist_hysteresis = 0.1 }

#endif
