"""A fit as a list of stages, each of which takes a fitted map and returns a better one.

With the sampled form and rows as exemplars there are two: `LayOut` finds positions of the exemplars without a network,
and `Distill` makes the network learn them. Every other fit has one, `Train` the network by the objective.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from tsee.batches import Batch, Store
from tsee.distributed import all_interrupted, all_max, all_sum, rank, world_size
from tsee.exceptions import TrainingWarning, warn
from tsee.exemplars import choose_centers
from tsee.fitted import FittedMap, History, Placement
from tsee.layout import Descent, Guide, Movement, large_shape, lay_out
from tsee.networks import FlatteningNetwork, Network
from tsee.objectives import Distillation, Objective, Sampled
from tsee.progress import progress_bar
from tsee.training.checkpoint import Checkpoint, State
from tsee.training.found import laid_out
from tsee.training.loop import Loss, train
from tsee.training.optimizers import check_like, make_optimizer
from tsee.training.plan import Plan
from tsee.training.precision import bfloat16_layers
from tsee.training.run import Run, RunState
from tsee.values import need

__all__ = ["MANY_EXEMPLARS", "Distill", "LayOut", "Laying", "Session", "Stage", "Train", "is_dense", "run_stages"]

# The share of a training after which the spare dimensions are gone.
FLAT_AFTER = 0.5
# After training, the scores of places are multiplied by the first number, and by up to the second if places are more
# than the third: noise made rows less certain of their place than they are without it. Few places lie so far apart
# that a sharper choice among them shows.
SHARPER, SHARPEST, FEW_PLACES = 2.0, 4.0, 256
# Places are a multiple of this.
PLACES_STEP = 16
# Up to this many rows per exemplar, or with this many exemplars, a position among exemplars is better than the
# network's. The 1-NN error of MNIST with 3 rows per exemplar is 4.8 % against 6.0; with 15, and 4,000 exemplars, it is
# 9.0 against 8.4.
ROWS_PER_EXEMPLAR, MANY_EXEMPLARS = 4, 2**16


@dataclass(frozen=True)
class Session:
    """What the stages of one fit share.

    Attributes
    ----------
    plan : Plan
    store : Store
        The rows of this process.
    checkpoint : Checkpoint or None
        Where the state is kept.
    resumed : State or None
        Where an earlier fit stopped.
    watch : callable or None
        Called after each step with its run. A KeyboardInterrupt that it raises ends training with what was learned.
    """

    plan: Plan
    store: Store
    checkpoint: Checkpoint | None = None
    resumed: State | None = None
    watch: Callable[[Run], None] | None = None

    @contextmanager
    def resuming(self) -> Iterator[None]:
        """Report a state from which nothing can be resumed."""
        try:
            yield
        except (ValueError, KeyError, TypeError, RuntimeError) as error:
            if self.checkpoint is None or self.resumed is None:
                raise
            raise self.checkpoint.damaged(error) from error

    def train(
        self,
        fitted: FittedMap,
        loss_of: Loss,
        *,
        stage: int,
        number: int,
        n_epochs: int,
        refined: bool,
        prepare: Callable[[Batch], Batch] = lambda batch: batch,
        before_step: Callable[[float], None] = lambda progress: None,
    ) -> History:
        """Train the map's network in place, for a stage, and return the history with its epochs."""
        plan, before, network = self.plan, fitted.history, fitted.network
        n_rows = all_sum(self.store.n_rows)
        with self.resuming():
            run = Run(
                network,
                make_optimizer(plan.optimizer, network.parameters()),
                n_steps=plan.n_steps,
                n_epochs=n_epochs,
                n_rows=n_rows,
                state=self.resumed.run if self.resumed is not None and self.resumes(stage) else None,
            )

        def keep(run: Run) -> None:
            if self.checkpoint is not None and self.checkpoint.is_due():
                positions = None if fitted.exemplars is None else fitted.exemplars.positions
                self.checkpoint.write(State(stage, run.state(), before, fitted.placement, positions))
            if self.watch is not None:
                self.watch(run)

        complete = train(
            run,
            loss_of,
            self.store,
            learning_rate=plan.learning_rate,
            generator=plan.draws,
            number=number,
            prepare=prepare,
            before_step=before_step,
            after_step=keep,
            verbose=plan.verbose,
        )
        done = len(before.loss) + len(run.loss)
        if run.interrupted:
            warn(
                f"Training was interrupted after {done} of {len(before.loss) + n_epochs} epochs: what was learned so "
                "far is kept.",
                TrainingWarning,
            )
        return History(
            (*before.loss, *run.loss),
            (*before.learning_rate, *run.learning_rate),
            (*before.refined, *(refined for _ in run.loss)),
            complete,
        )

    def resumes(self, number: int) -> bool:
        """Whether an earlier fit stopped in the stage of this number."""
        return self.resumed is not None and self.resumed.stage == number

    def lay_out(self, descent: Movement, number: int) -> tuple[Tensor, bool]:
        """`lay_out` for the stage of this number, from where an earlier fit stopped; the state is kept."""
        if self.resumed is not None and self.resumes(number):
            with self.resuming():
                descent.resume(self.resumed.run.step, self.resumed.run.tensors)

        def keep(descent: Movement) -> None:
            if self.checkpoint is not None and all_max(self.checkpoint.is_due()):
                self.checkpoint.write(State(number, RunState(step=descent.done, tensors=descent.state())))

        with progress_bar(descent.n_iterations, "layout", "step", verbose=self.plan.verbose) as bar:
            bar.update(descent.done)
            return lay_out(descent, progress=lambda done: bar.update(), keep=keep)


class Stage(Protocol):
    """A part of a fit."""

    def run(self, fitted: FittedMap, number: int, session: Session) -> FittedMap:
        """A better map. ``number`` is the number of the stage."""
        ...


class Laying:
    """A stage that lays exemplars out: its state is a layout's."""


@dataclass(frozen=True)
class Train:
    """Train the network by an objective, while its spare dimensions are pressed flat."""

    objective: Objective
    n_epochs: int

    def run(self, fitted: FittedMap, number: int, session: Session) -> FittedMap:
        network = fitted.network

        def flatten(progress: float) -> None:
            if isinstance(network, FlatteningNetwork):
                network.height = max(0.0, 1 - progress / FLAT_AFTER)

        history = session.train(
            fitted,
            self.objective.loss,
            stage=number,
            number=0,
            n_epochs=self.n_epochs,
            refined=False,
            prepare=self.objective.prepared,
            before_step=flatten,
        )
        return replace(fitted, network=_flat(network), history=history)


@dataclass(frozen=True)
class LayOut(Laying):
    """Lay the exemplars out by the forces of the loss, from the large shape of the data, which also holds them.

    No seed touches the positions, and neither sampling nor the stiffness of a network blurs them. They are auxiliary
    coordinates (Carreira-Perpinan and Vladymyrov, NIPS 2015), which the network then learns.

    Attributes
    ----------
    objective : Sampled
        Knows the neighbors of the exemplars.
    n_iterations : int
    pull : float
        How much the large shape holds them.
    exaggeration : float
        The factor on the attraction at the end.
    guide : Guide or None
        Another map, used instead of the large shape.
    """

    objective: Sampled
    n_iterations: int
    pull: float
    exaggeration: float = 1.0
    guide: Guide | None = None

    def run(self, fitted: FittedMap, number: int, session: Session) -> FittedMap:
        assert fitted.exemplars is not None
        inputs = fitted.exemplars.inputs
        guide, metric = self.guide, fitted.exemplars.metric
        descent = Descent(
            large_shape(inputs, fitted.n_components, metric) if guide is None else guide.shape,
            self.objective.neighborhoods.of_exemplars(),
            pull=self.pull,
            n_iterations=self.n_iterations,
            weights=None if guide is None else guide.weights,
            exaggeration=self.exaggeration,
            order=self.objective.neighborhoods.order(),
        )
        positions, complete = session.lay_out(descent, number)
        positions = positions if guide is None else guide.aligned(positions)
        placement: Placement = "refined" if is_dense(sum(fitted.row_counts), len(inputs)) else "forward"
        return laid_out(replace(fitted, placement=placement), positions, complete=complete)


@dataclass(frozen=True)
class Distill:
    """Train the network to give the exemplars, and the rows among them, the positions that were found without it.

    Attributes
    ----------
    objective : Sampled
        Draws the exemplars of each row.
    n_epochs : int
    n_places : int
        How many places of the layout the network chooses among; 0 leaves the network as it is.
    fresh : Tensor or None
        If given, the network has learned before and goes on from there; ``n_places`` are then added
        among the exemplars of these numbers.
    """

    objective: Sampled
    n_epochs: int
    n_places: int = 0
    fresh: Tensor | None = None

    def run(self, fitted: FittedMap, number: int, session: Session) -> FittedMap:
        assert fitted.exemplars is not None
        assert fitted.exemplars.positions is not None
        network, positions = _flat(fitted.network), fitted.exemplars.positions
        size = max(float(positions.square().sum(1).mean().sqrt()), 1e-6)
        fitted, places, plan = replace(fitted, network=network), None, session.plan
        try:
            if self.fresh is not None and isinstance(network, Network) and network.n_places:
                network.sharpen(1 / _sharpness(network.n_places))
                if self.n_places:
                    network.add_places(self._places(positions[self.fresh], plan), plan.generator)
                places = network.readout.weight.detach().T.cpu().clone()
            elif isinstance(network, Network) and self.n_places:
                places = self._places(positions, plan)
            lesson = Distillation(self.objective, positions, size=size, n_epochs=self.n_epochs, places=places)
        except KeyboardInterrupt:
            if world_size() > 1:  # the second Ctrl-C: the first would have waited for the others
                raise
            warn(
                "Training was interrupted before its first epoch: the layout is kept, but the network has not learned "
                "it.",
                TrainingWarning,
            )
            return replace(fitted, placement="refined", history=replace(fitted.history, complete=False))
        if self.fresh is None and isinstance(network, Network) and places is not None:
            network.choose_among(places.to(plan.device), plan.generator)
        elif self.fresh is None and isinstance(network, Network):  # its first weights draw a map of a size of about 1
            with torch.no_grad():
                network.readout.weight.mul_(size)
        history = session.train(fitted, lesson.loss, stage=number, number=1, n_epochs=self.n_epochs, refined=True)
        if places is not None and isinstance(network, Network):
            network.sharpen(_sharpness(network.n_places))
        return replace(fitted, history=history)

    def _places(self, positions: Tensor, plan: Plan) -> Tensor:
        """Centers of the layout; the first are repeated up to a multiple of 16. A collective."""
        generator, device, n = plan.generator, plan.device, len(positions)
        own = positions[rank() * n // world_size() : (rank() + 1) * n // world_size()]
        found = choose_centers(own, self.n_places, seeding="random", generator=generator, device=device).positions
        # Sums of other lengths round differently for one row than for many.
        return found[torch.arange(-(-len(found) // PLACES_STEP) * PLACES_STEP) % len(found)]


def _sharpness(n_places: int) -> float:
    """What the scores of so many places are multiplied by after training."""
    return min(SHARPER * max(n_places / FEW_PLACES, 1.0) ** 0.5, SHARPEST)


def is_dense(n_rows: int, n_exemplars: int) -> bool:
    """Whether exemplars are so many that a position among them is better than the network's."""
    return n_rows <= ROWS_PER_EXEMPLAR * n_exemplars or n_exemplars >= MANY_EXEMPLARS


def run_stages(stages: Sequence[Stage], fitted: FittedMap, session: Session) -> FittedMap:
    """The map after all stages, from the start or from where an earlier fit stopped."""
    first = 0
    plan, state = session.plan, session.resumed
    if state is not None:
        with session.resuming():
            first, fitted = state.stage, _resumed(fitted, state, stages)
    # A network of the user's own may draw from torch's global generator (dropout): it is put back afterwards.
    lent = torch.random.fork_rng(devices=[plan.device] if plan.device.type == "cuda" else [])
    # A line search needs a smooth function, so conjugate gradient keeps all digits.
    if all_interrupted():  # before anything was learned
        raise KeyboardInterrupt
    with lent, bfloat16_layers(fitted.network, plan.device if plan.optimizer == "adam" else None):
        for number, stage in list(enumerate(stages))[first:]:
            fitted = stage.run(fitted, number, session)
            if not fitted.history.complete:
                break
    return replace(fitted, network=_flat(fitted.network))  # an interrupted fit may have spare dimensions left


def _resumed(fitted: FittedMap, state: State, stages: Sequence[Stage]) -> FittedMap:
    """The map that a checkpoint was written for. Raises ValueError if it was not for such a map."""
    need(state.stage < len(stages), "it has another stage")
    if isinstance(stages[state.stage], Laying):
        need(not state.history.loss and state.run.epoch == 0, "it has another stage")
        return fitted
    distilling = isinstance(stages[state.stage], Distill)
    n_epochs = sum(stage.n_epochs for stage in stages[: state.stage] if isinstance(stage, Train | Distill))
    need(len(state.history.loss) == n_epochs, "it has another number of epochs")
    need(
        (state.positions is not None) == distilling and (distilling or state.placement == "forward"),
        "it has other positions",
    )
    exemplars = fitted.exemplars
    if exemplars is not None and state.positions is not None:
        like = exemplars.inputs.new_zeros((len(exemplars), fitted.n_components))
        check_like({"positions": state.positions}, {"positions": like})
        exemplars = exemplars.replaced(positions=state.positions)
    placement: Any = state.placement
    network = _flat(fitted.network) if state.stage else fitted.network
    return replace(fitted, network=network, exemplars=exemplars, placement=placement, history=state.history)


def _flat(network: nn.Module) -> nn.Module:
    return network.flat() if isinstance(network, FlatteningNetwork) else network
