#include "scale.h"

int32_t scale_celsius(int32_t fahrenheit)
{
    return (fahrenheit - 32) * 50 / 9;
}
