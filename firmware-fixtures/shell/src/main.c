#include <board.h>

#define LINE_MAX 80

static bool starts_with(const char *text, const char *head)
{
    while (*head != '\0')
        if (*text++ != *head++)
            return false;
    return true;
}

static bool equals(const char *text, const char *other)
{
    while (*text == *other && *text != '\0') {
        text++;
        other++;
    }
    return *text == *other;
}

/* Echoes what is typed, as a shell does; asleep between two looks at the console. */
static void read_line(char *line)
{
    size_t length = 0;
    for (;;) {
        int byte = uart_get();
        if (byte < 0) {
            sleep_ms(1);
        } else if (byte == '\r' || byte == '\n') {
            line[length] = '\0';
            print("\r\n");
            return;
        } else if (length < LINE_MAX - 1) {
            line[length++] = (char)byte;
            uart_put((uint8_t)byte);
        }
    }
}

FIXTURE_MAIN
{
    char line[LINE_MAX];
    for (;;) {
        print("jig> ");
        read_line(line);
        if (equals(line, "ver")) {
            print("shell 1.4.2\r\n");
        } else if (starts_with(line, "echo ")) {
            print(line + 5);
            print("\r\n");
        } else if (equals(line, "test")) {
            print("test/test_shell.c:12:test_prompt:PASS\r\n");
            print("test/test_shell.c:20:test_history:PASS\r\n");
            print("\r\n-----------------------\r\n");
            print("2 Tests 0 Failures 0 Ignored \r\n");
            print("OK\r\n");
        } else if (line[0] != '\0') {
            print("unknown command; there are: ver, echo TEXT, test\r\n");
        }
    }
}
