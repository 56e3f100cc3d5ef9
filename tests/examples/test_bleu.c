/* Tests of examples/translate/bleu.c. */
#include <criterion/criterion.h>
#include <math.h>

#include "bleu.h"

static void expect_near(double value, double expected, double tolerance)
{
    cr_expect(fabs(value - expected) <= tolerance, "%.9f is not %.9f", value, expected);
}

Test(bleu, of_the_book)
{
    expect_near(bleu("va !", "va !", 2), 1, 0);
    expect_near(bleu("il est mouillé .", "il est calme .", 2), 0.658037, 5e-7);
    expect_near(bleu("je perdu .", "j'ai perdu .", 2), 0.686589, 5e-7);
    expect_near(bleu("je suis certain .", "je suis chez moi .", 2), 0.512480, 5e-7);
    expect_near(bleu("je suis calme .", "je suis chez moi .", 2), 0.512480, 5e-7);
    expect_near(bleu("je suis calme .", "il est calme .", 2), 0.537285, 5e-7);
    expect_near(bleu("calme .", "il est calme .", 2), 0.367879, 5e-7);
    expect_near(bleu("il court .", "il est calme .", 2), 0, 0);
    expect_near(bleu("A B", "A B C D E F", 2), 0.135335, 5e-7);
}

Test(bleu, multiplies_the_precisions_of_the_books_example)
{
    const char *prediction = "A B B C D", *label = "A B C D E F";
    double expected = exp(1 - 6.0 / 5);
    expect_near(bleu(prediction, label, 1), expected *= pow(4.0 / 5, 1.0 / 2), 1e-15);
    expect_near(bleu(prediction, label, 2), expected *= pow(3.0 / 4, 1.0 / 4), 1e-15);
    expect_near(bleu(prediction, label, 3), expected *= pow(1.0 / 3, 1.0 / 8), 1e-15);
    expect_near(bleu(prediction, label, 4), 0, 0);
}

Test(bleu, at_the_edges)
{
    expect_near(bleu("", "va !", 2), 0, 0);
    expect_near(bleu("va", "", 2), 0, 0);
    expect_near(bleu("", "", 2), 1, 0);
    expect_near(bleu("va", "va", 4), 1, 0);
    expect_near(bleu("va", "vas", 2), 0, 0);
    expect_near(bleu("le le le le", "le chat", 1), sqrt(1.0 / 4), 1e-15);
    expect_near(bleu("a b c d", "a b", 1), sqrt(2.0 / 4), 1e-15);
}

/* Papineni et al. 2002, section 2.1: "the" seven times matches twice at most. */
Test(bleu, clips_counts)
{
    struct corpus_bleu counts = {0};
    corpus_bleu_add(&counts, "the the the the the the the", "the cat is on the mat");
    cr_expect_eq(counts.num_matches[0], 2);
    cr_expect_eq(counts.num_ngrams[0], 7);
    cr_expect_eq(counts.num_matches[1], 0);
    cr_expect_eq(counts.num_ngrams[1], 6);
    expect_near(corpus_bleu_score(&counts), 0, 0);
}

Test(bleu, pools_counts_over_the_corpus)
{
    struct corpus_bleu counts = {0};
    corpus_bleu_add(&counts, "a b c d e", "a b c d f");
    corpus_bleu_add(&counts, "g h i j", "g h i j k l");
    corpus_bleu_add(&counts, "m", "n");
    cr_expect_eq(counts.num_matches[0], 4 + 4 + 0);
    cr_expect_eq(counts.num_ngrams[0], 5 + 4 + 1);
    cr_expect_eq(counts.num_matches[3], 1 + 1);
    cr_expect_eq(counts.num_ngrams[3], 2 + 1);
    cr_expect_eq(counts.prediction_length, 10);
    cr_expect_eq(counts.reference_length, 12);
    double precisions = pow(8.0 / 10 * 6 / 7 * 4 / 5 * 2 / 3, 0.25);
    expect_near(corpus_bleu_score(&counts), exp(1 - 12.0 / 10) * precisions, 1e-15);
}

Test(bleu, of_a_corpus_without_penalty)
{
    struct corpus_bleu counts = {0};
    corpus_bleu_add(&counts, "a b c d e f", "a b c d e");
    expect_near(corpus_bleu_score(&counts), pow(5.0 / 6 * 4 / 5 * 3 / 4 * 2 / 3, 0.25), 1e-15);
}

Test(bleu, of_a_perfect_and_of_an_empty_corpus)
{
    struct corpus_bleu counts = {0};
    expect_near(corpus_bleu_score(&counts), 0, 0);
    corpus_bleu_add(&counts, "", "va !");
    expect_near(corpus_bleu_score(&counts), 0, 0);
    counts = (struct corpus_bleu){0};
    corpus_bleu_add(&counts, "je suis chez moi .", "je suis chez moi .");
    corpus_bleu_add(&counts, "va !", "va !");
    expect_near(corpus_bleu_score(&counts), 1, 1e-15);
}
