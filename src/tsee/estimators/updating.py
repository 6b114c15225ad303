"""New rows added to a map while the old ones stay where they are."""

from __future__ import annotations

import copy
import math
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tsee.affinities import Affinities
from tsee.batches import MemoryStore
from tsee.data import blocks
from tsee.distributed import all_agree, all_offset, watched_peers, world_size
from tsee.estimators.automatic import LAYOUT_EXAGGERATION, more_places
from tsee.estimators.checks import check_parameters
from tsee.estimators.parameters import NOT_LEARNED
from tsee.estimators.starting import map_digest
from tsee.exceptions import ModelError, RowError
from tsee.exemplars import Exemplars, choose_points, take
from tsee.files.rows import Rows
from tsee.fitted import PLACED_ROWS, FittedMap, History
from tsee.growing.axes import widened
from tsee.growing.forgetting import check_forget, forget_rows
from tsee.growing.kinds import are_new_kind
from tsee.growing.lesson import GrownNeighborhoods, GrownRows, Outside, find_neighbors, share_of
from tsee.growing.reference import grown_reference
from tsee.metric import PRECOMPUTED
from tsee.neighbors import build_index
from tsee.networks import Network, folded
from tsee.objectives import Sampled
from tsee.placement.novelty import NEIGHBORS
from tsee.preprocessing import Inputs
from tsee.scikit import check_is_fitted
from tsee.training.checkpoint import Checkpoint, data_digest
from tsee.training.growing import Grow
from tsee.training.plan import Plan
from tsee.training.reading import read_batches
from tsee.training.stages import Distill, Session, Stage, run_stages
from tsee.versions import Update, versions_of

__all__ = ["Updated"]

# Steps in which forces settle the new exemplars, per step of the layout of a fit, and epochs in which the network
# learns them, per epoch of a fit. Both start near their end.
STEPS_SHARE, EPOCHS_SHARE = 1 / 7, 1 / 4
# Old exemplars that the network learns again, at least; half as many as there are new rows, if these are more.
REPLAYED = 8192
# The sum of the inputs of a row, whose usual size is 1, beyond which float32 does not hold the squares of distances.
FARTHEST = 1e18


@dataclass(frozen=True)
class _Newcomers:
    """New rows that become exemplars.

    Attributes
    ----------
    numbers : Tensor of shape (m,)
        Their numbers among the new rows of all processes, in ascending order.
    inputs : Tensor of shape (m, d)
    fresh : Tensor of shape (m,), bool
        Which are of a new kind.
    neighbors : Affinities
        Their neighbors among all exemplars; of all exemplars, if these are needed.
    near : Tensor of shape (z + m,) or None
        How far exemplars are from their nearest others, as `exemplar_distances` takes it.
    """

    numbers: Tensor
    inputs: Tensor
    fresh: Tensor
    neighbors: Affinities
    near: Tensor | None

    @property
    def own_neighbors(self) -> Affinities:
        """The neighbors of the new rows only."""
        first = len(self.neighbors.indices) - len(self.numbers)
        return Affinities(self.neighbors.indices[first:], self.neighbors.probabilities[first:])


class Updated:
    """What an estimator with exemplars that were laid out does with new rows."""

    def update(self: Any, X: Any, *, hold: float = 1.0, forget: Any = None) -> Any:
        """A new fitted estimator whose map also has new rows; this one stays as it is.

        New rows become exemplars, up to ``n_exemplars`` of them in all, or as many as ``fit`` would take. When
        there is no more room, only rows of a new kind still do, in proportion, and the others are placed. Rows
        of a kind that the map has start where they would be placed. Rows of a new kind find free room near what
        they are most like. Then forces settle all of them among the old exemplars. The network learns the
        new positions, and old ones again. Of the old data, only the exemplars in the model are needed.

        The rows of all versions are numbered in order: ``embedding_`` has the old rows, then the new ones.

        Parameters
        ----------
        X : array, DataFrame, Arrow table, tensor, sparse matrix or path, of shape (n_new, n_features)
            The new rows, with the features of ``fit``; of a table, with its columns.
        hold : float, default 1.0
            How much the old exemplars are held where they are: 1 does not move them, 0 leaves them as free as the new
            ones. Less than 1 takes longer, since their neighbors are searched for again.
        forget : int or array-like of int or bool, optional
            Rows that leave the map first. An int is an age: 1 is the last update (``fit`` if there was none), 2 the
            one before, and so on; rows of this age and older leave. A list has row numbers, or one boolean for each
            row.

        Returns
        -------
        DtSEE or HotSEE
            Fitted; ``update_`` says what happened.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from tsee import DtSEE
        >>> X = load_digits().data
        >>> see = DtSEE(max_epochs=1, random_state=0).fit(X[:1500])
        >>> grown = see.update(X[1500:])
        >>> grown.embedding_.shape, bool((grown.embedding_[:1500] == see.embedding_).all())
        ((1797, 2), True)
        >>> grown.update_.n_exemplars, grown.update_.moved_95
        (297, 0.0)
        """
        check_is_fitted(self)
        check_parameters(self)
        held = isinstance(hold, int | float | np.number) and not isinstance(hold, bool) and 0 <= hold <= 1
        if not held:
            raise ValueError(f"The 'hold' parameter of update must be a number from 0 to 1. Got {hold!r} instead.")
        self._check_can_grow()
        chosen = check_forget(forget, sum(self.map_.row_counts))
        grown = copy.copy(self)
        with watched_peers():
            return grown._adopt(grown._grown(self._check_new(X), float(hold), chosen))

    @property
    def update_(self: Any) -> Update:
        """What the last update did."""
        check_is_fitted(self)
        if not self.map_.updates:
            raise AttributeError("There is no 'update_': the map has not been updated. update(X) returns one that is.")
        return self.map_.updates[-1]

    @property
    def versions_(self: Any) -> np.ndarray:
        """Which version each row of ``embedding_`` came with: 0 for ``fit``, 1 for the first update, and so on."""
        check_is_fitted(self)
        return versions_of(np.arange(sum(self.map_.row_counts)), self.map_.row_counts)

    def _check_can_grow(self: Any) -> None:
        exemplars = self.map_.exemplars
        if self.map_.preprocessing.metric == PRECOMPUTED:
            raise ModelError(
                'A map of metric="precomputed" cannot be updated, since it has no features: fit a map of all distances.'
            )
        if exemplars is None or not self._is_refined(exemplars):
            raise ModelError(
                f"This {type(self).__name__} cannot be updated: only maps whose exemplars are points that were laid "
                'out can be (exemplars="points", contrast="sampled", refinement above 0, and at least 10 of them).'
            )

    def _grown(self: Any, rows: Any, hold: float, forget: int | np.ndarray | None) -> FittedMap:
        """The map with new rows. A collective."""
        from tsee.growing.room import starting_positions  # imports more of scipy than a fit needs

        before: FittedMap = self.map_
        _check_near(Inputs(rows, before.preprocessing))
        base = widened(forget_rows(before, forget, least=10), rows)
        old = base.exemplars
        assert old is not None
        assert old.positions is not None
        assert old.indices is not None
        start, n_new = all_offset(rows.shape[0])
        all_agree(
            {
                "the model": map_digest(before),
                "the 'hold' parameter": hold,
                "the 'forget' parameter": None if forget is None else np.asarray(forget).tolist(),
            }
        )
        has_places = isinstance(base.network, Network) and base.network.n_places > 0
        all_lists = hold < 1 or has_places
        n_replayed = len(old) if all_lists else min(len(old), max(REPLAYED, n_new // 2))
        own_share = share_of(n_replayed)
        plan = self._plan(own_share.stop - own_share.start + rows.shape[0])
        inputs = Inputs(rows, base.preprocessing)
        newcomers = self._choose_newcomers(base, inputs, rows, plan, n_new, all_lists=all_lists)
        numbers = newcomers.numbers
        n_rows = sum(base.row_counts)
        exemplars = Exemplars(
            torch.cat([old.inputs, newcomers.inputs]), torch.cat([old.indices, n_rows + numbers]), metric=old.metric
        )
        # The rows that the network learns: some of the old exemplars, then the new rows.
        replayed = choose_points(len(old), n_replayed, plan.generator)[own_share]
        own = torch.full((rows.shape[0],), -1)
        first, last = torch.searchsorted(numbers, torch.tensor([start, start + rows.shape[0]])).tolist()
        own[numbers[first:last] - start] = len(old) + torch.arange(first, last)
        perplexity, _ = self._perplexity_among(len(exemplars) - 1)
        neighborhoods = GrownNeighborhoods(exemplars, perplexity, torch.cat([replayed, own]), newcomers.neighbors)
        n_epochs = max(1, math.ceil(EPOCHS_SHARE * self._distilled(exemplars, plan)[0]))
        objective = Sampled(
            neighborhoods,
            n_rows=plan.n_rows,
            n_epochs=n_epochs,
            jitter=self.jitter,
            exaggeration=1.0,
            device=plan.device,
            generator=plan.draws,
        )
        checkpoint = self._open_update_checkpoint(plan, rows, before, hold, forget)
        resumed = None if checkpoint is None else checkpoint.read()
        store: Any = read_batches(
            GrownRows(old.inputs[replayed], inputs),
            objective,
            plan,
            on_disk=isinstance(rows, Rows),
        )
        fitted = replace(
            base,
            network=copy.deepcopy(base.network).to(plan.device),
            exemplars=exemplars,
            perplexity=perplexity,
            history=History(),
            row_counts=(*base.row_counts, n_new),
        )
        n_fresh = int(newcomers.fresh.sum())
        stages: list[Stage] = [
            Grow(
                old.positions,
                lambda: starting_positions(old, newcomers.inputs, newcomers.own_neighbors, newcomers.fresh),
                newcomers.own_neighbors if hold == 1 else newcomers.neighbors,
                hold,
                max(1, math.ceil(STEPS_SHARE * self.refinement)),
                LAYOUT_EXAGGERATION if self.exaggeration is None else self.exaggeration,
            ),
            Distill(
                objective,
                n_epochs,
                more_places(n_fresh) if has_places else 0,
                len(old) + torch.nonzero(newcomers.fresh).squeeze(1),
            ),
        ]
        with checkpoint or nullcontext(), closing(store):
            fitted = run_stages(stages, fitted, Session(plan, store, checkpoint, resumed))
        fitted = replace(fitted, network=folded(fitted.network), history=_continued(base.history, fitted.history))
        moved = _moved(base, fitted, self._placement)
        update = Update(
            n_rows=n_new,
            n_new_kind=n_fresh,
            n_exemplars=len(numbers),
            n_placed=n_new - len(numbers),
            n_forgotten=len(before.exemplars or ()) - len(old),
            n_inputs=base.preprocessing.n_inputs - before.preprocessing.n_inputs,
            moved_median=float(np.median(moved)),
            moved_95=float(np.percentile(moved, 95)),
        )
        fitted = replace(fitted, updates=(*base.updates, update))
        kept = isinstance(store, MemoryStore)
        fitted = _calibrated(base, fitted, rows, start, self._placement, newcomers.near, kept=kept)
        if checkpoint is not None:
            checkpoint.finish(complete=fitted.history.complete)
        self._checkpoint = checkpoint
        return fitted

    def _choose_newcomers(
        self: Any, base: FittedMap, inputs: Inputs, rows: Any, plan: Plan, n_new: int, *, all_lists: bool
    ) -> _Newcomers:
        """The new rows that become exemplars. A collective."""
        old = base.exemplars
        assert old is not None
        n_rows = sum(base.row_counts) + n_new
        limit = self._most_points(n_rows, inputs.shape[1], plan)
        share = min(1.0, limit / n_rows)
        numbers = choose_points(n_new, max(1, math.ceil(share * n_new)), plan.generator)
        outside = Outside(rows, base.preprocessing)

        def with_neighbors(numbers: Tensor, first: int) -> tuple[Tensor, Affinities, Tensor]:
            taken = take(inputs, numbers)
            n = len(old) + len(taken)
            perplexity, k = self._perplexity_among(n - 1)
            index = build_index(torch.cat([old.inputs, taken]), k, old.metric)
            return taken, *find_neighbors(index, first, k, perplexity)

        taken, neighbors, squared = with_neighbors(numbers, len(old))
        fresh = are_new_kind(base, taken, take(outside, numbers)[:, 0], neighbors, squared)
        room = max(0, limit - len(old) - int(fresh.sum()))
        others = torch.nonzero(~fresh).squeeze(1)
        dropped = others[torch.randperm(len(others), generator=plan.generator)[room:]]
        if len(dropped):
            kept = torch.ones(len(numbers), dtype=torch.bool).index_fill_(0, dropped, False)
            numbers, fresh = numbers[kept], fresh[kept]
        if len(dropped) or all_lists:
            taken, neighbors, squared = with_neighbors(numbers, 0 if all_lists else len(old))
        near = None
        if squared.shape[1] >= NEIGHBORS:
            near = torch.full((len(old) + len(taken),), torch.nan)
            near[len(near) - len(squared) :] = squared[:, :NEIGHBORS].mean(1)
        return _Newcomers(numbers, taken, fresh, neighbors, near)

    def _open_update_checkpoint(
        self: Any, plan: Plan, rows: Any, before: FittedMap, hold: float, forget: int | np.ndarray | None
    ) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name not in NOT_LEARNED}
        facts = {
            "estimator": type(self).__name__,
            "n_features": rows.shape[1],
            "data": data_digest(rows, np.zeros(rows.shape[1])),
            "model": map_digest(before),
            "hold": hold,
            "forget": None if forget is None else np.asarray(forget).tolist(),
        }
        return Checkpoint(Path(self.checkpoint), plan.identity() | facts | parameters)


def _check_near(inputs: Inputs) -> None:
    """Refuse new rows that are too far from the old ones for a distance, as ``transform`` does."""
    for rows in blocks(len(inputs), PLACED_ROWS):
        with np.errstate(over="ignore"):
            far = torch.nonzero(~(inputs[rows].abs().sum(1) < FARTHEST)).squeeze(1)
        if len(far):
            raise RowError(
                rows.start + int(far[0]), "is too far from the data of fit to be on its map: check its values."
            )


def _continued(before: History, after: History) -> History:
    return History(
        before.loss + after.loss,
        before.learning_rate + after.learning_rate,
        before.refined + after.refined,
        after.complete,
    )


def _moved(base: FittedMap, fitted: FittedMap, how: str | None) -> np.ndarray:
    """How far the old exemplars moved, as shares of the extent of the old map."""
    was = base.exemplar_positions(how)
    now = fitted.exemplar_positions(how)[: len(was)]
    extent = float((was.amax(0) - was.amin(0)).max())
    return ((now - was).norm(dim=1) / (extent or 1.0)).numpy()


def _calibrated(
    base: FittedMap, fitted: FittedMap, rows: Any, start: int, how: str | None, near: Tensor | None, *, kept: bool
) -> FittedMap:
    """The map with the positions of all rows, if they are kept, and what novelty is measured against. A collective."""
    n_old = sum(base.row_counts)
    of_new = fitted.calibrated(rows, n_old + start, Inputs(rows, base.preprocessing) if kept else None, how, near)
    assert of_new.novelty_reference is not None
    assert base.novelty_reference is not None
    assert base.exemplars is not None
    assert of_new.exemplars is not None
    share = n_old / sum(fitted.row_counts)
    reference = grown_reference(
        base.exemplars, of_new.exemplars, base.novelty_reference, of_new.novelty_reference, share
    )
    embedding = None
    if kept and world_size() == 1 and base.embedding is not None and len(base.embedding) == n_old:
        assert of_new.embedding is not None
        embedding = np.concatenate([_carried(base, fitted, how), of_new.embedding])
    return replace(of_new, embedding=embedding, novelty_reference=reference)


def _carried(base: FittedMap, fitted: FittedMap, how: str | None) -> np.ndarray:
    """The positions of old rows, each moved as the exemplar is that is nearest to it on the map."""
    embedding, exemplars = base.embedding, base.exemplars
    assert embedding is not None
    assert exemplars is not None
    was = base.exemplar_positions(how)
    moves = fitted.exemplar_positions(how)[: len(was)] - was
    if not moves.any():
        return embedding
    index = build_index(was, 1)
    carried = np.empty_like(embedding)
    for rows in blocks(len(embedding), PLACED_ROWS):
        nearest, _ = index.query(torch.from_numpy(embedding[rows]), 1)
        carried[rows] = embedding[rows] + moves[nearest[:, 0]].numpy()
    assert exemplars.indices is not None
    carried[exemplars.indices] = fitted.exemplar_positions(how)[: len(was)].numpy()
    return carried
