/* Numbers from the lines of a text, each correctly rounded, by several threads.
 *
 * A line holds words of digits and then numbers, between blanks; lines without a word, and what follows
 * # or % at the start of a word, are left out. Whatever else a line holds makes it odd, and the caller
 * is told. Decimal numbers become binary ones by the method of Lemire (2021, Number parsing at a gigabyte
 * per second): w 10^q from the upper half of w times 128 bits of 5^q, which `text_powers` has.
 *
 * Included behind definitions of TEXT_INDEX, the type of coordinates, and TEXT_POWERS.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_LOWEST = -342, TEXT_HIGHEST = 308, TEXT_REAL = 0, TEXT_INTEGER = 1, TEXT_NATURAL = 2 };

static const uint64_t text_powers[] = {TEXT_POWERS};
static const double text_tens[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

typedef const uint8_t *text_place;

static inline bool text_is_digit(uint8_t c) { return (uint8_t)(c - '0') < 10; }

static inline bool text_is_blank(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r' && c != '\n'); }

static inline bool text_is_end(uint8_t c) { return text_is_blank(c) || c == '\n'; }

static inline text_place text_skip(text_place p)
{
    while (text_is_blank(*p))
        p++;
    return p;
}

/* The value of a decimal numeral that other methods do not hold; false where strtod disagrees about its end. */
static bool text_rare(text_place from, text_place to, double *out)
{
    char word[512], *end;
    size_t length = (size_t)(to - from);
    if (length >= sizeof word)
        return false;
    for (size_t i = 0; i < length; i++)
        word[i] = from[i] == 'd' || from[i] == 'D' ? 'e' : (char)from[i];
    word[length] = 0;
    *out = strtod(word, &end);
    return end == word + length;
}

/* w 10^q, w > 0, as the bits of a double; 0 where that is no normal number. */
static inline uint64_t text_scaled(uint64_t w, int64_t q)
{
    if (q < TEXT_LOWEST || q > TEXT_HIGHEST)
        return 0;
    const uint64_t *power = text_powers + 2 * (q - TEXT_LOWEST);
    int zeros = __builtin_clzll(w);
    w <<= zeros;
    unsigned __int128 product = (unsigned __int128)w * power[0];
    uint64_t high = (uint64_t)(product >> 64), low = (uint64_t)product;
    if ((high & 0x1FF) == 0x1FF) {
        uint64_t more = (uint64_t)((unsigned __int128)w * power[1] >> 64);
        low += more;
        high += low < more;
    }
    int upper = (int)(high >> 63), shift = upper + 64 - 52 - 3;
    uint64_t mantissa = high >> shift;
    int64_t exponent = (((152170 + 65536) * q) >> 16) + 63 + upper - zeros + 1023;
    if (exponent <= 0)
        return 0;
    /* halfway between two doubles: to the even one */
    if (low <= 1 && q >= -4 && q <= 23 && (mantissa & 3) == 1 && mantissa << shift == high)
        mantissa &= ~(uint64_t)1;
    mantissa += mantissa & 1;
    mantissa >>= 1;
    if (mantissa >= (uint64_t)2 << 52) {
        mantissa = (uint64_t)1 << 52;
        exponent++;
    }
    if (exponent >= 0x7FF)
        return 0;
    return (mantissa & ~((uint64_t)1 << 52)) | (uint64_t)exponent << 52;
}

/* The place behind one of the words, in either case; NULL where it is none. */
static text_place text_special(text_place p, double *out)
{
    static const char *const words[] = {"infinity", "inf", "nan"};
    for (int k = 0; k < 3; k++) {
        size_t length = strlen(words[k]), i = 0;
        while (i < length && (p[i] | 32) == words[k][i])
            i++;
        if (i == length) {
            *out = k == 2 ? (double)NAN : (double)INFINITY;
            return p + length;
        }
    }
    return NULL;
}

/* Behind the exponent at `p`, which is added to `exponent`; NULL where none is there. */
static inline text_place text_exponent(text_place p, int64_t *exponent)
{
    bool below = *p == '-';
    p += below || *p == '+';
    if (!text_is_digit(*p))
        return NULL;
    int64_t found = 0;
    for (; text_is_digit(*p); p++)
        if (found < 100000)
            found = 10 * found + (*p - '0');
    *exponent += below ? -found : found;
    return p;
}

/* The number of zeros, of a number that begins at `p`, before its other digits. */
static int64_t text_zeros(text_place p)
{
    int64_t found = 0;
    for (; *p == '0' || *p == '.'; p++)
        found += *p == '0';
    return found;
}

/* Behind the real number at `p`, NULL where none is there that can be read. */
static inline text_place text_real(text_place p, double *out)
{
    bool negative = *p == '-';
    p += negative || *p == '+';
    text_place from = p;
    uint64_t w = 0;
    int64_t q = 0, digits;
    for (; text_is_digit(*p); p++)
        w = 10 * w + (uint64_t)(*p - '0');
    digits = p - from;
    if (*p == '.') {
        text_place point = p++;
        for (; text_is_digit(*p); p++)
            w = 10 * w + (uint64_t)(*p - '0');
        q = point + 1 - p;
        digits -= q;
    }
    double found;
    if (!digits) {
        p = q || p != from ? NULL : text_special(p, &found);
    } else {
        if ((*p | 32) == 'e' || (*p | 32) == 'd')
            p = text_exponent(p + 1, &q);
        if (!p)
            return NULL;
        uint64_t bits;
        if (digits > 19 && digits - text_zeros(from) > 19) {
            if (!text_rare(from, p, &found))
                return NULL;
        } else if (w <= (uint64_t)1 << 53 && q >= -22 && q <= 22) {
            found = q < 0 ? (double)w / text_tens[-q] : (double)w * text_tens[q];
        } else if (w && (bits = text_scaled(w, q))) {
            memcpy(&found, &bits, sizeof found);
        } else if (!w) {
            found = 0;
        } else if (!text_rare(from, p, &found)) {
            return NULL;
        }
    }
    *out = negative ? -found : found;
    return p;
}

/* Behind the integer at `p`, NULL where there is none, or none of 64 bits. */
static inline text_place text_integer(text_place p, bool is_signed, uint64_t *out)
{
    bool negative = *p == '-';
    p += negative || *p == '+';
    text_place from = p;
    uint64_t w = 0, most = is_signed ? (uint64_t)INT64_MAX + negative : negative ? 0 : UINT64_MAX;
    for (; text_is_digit(*p); p++)
        w = 10 * w + (uint64_t)(*p - '0');
    if (p - from == 20 && *from == '1' && w >= 10000000000000000000u && w <= most)
        return *out = w, p;
    if (p == from || p - from > 19 || w > most)
        return NULL;
    *out = negative ? 0 - w : w;
    return p;
}

static inline text_place text_coordinate(text_place p, int64_t size, TEXT_INDEX *out)
{
    text_place from = p;
    int64_t n = 0;
    for (; text_is_digit(*p) && p - from < 18; p++)
        n = 10 * n + (*p - '0');
    if (n < 1 || n > size)
        return NULL;
    *out = (TEXT_INDEX)(n - 1);
    return p;
}

typedef struct {
    const int64_t *sizes;
    TEXT_INDEX *columns; /* `lines` coordinates for each of the words of digits */
    uint64_t *values;    /* `numbers` values for each of `lines` lines */
    int64_t lines, digits, numbers, kind;
} text_table;

/* Behind the row at `p`, written as row `row`; NULL where the line is odd. */
static inline text_place text_row(const text_table *table, text_place p, int64_t row)
{
    for (int64_t k = 0; k < table->digits; k++) {
        p = text_coordinate(text_skip(p), table->sizes[k], &table->columns[k * table->lines + row]);
        if (!p || !text_is_end(*p))
            return NULL;
    }
    uint64_t *values = table->values + row * table->numbers;
    for (int64_t k = 0; k < table->numbers; k++) {
        p = text_skip(p);
        double found;
        if (table->kind != TEXT_REAL) {
            p = text_integer(p, table->kind == TEXT_INTEGER, &values[k]);
        } else if ((p = text_real(p, &found))) {
            memcpy(&values[k], &found, sizeof found);
        }
        if (!p || !text_is_end(*p))
            return NULL;
    }
    return p;
}

/* The number of rows in the lines from `p` to `end`, written from row `first` on; -1 where one is odd. */
static int64_t text_rows(const text_table *table, text_place p, text_place end, int64_t first)
{
    int64_t row = first;
    while (p < end) {
        p = text_skip(p);
        if (*p != '\n' && *p != '#' && *p != '%') {
            p = text_row(table, p, row++);
            if (!p)
                return -1;
            p = text_skip(p);
        }
        if (*p == '#' || *p == '%')
            p = memchr(p, '\n', (size_t)(end - p));
        if (*p++ != '\n')
            return -1;
    }
    return row - first;
}

/* lines[c] = the number of newlines in text[starts[c]:starts[c + 1]]. */
int32_t text_count_lines(const uint8_t *text, const int64_t *starts, int64_t *lines, int64_t chunks,
    int32_t threads)
{
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t c = 0; c < chunks; c++) {
        int64_t found = 0;
        for (int64_t i = starts[c]; i < starts[c + 1]; i++)
            found += text[i] == '\n';
        lines[c] = found;
    }
    return 0;
}

/* rows[c] = how many rows of text[starts[c]:starts[c + 1]] are written from row first[c] on; -1 if one is odd.
 * Each chunk ends behind a newline. */
int32_t text_read_table(const uint8_t *text, const int64_t *starts, const int64_t *first, const int64_t *sizes,
    int64_t *rows, TEXT_INDEX *columns, uint64_t *values, int64_t chunks, int64_t lines, int64_t digits,
    int64_t numbers, int64_t kind, int32_t threads)
{
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t c = 0; c < chunks; c++) {
        text_table table = {sizes, columns, values, lines, digits, numbers, kind};
        rows[c] = text_rows(&table, text + starts[c], text + starts[c + 1], first[c]);
    }
    return 0;
}
