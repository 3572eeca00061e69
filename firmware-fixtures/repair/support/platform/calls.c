/* The line protocol of the console. */

#include "calls.h"

#define LINE 120

static bool same(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

static int32_t number(const char *text)
{
    bool negative = *text == '-';
    uint32_t value = 0, base = 10;
    text += negative;
    if (text[0] == '0' && text[1] == 'x') {
        base = 16;
        text += 2;
    }
    for (; *text != '\0'; text++) {
        uint32_t digit = 99;
        if (*text >= '0' && *text <= '9')
            digit = (uint32_t)(*text - '0');
        else if (*text >= 'a' && *text <= 'f')
            digit = (uint32_t)(*text - 'a') + 10;
        if (digit >= base)
            return 0;
        value = value * base + digit;
    }
    return (int32_t)(negative ? 0u - value : value);
}

static void answer(char *line)
{
    const char *words[MAX_ARGUMENTS + 2];
    unsigned count = 0;
    while (*line != '\0' && count < MAX_ARGUMENTS + 2) {
        while (*line == ' ')
            *line++ = '\0';
        if (*line != '\0')
            words[count++] = line;
        while (*line != '\0' && *line != ' ')
            line++;
    }
    if (count < 2 || !same(words[0], "call")) {
        print("? write: call NAME ARGUMENT...\n");
        return;
    }
    static struct arguments arguments;
    arguments.count = count - 2;
    for (unsigned i = 0; i < MAX_ARGUMENTS; i++) {
        arguments.text[i] = i + 2 < count ? words[i + 2] : "";
        arguments.value[i] = number(arguments.text[i]);
    }
    for (const struct call *call = calls; call->name != NULL; call++) {
        if (same(call->name, words[1])) {
            stack_paint();
            int32_t result = call->run(&arguments);
            print("= ");
            print_number(result);
            print("\n");
            return;
        }
    }
    print("? no such call\n");
}

void calls_serve(void)
{
    static char line[LINE];
    unsigned length = 0;
    print("ready\n");
    for (;;) {
        uint8_t byte = uart_wait();
        if (byte == '\n' || byte == '\r') {
            line[length] = '\0';
            if (length > 0)
                answer(line);
            length = 0;
        } else if (length < LINE - 1) {
            line[length++] = (char)byte;
        }
    }
}
