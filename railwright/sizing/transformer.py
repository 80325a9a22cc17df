"""A decoder-only transformer: how many parameters it has, and what a token costs.

Counts follow the matrices of the published configurations; embeddings, biases and norms are
counted too, so that what comes out is what the authors say (data/models.yaml, and its test).
"""

from functools import cache
from importlib.resources import files as resources
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, model_validator

from railwright.model import Model
from railwright.words import unknown

Count = Annotated[int, Field(gt=0)]


class Experts(Model):
    """A mixture of experts: of ``routed`` each token takes ``per_token``, and all of ``shared``."""

    routed: Count
    per_token: Count
    feed_forward: Count
    shared: Annotated[int, Field(ge=0)] = 0
    dense_layers: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _enough_experts(self) -> "Experts":
        if self.per_token > self.routed:
            raise ValueError(
                f"expected per_token of {self.routed} experts at most, got {self.per_token}"
            )
        return self


class Latent(Model):
    """Multi-head latent attention: keys and values are made from one vector per token."""

    query_rank: Count
    kv_rank: Count
    head: Count
    rotary: Count
    value: Count


class Transformer(Model):
    """A model by its configuration. Widths are in elements; ``feed_forward`` is 4 × hidden if not
    given, ``kv_heads`` is ``heads``, and ``head`` is hidden / heads."""

    name: str = "model"
    source: str | None = None
    parameters_published: float | None = Field(default=None, alias="parameters")
    active_published: float | None = Field(default=None, alias="active")
    layers: Count
    hidden: Count
    heads: Count
    kv_heads: Annotated[int, Field(gt=0)] = 0
    head: Annotated[int, Field(gt=0)] = 0
    feed_forward: Annotated[int, Field(gt=0)] = 0
    activation: Literal["gelu", "swiglu"] = "gelu"
    vocabulary: Count
    learned_positions: Annotated[int, Field(ge=0)] = 0
    tied_embeddings: bool = False
    dropout: bool = False
    latent: Latent | None = None
    experts: Experts | None = None

    @model_validator(mode="before")
    @classmethod
    def _filled(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        given: dict[str, Any] = dict(data)
        hidden, heads = given.get("hidden"), given.get("heads")
        if isinstance(hidden, int) and isinstance(heads, int) and heads > 0:
            if "head" not in given and "latent" not in given and hidden % heads:
                raise ValueError(f"expected hidden {hidden} to be a multiple of heads {heads}")
            given.setdefault("head", max(1, hidden // heads))
            given.setdefault("kv_heads", heads)
            given.setdefault("feed_forward", 4 * hidden)
        return given

    @model_validator(mode="after")
    def _heads_are_shared_evenly(self) -> "Transformer":
        if self.heads % self.kv_heads:
            raise ValueError(
                f"expected heads {self.heads} to be a multiple of kv_heads {self.kv_heads}"
            )
        if self.experts is not None and self.experts.dense_layers > self.layers:
            raise ValueError(
                f"expected dense_layers of {self.layers} at most, got {self.experts.dense_layers}"
            )
        return self

    @property
    def expert_layers(self) -> int:
        """Layers whose feed-forward part is a mixture of experts."""
        return self.layers - self.experts.dense_layers if self.experts else 0

    @property
    def has_biases(self) -> bool:
        """GPT and its kin have biases and two vectors per norm, Llama and its kin neither."""
        return self.activation == "gelu"

    @property
    def query_width(self) -> int:
        """Elements of all queries of a token."""
        latent = self.latent
        return self.heads * (latent.head + latent.rotary if latent else self.head)

    @property
    def value_width(self) -> int:
        """Elements of what attention hands on of a token."""
        return self.heads * (self.latent.value if self.latent else self.head)

    @property
    def kv_width(self) -> int:
        """Elements that are kept of a token for its keys and values, in one layer."""
        if self.latent is not None:
            return self.latent.kv_rank + self.latent.rotary
        return 2 * self.kv_heads * self.head

    @property
    def attention_parameters(self) -> int:
        """Parameters of one layer's attention."""
        if self.latent is not None:
            return self._latent_attention(self.latent)
        keys = self.kv_heads * self.head
        weights = 2 * self.hidden * self.query_width + 2 * self.hidden * keys
        biases = self.query_width + 2 * keys + self.hidden if self.has_biases else 0
        return weights + biases

    def _latent_attention(self, latent: Latent) -> int:
        queries = self.hidden * latent.query_rank + latent.query_rank * self.query_width
        down = self.hidden * (latent.kv_rank + latent.rotary)
        up = latent.kv_rank * self.heads * (latent.head + latent.value)
        norms = latent.query_rank + latent.kv_rank
        return queries + down + up + self.value_width * self.hidden + norms

    def feed_forward_parameters(self, width: int) -> int:
        """Parameters of a feed-forward part with ``width`` elements between its matrices."""
        if self.activation == "swiglu":
            return 3 * self.hidden * width
        return 2 * self.hidden * width + width + self.hidden

    @property
    def norm_parameters(self) -> int:
        """Parameters of one norm."""
        return 2 * self.hidden if self.has_biases else self.hidden

    @property
    def dense_layer_parameters(self) -> int:
        """Parameters of a layer without experts."""
        inner = self.feed_forward_parameters(self.feed_forward)
        return self.attention_parameters + inner + 2 * self.norm_parameters

    @property
    def routed_parameters(self) -> int:
        """Parameters of one layer's routed experts: what expert parallelism shares out."""
        if self.experts is None:
            return 0
        return self.experts.routed * self.feed_forward_parameters(self.experts.feed_forward)

    @property
    def common_parameters(self) -> int:
        """Parameters of a layer with experts that every rank has: all but the routed ones."""
        if self.experts is None:
            return self.dense_layer_parameters
        shared = self.experts.shared * self.feed_forward_parameters(self.experts.feed_forward)
        router = self.hidden * self.experts.routed
        return self.attention_parameters + shared + router + 2 * self.norm_parameters

    @property
    def embedding_parameters(self) -> int:
        """Parameters of the embedding at the model's entry, with its positions and its norm."""
        # BLOOM alone has no positions among those with biases, and has a norm after it instead.
        norm = self.norm_parameters if self.has_biases and not self.learned_positions else 0
        return (self.vocabulary + self.learned_positions) * self.hidden + norm

    @property
    def output_parameters(self) -> int:
        """Parameters of the output matrix and the norm before it; tied, the norm alone is new."""
        matrix = 0 if self.tied_embeddings else self.vocabulary * self.hidden
        return matrix + self.norm_parameters

    @property
    def parameters(self) -> int:
        """All parameters: what memory and checkpoints go by."""
        dense = (self.layers - self.expert_layers) * self.dense_layer_parameters
        sparse = self.expert_layers * (self.common_parameters + self.routed_parameters)
        return dense + sparse + self.embedding_parameters + self.output_parameters

    @property
    def active_parameters(self) -> int:
        """Parameters that a token goes through: what computation goes by."""
        if self.experts is None:
            return self.parameters
        idle = self.experts.routed - self.experts.per_token
        unused = idle * self.feed_forward_parameters(self.experts.feed_forward)
        return self.parameters - self.expert_layers * unused

    def kv_bytes_per_token(self, element_bytes: float = 2) -> float:
        """Bytes of KV cache of one token, all layers: 2 · layers · kv_heads · head · bytes."""
        return self.layers * self.kv_width * element_bytes


@cache
def published() -> dict[str, Transformer]:
    """The models that come with railwright, by name, from data/models.yaml."""
    text = (resources("railwright.sizing") / "data" / "models.yaml").read_text(encoding="utf-8")
    document: Any = yaml.safe_load(text)
    return {
        name: Transformer.model_validate({**one, "name": name}) for name, one in document.items()
    }


def by_name(name: str) -> Transformer:
    """The published model ``name``. Raises ValueError that names the nearest there is."""
    found = published().get(name)
    if found is None:
        raise ValueError(unknown("model", name, published()))
    return found
