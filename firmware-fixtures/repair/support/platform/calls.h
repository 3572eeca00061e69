/* Functions that can be called by a line on the console: `call NAME ARGUMENT...`. */
#ifndef CALLS_H
#define CALLS_H

#include "board.h"

#define MAX_ARGUMENTS 16

struct arguments {
    unsigned count;
    const char *text[MAX_ARGUMENTS];
    int32_t value[MAX_ARGUMENTS]; /* decimal, or hexadecimal behind 0x; 0 if it is no number */
};

struct call {
    const char *name;
    int32_t (*run)(const struct arguments *arguments);
};

/* The project's calls; the last one has no name. */
extern const struct call calls[];

/* Answers lines for good: `= RESULT`, or `? REASON`. */
_Noreturn void calls_serve(void);

#endif
