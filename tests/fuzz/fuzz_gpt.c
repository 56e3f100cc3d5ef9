/* What libFuzzer makes up, as the text that the example gpt learns, and a prompt: all windows and the prompt are tokens
 * of the vocabulary, or there is a sentence. The first byte is the context, the second says how long the prompt is. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_file.h"
#include "text.h"

#define PATH "fuzz/file"

static void check_windows(const struct text *text, int64_t context)
{
    RAPT_SCOPE;
    const int64_t starts[] = {0, text->training - context - 1, text->training, text->count - context - 1};
    enum { count = sizeof starts / sizeof *starts };
    rapt_tensor *inputs, *targets;
    text_windows(text, count, starts, context, &inputs, &targets);
    inputs = rapt_contiguous(inputs);
    expect(inputs && targets, "no windows");
    const int64_t *tokens = rapt_data(inputs);
    for (int64_t i = 0; i < count * context; i++)
        expect(tokens[i] >= 0 && tokens[i] < text->vocabulary &&
                   text->byte_of[tokens[i]] == text->bytes[starts[i / context] + i % context],
               "a token of another byte");
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
    if (size < 2 || size - 2 < bytes[1]) return 0;
    const int64_t context = 2 + bytes[0] % 32;
    char prompt[256];
    memcpy(prompt, bytes + 2, bytes[1]);
    prompt[bytes[1]] = '\0';
    fuzz_file_put(PATH, bytes + 2 + bytes[1], size - 2 - bytes[1]);
    const fuzz_memory before = fuzz_begin();
    struct text text = {0};
    fuzz_quiet(true);
    const bool good = text_read(PATH, &text) && text_index(&text, context);
    const bool known = good && text_check_prompt(&text, prompt);
    fuzz_quiet(false);
    if (good) check_windows(&text, context);
    for (const char *p = prompt; known && *p; p++)
        expect(memchr(text.bytes, *p, (size_t)text.count), "a prompt of other bytes");
    free(text.bytes);
    expect_little_memory(before, size);
    fuzz_end(before);
    return 0;
}
