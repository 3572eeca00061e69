/* Variables whose parts are told by their types. Words have four bytes. */
#include <stdint.h>

typedef uint32_t stack_t[8];
struct thread {
    void *top;
    const stack_t stack;
    uint8_t state : 3;
};
struct nothing {
};
union either {
    uint32_t word;
    uint8_t bytes[12];
};

volatile uint32_t plain[8];
stack_t stacks[3];
uint8_t table[2][3][4];
struct thread thread;
struct thread threads[2];
union either either[2];
struct nothing empties[1000][1000][1000];
struct thread too_many[5000];
