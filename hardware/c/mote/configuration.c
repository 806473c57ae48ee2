/* Reading the JSON of CONFIGURE. `workbench/motes/session.py` writes it. */
#include "configuration.h"

#include <string.h>

#include "json.h"

static bool is_node(const char *value, const char *node_class)
{
    return json_begins_with(value, "\"") && json_begins_with(value + 1, node_class) &&
           value[1 + strlen(node_class)] == '"';
}

const char *configuration_read(const char *text, const char *node_class, struct configuration *configuration)
{
    uint64_t number;
    *configuration = (struct configuration){0};
    if (!is_node(json_member(text, "node"), node_class))
        return node_class;
    if (!json_integer(text, "address", UINT16_MAX - 1, &number))
        return "address";
    configuration->address = (uint32_t)number;
    if (!json_integer(text, "key", UINT64_MAX, &configuration->key))
        return "key";
    for (const char *at = json_member(text, "keys"); at != NULL && *at != '\0'; at++)
        if (json_begins_with(at, "\"blob\""))
            return "keys";
    if (json_member(text, "sensor") != NULL && !json_begins_with(json_member(text, "sensor"), "null"))
        return "sensor";
    configuration->has_boot = json_integer(text, "boot", UINT32_MAX, &number);
    if (configuration->has_boot)
        configuration->boot = (unsigned)number;
    configuration->settings = json_member(text, "settings");
    return configuration->settings == NULL ? "settings" : NULL;
}
