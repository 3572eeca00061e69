#include "inflated.h"

#define POOL (60 * 1024)

uint8_t inflated_bytes[MOST_INFLATED];
int inflated_size;
uint32_t inflated_adler;

#define WITHOUT_WINDOW (12 * 1024)

static uint64_t pool[POOL / 8];
static size_t used, most = POOL / 8;

static voidpf allocate(voidpf opaque, uInt count, uInt size)
{
    (void)opaque;
    size_t words = ((size_t)count * size + 7) / 8;
    if (used + words > most)
        return Z_NULL;
    used += words;
    return &pool[used - words];
}

static void release(voidpf opaque, voidpf memory)
{
    (void)opaque;
    (void)memory;
}

static int begun(z_stream *stream, int window_bits)
{
    used = 0;
    inflated_size = 0;
    inflated_adler = UNTOUCHED;
    memset(stream, 0, sizeof *stream);
    stream->zalloc = allocate;
    stream->zfree = release;
    stream->adler = UNTOUCHED;
    stream->next_out = inflated_bytes;
    stream->avail_out = MOST_INFLATED;
    return inflateInit2(stream, window_bits);
}

static void ended(z_stream *stream)
{
    inflated_size = MOST_INFLATED - (int)stream->avail_out;
    inflated_adler = stream->adler;
    inflateEnd(stream);
}

int inflated(const uint8_t *from, size_t size, int window_bits, size_t part)
{
    z_stream stream;
    int code = begun(&stream, window_bits);
    if (code != Z_OK)
        return code;
    for (size_t at = 0; code == Z_OK && at < size; at += part) {
        stream.next_in = (z_const Bytef *)from + at;
        stream.avail_in = (uInt)(size - at < part ? size - at : part);
        code = inflate(&stream, Z_NO_FLUSH);
        if (code == Z_OK && stream.avail_in > 0)
            break;
    }
    if (code == Z_OK)
        code = inflate(&stream, Z_FINISH);
    ended(&stream);
    return code;
}

int inflated_at_once(const uint8_t *from, size_t size, int window_bits)
{
    z_stream stream;
    most = WITHOUT_WINDOW / 8;
    int code = begun(&stream, window_bits);
    if (code == Z_OK) {
        stream.next_in = (z_const Bytef *)from;
        stream.avail_in = (uInt)size;
        code = inflate(&stream, Z_FINISH);
        ended(&stream);
    }
    most = POOL / 8;
    return code;
}
