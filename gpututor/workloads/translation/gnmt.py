"""GNMT v2, which translates with LSTMs and an attention that sees the whole source at once.

Source of every fact here: NVIDIA/DeepLearningExamples PyTorch/Translation/GNMT at 729963d, files named below.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from gpututor.simgpu.private.operators import LOG_SOFTMAX
from gpututor.workloads.apex_parallel import ApexParallel
from gpututor.workloads.half_weights import HalfWeights
from gpututor.workloads.setting import Job, Setting, Workload
from gpututor.workloads.training import prepared
from gpututor.workloads.translation.gnmt_batches import Batch, batch_of, buckets_of

F = nn.functional
HIDDEN = 1024


class Encoder(nn.Module):
    """Four LSTM layers: the first both ways and packed, the last two with residuals (seq2seq/models/encoder.py)."""

    def __init__(self, embedder: nn.Embedding) -> None:
        super().__init__()
        self.embedder = embedder
        self.first = nn.LSTM(HIDDEN, HIDDEN, bidirectional=True)
        self.later = nn.ModuleList([nn.LSTM(2 * HIDDEN, HIDDEN), nn.LSTM(HIDDEN, HIDDEN), nn.LSTM(HIDDEN, HIDDEN)])

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """(position, pair, 1024); `lengths` lie in the host's memory."""
        x = F.dropout(self.embedder(tokens), 0.2, self.training)
        packed, _ = self.first(nn.utils.rnn.pack_padded_sequence(x, lengths))
        x, _ = nn.utils.rnn.pad_packed_sequence(packed)
        for k, layer in enumerate(self.later):
            out, _ = layer(F.dropout(x, 0.2, self.training))
            x = out + x if k else out
        return x


class Attention(nn.Module):
    """Normalized Bahdanau attention of all targets over all sources in one go (seq2seq/models/attention.py)."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = (nn.Linear(HIDDEN, HIDDEN, bias=False) for _ in range(2))
        self.weight, self.scale = nn.Parameter(torch.rand(HIDDEN)), nn.Parameter(torch.full((1,), HIDDEN**-0.5))
        self.bias = nn.Parameter(torch.zeros(HIDDEN))

    def forward(self, query: Tensor, keys: Tensor, lengths: Tensor) -> Tensor:
        """(target position, pair, 1024): the weighed sources; a sum for every pair of positions lies between."""
        keys, query = keys.transpose(0, 1), query.transpose(0, 1)
        n_pairs, n_sources, n_targets = keys.shape[0], keys.shape[1], query.shape[1]
        padding = torch.arange(n_sources, device=keys.device) >= lengths.unsqueeze(1)
        size = (n_pairs, n_targets, n_sources, HIDDEN)
        sums = self.query(query).unsqueeze(2).expand(size) + self.key(keys).unsqueeze(1).expand(size)
        weight = self.weight / self.weight.norm() * self.scale
        scores = torch.tanh(sums + self.bias).matmul(weight)
        scores.masked_fill_(padding.unsqueeze(1).expand(n_pairs, n_targets, n_sources), -65504.0)
        return torch.bmm(F.softmax(scores, dim=-1), keys).transpose(0, 1)


class Decoder(nn.Module):
    """An LSTM layer, attention from it, and three layers that get both, the last two with residuals (decoder.py)."""

    def __init__(self, embedder: nn.Embedding) -> None:
        super().__init__()
        self.embedder, self.attention = embedder, Attention()
        self.first = nn.LSTM(HIDDEN, HIDDEN)
        self.later = nn.ModuleList([nn.LSTM(2 * HIDDEN, HIDDEN) for _ in range(3)])
        self.classifier = nn.Linear(HIDDEN, embedder.num_embeddings)

    def forward(self, tokens: Tensor, sources: Tensor, lengths: Tensor) -> Tensor:
        """Scores (position, pair, vocabulary)."""
        x, _ = self.first(F.dropout(self.embedder(tokens), 0.2, self.training))
        seen = self.attention(x, sources, lengths)
        for k, layer in enumerate(self.later):
            out, _ = layer(F.dropout(torch.cat((x, seen), dim=2), 0.2, self.training))
            x = out + x if k else out
        scores: Tensor = self.classifier(x)
        return scores


class Gnmt(nn.Module):
    """The whole network; both sides share the embedding (seq2seq/models/gnmt.py).

    159,593,523 parameters with 31,794 words. Source: the log pytorch/results/3090_v1/PyTorch_gnmt_FP32 of
    lambdal/deeplearning-benchmark at aa5addb, "Number of parameters".
    """

    def __init__(self, n_words: int) -> None:
        super().__init__()
        embedder = nn.Embedding(n_words, HIDDEN, padding_idx=0)
        self.encoder, self.decoder = Encoder(embedder), Decoder(embedder)

    def forward(self, sources: Tensor, lengths: Tensor, host_lengths: Tensor, targets: Tensor) -> Tensor:
        """Scores (position, pair, vocabulary) of the next target words."""
        scores: Tensor = self.decoder(targets, self.encoder(sources, host_lengths), lengths)
        return scores


def smoothed_loss(scores: Tensor, labels: Tensor) -> Tensor:
    """The label-smoothed loss in fp32, summed; smoothing 0.1, padding left out (seq2seq/train/smoothing.py)."""
    if scores.dtype == torch.float16 and scores.device.type != "cpu":  # CUDA's one kernel for both steps
        logs: Tensor = LOG_SOFTMAX(scores, -1, True)
    else:
        logs = F.log_softmax(scores, dim=-1, dtype=torch.float32)
    real = labels != 0
    right = -logs.gather(dim=-1, index=labels.unsqueeze(1)).squeeze(1)[real]
    even = -logs.mean(dim=-1)[real]
    return (0.9 * right + 0.1 * even).sum()


class Trainer:
    """One step of NVIDIA's trainer (seq2seq/train/trainer.py, fp_optimizers.py): Adam, gradients clipped to 5.

    "amp" is apex O2 here as there: the network in fp16, Adam on fp32 masters. Adam is torch's loop over parameters, all
    that torch had until 2.0; the measured runs used 1.4 to 1.13.
    """

    def __init__(self, setting: Setting, device: str, n_words: int) -> None:
        self.device = device
        inside = replace(setting, precision="fp16") if setting.precision == "amp" else setting
        self.net = prepared(Gnmt(n_words), inside, ApexParallel)
        params = list(self.net.parameters())
        self.half = HalfWeights(params, 8192.0) if setting.precision == "amp" else None
        self.trained = self.half.masters if self.half else params
        self.adam = torch.optim.Adam(self.trained, lr=2e-3, foreach=False)

    def loss(self, batch: Batch) -> Tensor:
        """The batch's loss, and all that the trainer does before it, the count of tokens on the card included."""
        source, target = batch.source.to(self.device), batch.target.to(self.device)
        lengths = batch.source_lengths.to(self.device)
        _count_of(batch.target_lengths - 1)
        _count_of(lengths)
        lengths.cpu()  # for packing; without numerics its values aren't there, so the host's own are used
        scores = self.net(source, lengths, batch.source_lengths, target[:-1])
        return smoothed_loss(scores.flatten(0, 1), target[1:].contiguous().view(-1))

    def train(self, batch: Batch) -> Tensor:
        """One training step."""
        loss = self.loss(batch)
        loss.item()
        loss = loss / batch.source.shape[1]
        if self.half:
            self.half.backward(loss)
        else:
            torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(self.trained, 5.0, foreach=False)
        self.adam.step()
        if self.half:
            self.half.copy_back()
        self.net.zero_grad(set_to_none=False)
        return loss


def _count_of(lengths: Tensor) -> int:
    """Python's own sum, element after element: of a tensor on the card one kernel for each pair."""
    return int(sum(lengths))


def _gnmt(setting: Setting, device: str) -> Job:
    assert setting.batch is not None
    batches = [batch_of(bucket, setting.batch) for bucket in buckets_of(int(setting.options["bucket"]))]
    with torch.device(device):
        trainer = Trainer(setting, device, int(setting.options["words"]))
    n_tokens = sum(b.n_tokens for b in batches)

    def train(k: int) -> Tensor:
        return [trainer.train(b) for b in batches][-1]

    def gradients(k: int) -> None:
        for batch in batches:
            torch.autograd.backward(trainer.loss(batch))
            trainer.net.zero_grad(set_to_none=False)

    def infer(k: int) -> None:  # the network's scores for given translations, as its validation does
        with torch.no_grad():
            for batch in batches:
                trainer.loss(batch)

    return Job({"train": train, "gradients": gradients, "infer": infer}[setting.kind], n_tokens)


GNMT = Workload(
    "gnmt",
    "GNMT v2, WMT16 English-German up to 50 tokens; counts the tokens of both sides",
    "NVIDIA/DeepLearningExamples PyTorch/Translation/GNMT at 729963d",
    "tok",
    128,
    _gnmt,
    {"words": 32320, "bucket": 0},  # 32,320 words of all data (README, "synthetic vocabulary"); 0: a round of all
    long_step=True,
)
