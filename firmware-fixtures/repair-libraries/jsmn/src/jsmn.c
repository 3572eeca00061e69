/* The parser is a header; this is where its code is. */
#include "jsmn.h"
