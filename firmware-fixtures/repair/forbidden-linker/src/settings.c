#include "settings.h"

uint32_t settings_baud = 115200;
uint32_t settings_address = 17;
uint32_t settings_retries = 3;
