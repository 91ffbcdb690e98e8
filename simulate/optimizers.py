"""From the gradient of a surrogate to new logits.

Written with operators and in place, so that numpy arrays and torch tensors of any shape are served alike; 'Array' means
either.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from fgrpo.simulate.config import UpdateConfig

Array: TypeAlias = Any


class Optimizer(Protocol):
    """Turns gradients into steps of the logits; holds what it remembers between steps."""

    def ascend(self, logits: Array, gradient: Array) -> None:
        """Moves `logits` in place, upwards along `gradient`, which is used up; both have the same shape."""


class Adam:
    """Adam with bias correction and decoupled weight decay (AdamW), ascending, in place.

    z <- (1 - eta lambda) z + eta m^ / (sqrt(v^) + eps). An action that never had a gradient keeps its logit exactly
    when the weight decay is 0. A zero gradient still moves the others by their momentum.

    Source: [kingma2015adam], Algorithm 1; [loshchilov2019adamw], Algorithm 2.
    """

    def __init__(self, update: "UpdateConfig", zeros: Callable[[], Array]) -> None:
        """Starts with zero moments; `zeros` makes them, in the shape of the logits."""
        self._update = update
        self._steps = 0
        # discounted sums of g and g^2: the moments m and v before their factors 1 - beta, which ascend() applies to
        # scalars; each pass over the actions counts
        self._sum = zeros()
        self._square_sum = zeros()
        self._scratch = zeros()

    def ascend(self, logits: Array, gradient: Array) -> None:
        """Moves `logits` in place by one step; `gradient` is used up."""
        update, scratch = self._update, self._scratch
        beta1, beta2 = update.betas
        self._steps += 1

        self._sum *= beta1
        self._sum += gradient
        self._square_sum *= beta2
        gradient *= gradient
        self._square_sum += gradient

        # m^ = first * sum and sqrt(v^) = root * sqrt(square_sum)
        first = (1.0 - beta1) / (1.0 - beta1**self._steps)
        root = math.sqrt((1.0 - beta2) / (1.0 - beta2**self._steps))
        step = gradient
        step[...] = self._sum
        scratch[...] = self._square_sum
        scratch **= 0.5
        scratch += update.eps / root
        step /= scratch
        step *= update.learning_rate * first / root
        _move(logits, step, update)


class RMSprop:
    """Gradient over the root of its discounted mean square, decoupled weight decay, ascending, in place.

    v <- beta2 v + (1 - beta2) g^2 from 0, without bias correction; z <- (1 - eta lambda) z + eta g / (sqrt(v) + eps).

    Source: [tieleman2012rmsprop].
    """

    def __init__(self, update: "UpdateConfig", zeros: Callable[[], Array]) -> None:
        """Starts with zero mean squares; `zeros` makes them, in the shape of the logits."""
        self._update = update
        self._mean_square = zeros()
        self._scratch = zeros()

    def ascend(self, logits: Array, gradient: Array) -> None:
        """Moves `logits` in place by one step; `gradient` is used up."""
        update, scratch, beta2 = self._update, self._scratch, self._update.betas[1]
        scratch[...] = gradient
        scratch *= gradient
        scratch *= 1.0 - beta2
        self._mean_square *= beta2
        self._mean_square += scratch

        scratch[...] = self._mean_square
        scratch **= 0.5
        scratch += update.eps
        gradient /= scratch
        gradient *= update.learning_rate
        _move(logits, gradient, update)


class SGD:
    """Plain gradient ascent with decoupled weight decay: z <- (1 - eta lambda) z + eta g."""

    def __init__(self, update: "UpdateConfig", zeros: Callable[[], Array]) -> None:
        """Remembers nothing."""
        self._update = update

    def ascend(self, logits: Array, gradient: Array) -> None:
        """Moves `logits` in place by one step; `gradient` is used up."""
        gradient *= self._update.learning_rate
        _move(logits, gradient, self._update)


class SignSGD:
    """Steps of one size along the sign of the gradient, decoupled decay: z <- (1 - eta lambda) z + eta sign(g).

    Source: [bernstein2018signsgd], Algorithm 1.
    """

    def __init__(self, update: "UpdateConfig", zeros: Callable[[], Array]) -> None:
        """Remembers nothing."""
        self._update = update

    def ascend(self, logits: Array, gradient: Array) -> None:
        """Moves `logits` in place by one step; `gradient` is used up."""
        positive, negative = gradient > 0, gradient < 0
        gradient[...] = positive
        # -1 and 0 are exact in whatever precision the library multiplies truth values
        gradient += negative * -1.0
        gradient *= self._update.learning_rate
        _move(logits, gradient, self._update)


def _move(logits: Array, step: Array, update: "UpdateConfig") -> None:
    if update.weight_decay:
        logits *= 1.0 - update.learning_rate * update.weight_decay
    logits += step
