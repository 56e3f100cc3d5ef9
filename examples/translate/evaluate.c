/* Measuring a trained translator, and showing what it does. */
#include "evaluate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bleu.h"
#include "drawn.h"
#include "picture.h"

enum { batch_size = 256, shown = 10 };

struct tally {
    int64_t count, exact;
    struct corpus_bleu bleu;
};

/* Counts one translation; the first ten are printed. */
static void count_translation(struct tally *tally, const char *source, const char *prediction, const char *reference)
{
    bool exact = strcmp(prediction, reference) == 0;
    if (tally->count < shown)
        printf("  %s -> %s%s%s%s\n", source, prediction, exact ? "" : "  (not: ", exact ? "" : reference,
               exact ? "" : ")");
    tally->count++;
    tally->exact += exact;
    corpus_bleu_add(&tally->bleu, prediction, reference);
}

/* A batch of the pairs from `first` on. */
static bool score_batch(struct run *run, const struct batch *batch, int64_t first, struct tally *tally)
{
    RAPT_SCOPE;
    const struct pairs *pairs = run->pairs;
    rapt_tensor *translations =
        model_translate(run->model, batch, pairs->target_vocabulary, (int)run->options->beams, NULL);
    const int64_t *ids = translations ? rapt_data(translations) : NULL;
    for (int64_t i = 0; ids && i < batch->count; i++) {
        char *text = vocabulary_decode(pairs->target_vocabulary, ids + i * pairs->num_steps, pairs->num_steps);
        if (!text) return rapt_fail(RAPT_ERROR_MEMORY, "translate", "no memory for a translation");
        const int64_t row = first + batch->first + i;
        count_translation(tally, pairs->source_texts[row], text, pairs->target_texts[row]);
        free(text);
    }
    return ids != NULL;
}

/* The pairs first … first + count − 1 */
static bool score_pairs(struct run *run, int64_t first, int64_t count, struct tally *tally)
{
    if (count == 0) return true;
    struct batch batch;
    rapt_loader *batches = batches_of(run->pairs, first, count, batch_size, false);
    bool good = batches;
    while (good && batches_next(batches, &batch)) good = score_batch(run, &batch, first, tally);
    rapt_loader_free(batches);
    return good && !rapt_error();
}

/* The sentences of Dive into Deep Learning, 11.4, with the book's BLEU. */
static bool score_book_sentences(struct run *run)
{
    static const char *const sentences[][2] = {{"go .", "va !"},
                                               {"i lost .", "j'ai perdu ."},
                                               {"he's calm .", "il est calme ."},
                                               {"i'm home .", "je suis chez moi ."}};
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++) {
        struct translation translation;
        if (!translate_sentence(run->model, run->pairs->source_vocabulary, run->pairs->target_vocabulary,
                                run->pairs->num_steps, sentences[i][0], (int)run->options->beams, &translation))
            return false;
        printf("%s -> %s, bleu %.3f\n", sentences[i][0], translation.text, bleu(translation.text, sentences[i][1], 2));
        translation_free(&translation);
    }
    return true;
}

bool evaluate(struct run *run)
{
    const struct pairs *pairs = run->pairs;
    struct tally tally = {0};
    bool has_test = pairs->num_test > 0;
    const int64_t count = has_test ? pairs->num_test : pairs->num_validation;
    int64_t first = pairs->num_train + (has_test ? pairs->num_validation : 0);
    rapt_module_train(&run->model->module, false);
    if (run->options->is_book && !score_book_sentences(run)) return false;
    if (count > 0) printf("translations of %s sentences:\n", has_test ? "test" : "validation");
    if (!score_pairs(run, first, count, &tally)) return false;
    const bool attention_drawn = draw_attention(run), drawn = draw_losses(run) && attention_drawn;
    if (!picture_has_files) printf("this build draws no files: it has no cairo\n");
    if (count == 0) {
        printf("this data has neither test nor validation pairs: nothing is scored\n");
        return drawn;
    }
    if (!has_test) printf("this data has no test pairs; the validation pairs stand in for them\n");
    printf("corpus BLEU-4: %.4f\n", corpus_bleu_score(&tally.bleu));
    printf("test exact match: %.2f %%\n", 100.0 * (double)tally.exact / (double)tally.count);
    return drawn;
}
