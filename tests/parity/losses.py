"""Cases of the losses, with each reduction."""
from torch.nn import functional as F

from cases import family, integers, normal

add = family("losses")


def probabilities(*shape):
    return lambda random: random.uniform(0.05, 0.95, size=shape)


def distribution(*shape):
    return lambda random: random.dirichlet([1.0] * shape[-1], size=shape[:-1])


for reduction in ("mean", "sum", "none"):
    by = {"reduction": reduction}
    for name, options in [("cross_entropy", {}), ("cross_entropy_smoothing", {"label_smoothing": 0.1}),
                          ("cross_entropy_ignore", {"ignore_index": 2}),
                          ("cross_entropy_smoothing_ignore", {"label_smoothing": 0.3, "ignore_index": 2})]:
        add(f"{name}_{reduction}", None, lambda module, x, targets, options={**options, **by}:
            F.cross_entropy(x, targets, **options), x=normal(9, 5), targets=integers(0, 5, 9))
    add(f"nll_ignore_{reduction}", None, lambda module, x, targets, by=by:
        F.nll_loss(x, targets, ignore_index=2, **by), x=normal(9, 5), targets=integers(0, 5, 9))
    for name, function in [("mse", F.mse_loss), ("l1", F.l1_loss),
                           ("huber", lambda x, target, **by: F.huber_loss(x, target, delta=0.7, **by))]:
        add(f"{name}_{reduction}", None, lambda module, x, target, function=function, by=by: function(x, target, **by),
            x=normal(4, 5), target=normal(4, 5))
    add(f"bce_with_logits_{reduction}", None, lambda module, x, target, by=by:
        F.binary_cross_entropy_with_logits(x, target, **by), x=normal(4, 5), target=probabilities(4, 5))
    add(f"kl_div_{reduction}", None, lambda module, x, target, by=by:
        F.kl_div(F.log_softmax(x, -1), target, **by), x=normal(4, 5), target=distribution(4, 5))
