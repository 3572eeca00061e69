#include "mean.h"

#include "accumulate.h"

int32_t mean(const int32_t *samples, uint32_t count)
{
    int32_t total;
    if (count == 0)
        return 0;
    for (uint32_t i = 0; i < count; i++)
        accumulate(&total, samples[i]);
    return total / (int32_t)count;
}
