#include "peak.h"

int32_t peak(const int32_t *samples, uint32_t count)
{
    int32_t largest = samples[0];
    uint32_t last = count - 1;
    for (uint32_t i = 1; i < last; i++) {
        if (samples[i] > largest)
            largest = samples[i];
    }
    return largest;
}
