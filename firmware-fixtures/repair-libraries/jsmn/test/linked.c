#define JSMN_PARENT_LINKS
#define MODE(name) linked_##name
#include "mode.h"
