#define JSMN_STRICT
#define MODE(name) strict_##name
#include "mode.h"
