"""The parties' models and optimisers in one place, for protocols written out by hand beside the real ones."""

import torch
from torch.nn import functional as F

from tests.nn import small
from vflnn.agreement import Agreement
from vflnn.recipes import from_json, make_optimizer, make_scheduler
from vflnn.working import RandomStream


class ByHand:
    """Built as small.Training builds its parties; nothing of the library's training code runs here."""

    def __init__(self, X, y, agreed, *, bottom="tanh_net", top="sum_top"):
        make_bottom, make_top = getattr(small, bottom), getattr(small, top)
        self.X, self.y = [torch.from_numpy(x) for x in X], torch.from_numpy(y)
        with RandomStream(10).working():
            self.bottoms = [make_bottom((X[0].shape[1],), 3)]
            self.top = make_top((3,) * len(X), 3)
        for k in range(1, len(X)):
            with RandomStream(10 + k).working():
                self.bottoms.append(make_bottom((X[k].shape[1],), 3))
        owned = [[*self.top.parameters(), *self.bottoms[0].parameters()]]
        owned += [list(bottom.parameters()) for bottom in self.bottoms[1:]]
        options = from_json(agreed.optimizer_options)
        self.optimizers = [
            make_optimizer(agreed.optimizer, options, agreed.learning_rate, own) for own in owned
        ]
        self.schedules = [make_scheduler(agreed.scheduler, {}, optimizer) for optimizer in self.optimizers]
        self.agreed = agreed

    def batches(self):
        """Row numbers, batch by batch; learning rates move on with the epochs."""
        order = Agreement(self.agreed).order
        for epoch in range(self.agreed.epochs):
            for schedule in self.schedules if epoch else ():
                schedule.step()
            for step in order.steps(epoch):
                yield torch.from_numpy(order.rows(step))

    def output(self, k, rows):
        """H_k, with its graph."""
        return self.bottoms[k](self.X[k][rows])

    def outputs(self, rows):
        """What passive parties send, without graph."""
        return [self.output(k, rows).detach() for k in range(1, len(self.X))]

    def losses(self, rows, received):
        """Loss of each sample, from the active party's own fresh output and received ones."""
        return F.cross_entropy(self.top([self.output(0, rows), *received]), self.y[rows], reduction="none")

    def gradients(self, rows, received):
        """g_k of the mean loss for each passive party."""
        leaves = [output.clone().requires_grad_() for output in received]
        return torch.autograd.grad(self.losses(rows, leaves).sum() / len(rows), leaves)

    def active_step(self, rows, received, weights=None):
        losses = self.losses(rows, received)
        self.optimizers[0].zero_grad()
        ((losses if weights is None else losses * weights).sum() / len(rows)).backward()
        self.optimizers[0].step()

    def passive_step(self, k, rows, gradient):
        self.optimizers[k].zero_grad()
        self.output(k, rows).backward(gradient)
        self.optimizers[k].step()

    @property
    def weights(self):
        """As small.Training names them."""
        states = {"active.top": self.top, "active.bottom": self.bottoms[0]}
        states |= {small.PARTIES[k]: self.bottoms[k] for k in range(1, len(self.X))}
        return {
            f"{owner}.{name}": value.numpy()
            for owner, module in states.items()
            for name, value in module.state_dict().items()
        }
