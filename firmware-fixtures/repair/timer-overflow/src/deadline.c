#include "deadline.h"

bool deadline_over(uint32_t now, uint32_t start, uint32_t time)
{
    return now >= start + time;
}
