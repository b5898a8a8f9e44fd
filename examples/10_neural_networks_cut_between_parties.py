"""Lesson 10: a hospital and a laboratory train a neural network cut between them, and the laboratory reads the labels.

Each of them has a bottom model for its own columns; the hospital joins their outputs into scores. Only outputs go up
and gradients come down. They suffice to learn together; and as nothing hides them, they give the diagnoses away: the
laboratory looks at the first gradient that it receives.
"""

import numpy as np
import pandas as pd
import torch
from sklearn.preprocessing import MinMaxScaler

from vfldata import load_breast_cancer_vertical
from vflnn import VFLClassifier
from vflnn.models import make_bottom

SEES = {  # what a message shows its receiver
    "TrainingSettings": "optimiser, learning rate, batches; the seed that batches are drawn with",
    "AskOutputs": "the number of the batch",
    "CutOutputs": "the laboratory's output for every patient of the batch: two numbers",
    "CutGradient": "how the loss changes with each of these numbers; see below",
    "AskScoring": "that patients are evaluated",
    "ScoredOutputs": "outputs for these patients",
    "Joined": "how wide the outputs are",
    "RowsDigest": "a digest of the row IDs",
    "Done": "that the message arrived",
}


def main() -> None:
    data = load_breast_cancer_vertical()
    scaler = (
        MinMaxScaler().set_output(transform="pandas").fit(data.X_train)
    )  # column by column: each party's own
    X, X_test = scaler.transform(data.X_train), scaler.transform(data.X_test)
    active, passive = data.partition
    settings = {"bottom": "MLP2_128", "epochs": 10, "lr": 0.05, "batch_size": 64, "random_state": 0}

    alone = X[data.partition[active]].assign(nothing=0.0)  # a passive party with a constant
    apart = {active: data.partition[active], passive: ["nothing"]}
    one = VFLClassifier(partition=apart, **settings).fit(alone, data.y_train)
    both = VFLClassifier(partition=data.partition, **settings)
    both.fit(X, data.y_train, eval_set=(X_test, data.y_test))
    split = VFLClassifier(partition=data.partition, top="linear", cut_width=8, **settings).fit(
        X, data.y_train
    )
    test_alone = X_test[data.partition[active]].assign(nothing=0.0)
    print(f"Accuracy on {len(X_test)} other patients")
    print(f"  {active} alone                           {one.score(test_alone, data.y_test):.3f}")
    print(f"  together, outputs added up (aggVFL)      {both.score(X_test, data.y_test):.3f}")
    print(f"  together, a linear layer on top          {split.score(X_test, data.y_test):.3f}")
    print(f"(The {active}'s own columns say nearly everything here; the lesson is how, not how much.)")

    print("\nHow it was learnt, outputs added up:")
    print(both.history_.drop(columns="seconds").iloc[[0, 1, 3, 9]].round(3).to_string(index=False))
    show_views(both)

    print(
        "\nWhat the laboratory reads from the first gradient, of all patients, if it knows the diagnosis of one:"
    )
    for top, width in (("sum", None), ("linear", 8)):
        right = labels_read_from_a_gradient(X, data.y_train, data.partition, top, width)
        print(f'  top="{top}": {right:.1%} of the labels')
    print(
        "Each row of a gradient is predicted minus true probability, times the weights of a layer on top: two classes\n"
        "point in opposite directions, and the sign of one number tells them apart. Without a defence this is for\n"
        "labels that the other party may know; see docs/neural.md."
    )


def labels_read_from_a_gradient(
    X: pd.DataFrame, y: pd.Series, partition: dict[str, list[str]], top: str, width: int | None
) -> float:
    """Share of labels that the passive party guesses right: it keeps what arrives at the end of its own model."""
    arrived: list[torch.Tensor] = []

    def keep_gradient(
        module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor
    ) -> None:
        if output.requires_grad:
            output.register_hook(lambda gradient: arrived.append(gradient.clone()))

    def watched(in_shape: tuple[int, ...], width: int) -> torch.nn.Module:
        model = make_bottom("MLP2_128", in_shape, width)
        model.register_forward_hook(keep_gradient)
        return model

    active, passive = partition
    bottom = {active: "MLP2_128", passive: watched}
    model = VFLClassifier(bottom, top, cut_width=width, partition=partition, epochs=1, batch_size=None)
    model.fit(X, y)
    known, side = y.iloc[0], arrived[0][:, 0].numpy() > 0
    guessed = np.where(side == side[0], known, 1 - known)
    return float((guessed == y.to_numpy()).mean())


def show_views(model: VFLClassifier) -> None:
    print("\nWhat each party saw, all of it:")
    for party, table in model.traffic_.groupby("party", sort=False):
        print(f"  {party}")
        for row in table.itertuples():
            print(f"    {row.messages:4} x {row.kind:16} {row.bytes:>9,} bytes   {SEES[row.kind]}")


if __name__ == "__main__":
    main()
