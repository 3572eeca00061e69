#ifndef ERASER_H
#define ERASER_H

#include <stdint.h>

/* Erases pages, which takes 30 ms each, under the watchdog; returns how many were erased. */
uint32_t eraser_run(uint32_t pages);

#endif
