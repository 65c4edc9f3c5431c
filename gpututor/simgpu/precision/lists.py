"""Which ops CUDA's autocast casts, and how: torch's own lists, as facts.

Source: torch 2.13, include/ATen/autocast_mode.h, macros AT_FORALL_LOWER_PRECISION_FP, AT_FORALL_FP32,
AT_FORALL_FP32_SET_OPT_DTYPE, AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE and AT_FORALL_PROMOTE. A test reads
that header in the installed torch and compares. An op that another release lacks is left out there.
"""

from __future__ import annotations

LOWER_PRECISION = tuple(
    """
    _convolution.deprecated _convolution conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d.input
    conv_transpose3d.input convolution prelu addmm addmv addr matmul einsum mm mv linalg_vecdot linear addbmm baddbmm
    bmm chain_matmul linalg_multi_dot _thnn_fused_lstm_cell _thnn_fused_gru_cell lstm_cell gru_cell rnn_tanh_cell
    rnn_relu_cell _scaled_dot_product_flash_attention scaled_dot_product_attention
    """.split()
)
"""Run in the region's dtype, float16 unless another is asked for."""

FLOAT32 = tuple(
    """
    acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow.Tensor_Scalar pow.Tensor_Tensor
    pow.Scalar softplus layer_norm native_layer_norm rms_norm group_norm frobenius_norm.dim nuclear_norm
    nuclear_norm.dim cosine_similarity poisson_nll_loss cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss
    kl_div l1_loss smooth_l1_loss huber_loss mse_loss margin_ranking_loss multilabel_margin_loss soft_margin_loss
    triplet_margin_loss multi_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp
    upsample_nearest1d _upsample_nearest_exact1d upsample_nearest2d _upsample_nearest_exact2d upsample_nearest3d
    _upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa upsample_trilinear3d
    upsample_bicubic2d _upsample_bicubic2d_aa
    """.split()
)
"""Run in float32."""

FLOAT32_OUT = tuple(
    """
    prod prod.dim_int softmax.int log_softmax.int cumprod cumsum linalg_vector_norm linalg_matrix_norm
    linalg_matrix_norm.str_ord sum sum.dim_IntList
    """.split()
)
"""Read what they are given and write float32, unless the caller names a dtype."""

FLOAT32_APPENDED = {"norm.Scalar": "norm.ScalarOpt_dtype", "norm.ScalarOpt_dim": "norm.ScalarOpt_dim_dtype"}
"""The same through another overload, which takes the dtype last."""

WIDEST = tuple("addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add".split())
"""Run in the widest dtype among their tensors."""

FLOAT16_RECURRENT = tuple(
    f"{mode}.{overload}" for mode in ("lstm", "gru", "rnn_tanh", "rnn_relu") for overload in ("input", "data")
)
"""Recurrent layers run in float16, whatever the region's dtype: cuDNN's one op casts to half by name.

Source: torch, aten/src/ATen/cudnn/AutocastRNN.cpp. Its weights are copied into one flat buffer at every call, so
their casts are not kept for the rest of the region.
"""

REFUSED = "binary_cross_entropy"
"""Refused under autocast. Source: torch, aten/src/ATen/autocast_mode.cpp."""

NOT_IN_ALL_VERSIONS = frozenset({"rms_norm", "linalg_vecdot"})
"""Names that some releases from 2.10 to 2.14 list and others don't."""
