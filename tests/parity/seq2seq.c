/* The case of seq2seq.py: Bahdanau's encoder and decoder. */
#include "parity.h"

/* Encoder and decoder as one module, with their names before those of their weights. */
static void bahdanau(parity *p)
{
    static const rapt_module_class kind = {.name = "Translator"};
    const rapt_bahdanau_config sizes = {.vocabulary = 9, .embedding = 4, .hidden = 6, .layers = 2};
    rapt_module *both = rapt_module_new(sizeof *both, &kind);
    rapt_bahdanau_encoder *encoder =
        rapt_module_add_child(both, "encoder", (rapt_module *)rapt_bahdanau_encoder_new(&sizes));
    rapt_bahdanau_decoder *decoder =
        rapt_module_add_child(both, "decoder", (rapt_module *)rapt_bahdanau_decoder_new(&sizes));
    if (!parity_module(p, rapt_module_finish(both))) return;
    rapt_tensor *last = NULL, *weights = NULL;
    rapt_tensor *outputs = rapt_bahdanau_encoder_forward(encoder, parity_input(p, "source"), &last);
    rapt_bahdanau_state state = rapt_bahdanau_decoder_start(decoder, outputs, last, parity_input(p, "valid_lengths"));
    parity_output(p, "y", rapt_bahdanau_decoder_forward(decoder, parity_input(p, "target"), &state, &weights));
    parity_output(p, "state", state.hidden);
    parity_output(p, "weights", weights);
}

const parity_case parity_seq2seq[] = {PARITY(bahdanau), {0}};
