#include "bits.h"

uint32_t bits_set(uint32_t word)
{
    uint32_t count = 0;
    for (; word != 0; word &= word - 1)
        count++;
    return count;
}
