#include "inflated.h"

#define POOL (60 * 1024)

uint8_t inflated_bytes[MOST_INFLATED];
int inflated_size;

static uint64_t pool[POOL / 8];
static size_t used;

static voidpf allocate(voidpf opaque, uInt count, uInt size)
{
    (void)opaque;
    size_t words = ((size_t)count * size + 7) / 8;
    if (used + words > POOL / 8)
        return Z_NULL;
    used += words;
    return &pool[used - words];
}

static void release(voidpf opaque, voidpf memory)
{
    (void)opaque;
    (void)memory;
}

int inflated(const uint8_t *from, size_t size, int window_bits, size_t part)
{
    used = 0;
    inflated_size = 0;
    z_stream stream;
    memset(&stream, 0, sizeof stream);
    stream.zalloc = allocate;
    stream.zfree = release;
    int code = inflateInit2(&stream, window_bits);
    if (code != Z_OK)
        return code;
    stream.next_out = inflated_bytes;
    stream.avail_out = MOST_INFLATED;
    for (size_t at = 0; code == Z_OK && at < size; at += part) {
        stream.next_in = (z_const Bytef *)from + at;
        stream.avail_in = (uInt)(size - at < part ? size - at : part);
        code = inflate(&stream, Z_NO_FLUSH);
        if (code == Z_OK && stream.avail_in > 0)
            break;
    }
    inflated_size = MOST_INFLATED - (int)stream.avail_out;
    if (code == Z_OK)
        code = inflate(&stream, Z_FINISH);
    inflateEnd(&stream);
    return code;
}
