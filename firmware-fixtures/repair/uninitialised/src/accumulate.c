#include "accumulate.h"

void accumulate(int32_t *total, int32_t sample)
{
    int64_t sum = (int64_t)*total + sample;
    if (sum > INT32_MAX)
        sum = INT32_MAX;
    if (sum < INT32_MIN)
        sum = INT32_MIN;
    *total = (int32_t)sum;
}
