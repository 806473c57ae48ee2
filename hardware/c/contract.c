/* The sentences of errors. */
#include "contract.h"

#if MESSAGE_B < 60
#define WIDER ", or profile='wide'"
#else
#define WIDER ""
#endif

const char *sentence(int64_t error)
{
    switch (error) {
    case WRONG_ATTRIBUTES:
        return "these bytes are no attributes with keys from 50 to 250 and operators from 1 to 8";
    case CONSTRAINS_NOTHING:
        return "the subscription constrains nothing; use EQ instead of IS, or match_all";
    case NOT_A_READING:
        return "a publication needs at least one attribute, and IS attributes alone unless the node matches two ways";
    case TOO_MANY_ATTRIBUTES:
        return "there are more attributes than max_attributes=" TEXT_OF(MAX_ATTRIBUTES);
    case TOO_LONG:
        return "the attributes do not fit a message of " TEXT_OF(MESSAGE_B) " bytes; use fewer of them" WIDER;
    case TOO_MANY_INTERESTS:
        return "the node already has max_interests=" TEXT_OF(MAX_INTERESTS) " different subscriptions";
    case TOO_MANY_SUBSCRIPTIONS:
        return "the node already has MAX_SUBSCRIPTIONS=" TEXT_OF(MAX_SUBSCRIPTIONS) " subscriptions";
    case LESS_CONSTRAINED:
        return "the reinforcement is less constrained than the subscription";
    default:
        return "this is no error";
    }
}
