"""Operations of training, and the time they take."""

import math

from railwright.model import Model
from railwright.sizing.fields import Flop, Seconds
from railwright.sizing.parallel import Recompute, SizingError
from railwright.sizing.transformer import Transformer
from railwright.sizing.units import Quantity, seconds

FORWARD, BACKWARD = 2, 4
"""Operations of a parameter and token: one multiply-add forward, two backward."""


def rough_flops(active_parameters: float, tokens: float) -> Quantity:
    """6·P·D. Source: Kaplan et al. 2020, arXiv 2001.08361, section 2.1; leaves attention out."""
    return Quantity((FORWARD + BACKWARD) * active_parameters * tokens, "FLOP")


def attention_flops_per_token(model: Transformer, sequence: int) -> float:
    """12·L·H·Q·T operations of a token for attention over ``sequence`` tokens, forward and back.

    Source: PaLM, arXiv 2204.02311, appendix B. All scores are counted, also those that a causal
    mask hides; kernels that leave these out do half of it.
    """
    width = (model.query_width + model.value_width) / 2
    return 12 * model.layers * width * sequence


def flops_per_token(model: Transformer, sequence: int) -> float:
    """6·P + 12·L·H·Q·T: what MFU goes by (PaLM, appendix B)."""
    return (FORWARD + BACKWARD) * model.active_parameters + attention_flops_per_token(
        model, sequence
    )


def done_per_token(model: Transformer, sequence: int, recompute: Recompute) -> float:
    """Operations that the hardware does for a token: recomputation is done, and is no progress.

    Full recomputation does all of forward again (8·P in place of 6·P), selective the attention
    scores of forward, a third of all of attention's. Source: Korthikanti et al. 2022, arXiv
    2205.05198, appendix A, by its terms (2·B·s²·h twice); its equation 8 adds three times that.
    """
    scores = attention_flops_per_token(model, sequence)
    useful = flops_per_token(model, sequence)
    again = {
        "none": 0.0,
        "selective": scores / 3,
        "full": FORWARD * model.active_parameters + scores / 3,
    }
    return useful + again[recompute]


class TrainingTime(Model):
    """How long a training takes."""

    flops: Flop
    time: Seconds
    gpu_time: Quantity


def training_time(
    flops: Quantity, gpus: int, peak: Quantity, mfu: float, effective: float = 1.0
) -> TrainingTime:
    """FLOPs / (GPUs · peak · MFU), longer by what is lost to failures.

    ``peak`` is dense and of one GPU; ``effective`` is the share of time that makes progress.
    """
    for name, share in (("MFU", mfu), ("the effective share of time", effective)):
        if not 0 < share <= 1:
            raise SizingError(f"expected {name} over 0 and up to 1, got {share:g}")
    if gpus < 1:
        raise SizingError(f"expected 1 GPU or more, got {gpus}")
    took = (flops / (peak * (gpus * mfu * effective))).value
    return TrainingTime(flops=flops, time=seconds(took), gpu_time=Quantity(gpus * took, "GPU·s"))


def mfu_of(tokens_per_second: float, per_token: float, gpus: int, peak: Quantity) -> float:
    """The share of all GPUs' peak that ``tokens_per_second`` with ``per_token`` operations use."""
    return tokens_per_second * per_token / (gpus * peak.value)


def needed_gpus(flops: Quantity, time: Quantity, peak: Quantity, mfu: float) -> int:
    """GPUs that do ``flops`` in ``time``."""
    return math.ceil((flops / (peak * mfu) / time).number)
