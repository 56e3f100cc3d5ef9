/* What libFuzzer makes up, as one of the files that the example gpt2 reads, the others being good, or as a text: tokens
 * whose bytes are the text's, or one sentence. The first byte says which it is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "byte_pairs.h"
#include "fuzz_file.h"
#include "model.h"

#define FOLDER "fuzz"
#define CONFIG FOLDER "/config.json"
#define VOCABULARY FOLDER "/vocab.json"
#define MERGES FOLDER "/merges.txt"

static const char config[] = "{\"vocab_size\": 263, \"n_positions\": 8, \"n_embd\": 8, \"n_layer\": 1, \"n_head\": 1}";
static const char merges[] = "#version: 0.2\nt h\nth e\n\u0120 t\n\u0120t he\na a\n";
static char vocabulary[8192];

/* All bytes, what the merges make, and the end. */
static void make_vocabulary(void)
{
    static const char others[] = "\"th\": 256, \"the\": 257, \"\\u0120t\": 258, \"he\": 259, \"\\u0120the\": 260, "
                                 "\"aa\": 261, \"<|endoftext|>\": 262}";
    size_t used = 0;
    int next = 256;
    for (int byte = 0; byte < 256; byte++) {
        const bool is_printed = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
        used += (size_t)snprintf(vocabulary + used, sizeof vocabulary - used, "%s\"\\u%04x\": %d",
                                 byte == 0 ? "{" : ", ", (unsigned)(is_printed ? byte : next++), byte);
    }
    snprintf(vocabulary + used, sizeof vocabulary - used, ", %s", others);
}

static void check_text(const struct byte_pairs *pairs, const char *text, size_t size)
{
    int64_t count = 0;
    size_t at = 0;
    int64_t *tokens = byte_pairs_encode(pairs, text, size, &count);
    expect(!tokens == !!rapt_error(), "neither tokens nor an error, or both");
    for (int64_t i = 0; i < count; i++) {
        const struct byte_string *token = byte_pairs_token(pairs, tokens[i]);
        expect(token, "a token without bytes");
        if (size == 0) continue; /* the end token */
        expect(token->length <= size - at && memcmp(text + at, token->bytes, token->length) == 0, "other bytes");
        at += token->length;
    }
    expect(!tokens || at == size, "fewer bytes");
    free(tokens);
}

static void read_config(void)
{
    rapt_gpt_config read;
    const bool good = config_read(FOLDER, &read);
    expect(good == !rapt_error(), "neither a configuration nor an error, or both");
    expect(!good || (read.vocabulary > 0 && read.context > 0 && read.hidden > 0 && read.layers > 0 && read.heads > 0 &&
                     read.feed_forward >= 0 && read.norm_epsilon > 0),
           "a size that cannot be");
}

static void read_pairs(const char *text, size_t size)
{
    struct byte_pairs pairs = {0};
    const bool good = byte_pairs_read(&pairs, FOLDER);
    expect(good == !rapt_error(), "neither a vocabulary nor an error, or both");
    if (good) check_text(&pairs, text, size);
    byte_pairs_free(&pairs);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
    if (size < 1) return 0;
    if (!vocabulary[0]) make_vocabulary();
    fuzz_file_put(CONFIG, config, strlen(config));
    fuzz_file_put(VOCABULARY, vocabulary, strlen(vocabulary));
    fuzz_file_put(MERGES, merges, strlen(merges));
    static const char *const paths[] = {CONFIG, VOCABULARY, MERGES};
    const int kind = bytes[0] % 4;
    if (kind < 3) fuzz_file_put(paths[kind], bytes + 1, size - 1);
    const fuzz_memory before = fuzz_begin();
    if (kind == 0)
        read_config();
    else
        read_pairs((const char *)bytes + 1, size - 1);
    expect_little_memory(before, size + strlen(vocabulary));
    rapt_clear_error();
    fuzz_end(before);
    return 0;
}
