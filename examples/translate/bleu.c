/* The book's BLEU and corpus BLEU-4. Tokens stand between single spaces, so an n-gram is a run of bytes. */
#include "bleu.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "text.h"

/* Bytes of the n-gram that starts at a token, or 0 where fewer than n tokens are left. */
static size_t ngram_length(const char *start, int n)
{
    const char *cursor = start, *token = start;
    size_t length = 0;
    for (int i = 0; i < n; i++)
        if ((token = text_next_token(&cursor, &length)) == NULL) return 0;
    return (size_t)(token - start) + length;
}

/* How often an n-gram starts at a token of text before limit (NULL: anywhere). */
static int64_t count_ngram(const char *ngram, size_t length, int n, const char *text, const char *limit)
{
    int64_t count = 0;
    size_t token_length, other_length;
    const char *cursor = text;
    const char *start;
    while ((start = text_next_token(&cursor, &token_length)) != NULL && start != limit &&
           (other_length = ngram_length(start, n)) > 0)
        count += other_length == length && memcmp(start, ngram, length) == 0;
    return count;
}

/* n-grams of the prediction that the label has too: the k-th of equal ones needs k of them in the label. */
static int64_t count_matches(const char *prediction, const char *label, int n)
{
    int64_t num_matches = 0;
    size_t token_length, length;
    const char *cursor = prediction;
    const char *start;
    while ((start = text_next_token(&cursor, &token_length)) != NULL && (length = ngram_length(start, n)) > 0)
        num_matches += count_ngram(start, length, n, prediction, start) < count_ngram(start, length, n, label, NULL);
    return num_matches;
}

double bleu(const char *prediction, const char *label, int longest_ngram)
{
    int64_t prediction_length = (int64_t)text_count_tokens(prediction);
    int64_t label_length = (int64_t)text_count_tokens(label);
    if (prediction_length == 0) return label_length == 0 ? 1 : 0;
    double score = exp(fmin(0, 1 - (double)label_length / (double)prediction_length));
    for (int n = 1; n <= longest_ngram && n <= prediction_length; n++) {
        double precision = (double)count_matches(prediction, label, n) / (double)(prediction_length - n + 1);
        score *= pow(precision, pow(0.5, n));
    }
    return score;
}

void corpus_bleu_add(struct corpus_bleu *counts, const char *prediction, const char *reference)
{
    int64_t prediction_length = (int64_t)text_count_tokens(prediction);
    counts->prediction_length += prediction_length;
    counts->reference_length += (int64_t)text_count_tokens(reference);
    for (int n = 1; n <= 4 && n <= prediction_length; n++) {
        counts->num_matches[n - 1] += count_matches(prediction, reference, n);
        counts->num_ngrams[n - 1] += prediction_length - n + 1;
    }
}

double corpus_bleu_score(const struct corpus_bleu *counts)
{
    double log_precision = 0;
    for (int i = 0; i < 4; i++) {
        if (counts->num_matches[i] == 0) return 0;
        log_precision += log((double)counts->num_matches[i] / (double)counts->num_ngrams[i]) / 4;
    }
    double log_penalty = fmin(0, 1 - (double)counts->reference_length / (double)counts->prediction_length);
    return exp(log_penalty + log_precision);
}
