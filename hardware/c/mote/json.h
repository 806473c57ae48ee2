/* Reading JSON where it stands, in a text that ends in a zero, without memory of its own. A value is where it begins;
 * NULL is none. What is no JSON has no members, and nothing behind the text is read. */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stdint.h>

/* The value of a member of an object; NULL if there is none. */
const char *json_member(const char *object, const char *name);

/* The first value of a list, and the one behind another; NULL if there is none. */
const char *json_first(const char *list);
const char *json_next(const char *value);

/* Whether a value begins with these characters. */
bool json_begins_with(const char *value, const char *text);

/* Read a member that is a whole number from 0 to `most`, or any number; false if it is none. */
bool json_integer(const char *object, const char *name, uint64_t most, uint64_t *number);
bool json_number(const char *object, const char *name, double *number);

#endif
