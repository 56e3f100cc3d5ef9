"""Every file of cases, for those who need them all."""
import attention, gpt, heads, layers, losses, optimizers, seq2seq, transformer
