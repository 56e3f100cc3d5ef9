/* The text that is learned: bytes of a file, or sentences that are made up, which can only be continued by looking
 * back, at the number and at the animal: "1 owl" → " hoots.", "3 owl" → "s hoot." */
#ifndef GPT_TEXT_H
#define GPT_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include <rapt.h>

enum { longest_sentence = 32 };

struct text {
    unsigned char *bytes;
    int64_t count;
    int64_t training; /* the first 90 %; the rest is for validation */
    int64_t vocabulary;
    int token_of[256]; /* −1: not in the text */
    unsigned char byte_of[256];
    char beginning[2]; /* a prompt where none is given: a new line, or of a text without one its first byte but 0 */
};

/* The bytes of a file, of which one at least is not 0; false after a sentence on stderr. The caller frees them. */
bool text_read(const char *path, struct text *text);

/* Ten thousand made-up sentences; false without memory. */
bool text_make_up(struct text *text);

/* Numbers the bytes that occur; false, after a sentence on stderr, when there is too little text for one window. */
bool text_index(struct text *text, int64_t context);

/* Has the text all bytes of the prompt? False after a sentence on stderr. */
bool text_check_prompt(const struct text *text, const char *prompt);

/* A random sentence; *asked is the length of its first half, after which the rest is certain. Returns its length. */
int text_make_sentence(char sentence[longest_sentence], int *asked);

/* Windows of context + 1 bytes that start at the given places: what the model reads, and what comes one byte later. */
void text_windows(const struct text *text, int64_t count, const int64_t *starts, int64_t context, rapt_tensor **inputs,
                  rapt_tensor **targets);

#endif
