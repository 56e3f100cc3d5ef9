/* BLEU: how much of a translation stands in its reference. */
#ifndef TRANSLATE_BLEU_H
#define TRANSLATE_BLEU_H

#include <stdint.h>

/* All texts here are tokens joined by single spaces, as text_preprocess and vocabulary_decode write them. */

/* Dive into Deep Learning, 10.7, for one sentence: exp(min(0, 1 - len_label / len_prediction)) times the product of
   p_n^(1/2^n) over n = 1 .. min(longest_ngram, len_prediction), where p_n is the share of the prediction's n-grams that
   the label has too, each used once. In 0 .. 1; an empty prediction scores 0 unless the label is empty too. */
double bleu(const char *prediction, const char *label, int longest_ngram);

/* Counts for corpus BLEU-4; starts as {0}. */
struct corpus_bleu {
    int64_t num_matches[4], num_ngrams[4]; /* of the 1-grams to 4-grams of all predictions */
    int64_t prediction_length, reference_length;
};

/* Counts one sentence and its single reference. */
void corpus_bleu_add(struct corpus_bleu *counts, const char *prediction, const char *reference);

/* Papineni et al. 2002, without smoothing: the geometric mean of the four precisions, pooled over the corpus, times
   exp(1 - r / c) where the predictions (c) are shorter than the references (r). In 0 .. 1; 0 if an
   order has no match. */
double corpus_bleu_score(const struct corpus_bleu *counts);

#endif
