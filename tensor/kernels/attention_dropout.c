/* Which weights of attention dropout leaves, drawn for rows of a tile; the same for both element types. */
#include "attention_dropout.h"

#include <string.h>

#include "loop.h"
#include "philox_words.h"

enum { blocks_at_once = 64, draws_at_once = 4 * blocks_at_once };

/* kept[i] = 1 where dropout leaves what draw start + i of the mask decides, else 0. */
static void draw_kept(const rapt_raw_mask *mask, int64_t start, int64_t count, uint8_t *kept)
{
    const rapt_philox_chance chance = rapt_philox_chance_of(mask->keep);
    for (int64_t done = 0; done < count;) {
        uint32_t words[draws_at_once];
        uint8_t hits[draws_at_once];
        const int64_t skipped = (start + done) & 3;
        const uint64_t block = mask->random.offset + (uint64_t)((start + done) / 4);
        const int64_t wanted = (skipped + count - done + 3) / 4,
                      blocks = wanted < blocks_at_once ? wanted : blocks_at_once;
        rapt_philox_words(mask->random.seed, block, blocks, words);
        RAPT_SIMD for (int64_t i = 0; i < 4 * blocks; i++) hits[i] = (uint8_t)rapt_philox_is_hit(words[i], chance);
        const int64_t made = 4 * blocks - skipped, left = count - done, taken = made < left ? made : left;
        memcpy(kept + done, hits + skipped, (size_t)taken);
        done += taken;
    }
}

void RAPT_AT_LEVEL(rapt_rows_dropout)(const rapt_raw_mask *mask, rapt_score_row row, int64_t rows, rapt_key_range keys,
                                      uint8_t *kept, int64_t stride)
{
    const int64_t queries = mask->queries + mask->more_queries, all_keys = mask->keys + mask->more_keys;
    const int64_t start = mask->first_draw + ((row.item * mask->heads + row.head) * queries + row.query) * all_keys;
    const int64_t count = keys.last - keys.first;
    if (rows == 1 || rows * all_keys > draws_at_once) {
        for (int64_t i = 0; i < rows; i++) draw_kept(mask, start + i * all_keys + keys.first, count, kept + i * stride);
        return;
    }
    uint8_t of_all[draws_at_once];
    draw_kept(mask, start, rows * all_keys, of_all);
    for (int64_t i = 0; i < rows; i++) memcpy(kept + i * stride, of_all + i * all_keys + keys.first, (size_t)count);
}
