/* How GPT-2 cuts a text before pairs are merged: words, numbers and marks with the space before them, spaces. */
#ifndef GPT2_PIECES_H
#define GPT2_PIECES_H

#include <stddef.h>

/* The bytes of the first piece of a text, UTF-8 of one byte or more, by the pattern of GPT-2's release:
 * 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ where \s is Unicode's White_Space. */
size_t piece_length(const char *text, size_t size);

#endif
