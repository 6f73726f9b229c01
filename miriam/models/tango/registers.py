"""Registers of Tango's kernels: nvcc 13.0.88 -O3, ``-Xptxas -v``, of the public sources.

One row a kernel, called after its file (an: AlexNet, cn: CifarNet, gru, lstm, rn: ResNet, sn:
SqueezeNet) and its name there.
"""

from __future__ import annotations

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_110")
FOLDS = (1, 2, 4)

_ROWS: dict[str, tuple[int, ...]] = {
    "an.execute3DconvolutionCuda": (61, 39, 40, 40, 40, 31, 39),
    "an.execute3Dconvolutiongroup2Cuda": (63, 31, 39, 39, 39, 31, 40),
    "an.executeFCLayer": (38, 28, 37, 37, 37, 30, 37),
    "an.executeFirstLayer": (62, 31, 39, 39, 39, 31, 39),
    "an.executelrnNormCuda": (44, 39, 39, 39, 39, 40, 40),
    "an.executelrnNormCuda_split": (44, 39, 39, 39, 39, 40, 40),
    "an.executepoolingCuda": (51, 32, 36, 36, 36, 32, 40),
    "cn.ExecuteFifthLayer": (62, 32, 40, 40, 40, 30, 38),
    "cn.ExecuteFirstLayer": (39, 39, 39, 39, 39, 32, 39),
    "cn.ExecuteFourthLayer": (58, 28, 36, 36, 36, 28, 34),
    "cn.ExecuteSecondLayer": (30, 30, 32, 32, 32, 30, 31),
    "cn.ExecuteThirdLayer": (30, 30, 32, 32, 32, 30, 31),
    "cn.pooling1": (18, 19, 18, 18, 18, 19, 38),
    "cn.pooling2": (30, 29, 29, 29, 29, 29, 40),
    "cn.pooling3": (30, 29, 29, 29, 29, 29, 33),
    "gru.GPU_forward_pass_gru": (72, 40, 44, 44, 44, 32, 40),
    "lstm.ExecuteLSTM": (66, 68, 60, 60, 60, 52, 48),
    "rn.execute3DconvolutionCuda": (61, 39, 40, 40, 40, 31, 40),
    "rn.execute3DconvolutionCuda_split": (64, 48, 48, 48, 48, 48, 40),
    "rn.executeBnNormLayerCUDA": (26, 25, 25, 25, 25, 26, 26),
    "rn.executeBnNormLayerCUDA_split": (42, 40, 40, 40, 40, 34, 38),
    "rn.executeEltWiseLayerCUDA": (12, 12, 12, 12, 12, 12, 12),
    "rn.executeEltWiseLayerCUDA_split": (34, 32, 36, 36, 36, 32, 24),
    "rn.executeFCLayerCUDA": (38, 28, 37, 37, 37, 30, 37),
    "rn.executeFirstLayerCUDA": (55, 39, 40, 40, 40, 40, 39),
    "rn.executeReLULayerCUDA": (8, 8, 8, 8, 8, 10, 10),
    "rn.executeReLULayerCUDA_split": (20, 19, 20, 20, 20, 18, 20),
    "rn.executeScaleLayerCUDA": (12, 12, 12, 12, 12, 14, 14),
    "rn.executeScaleLayerCUDA_split": (28, 28, 28, 28, 28, 28, 30),
    "rn.executepoolingCuda": (56, 31, 38, 38, 38, 31, 39),
    "rn.poolingAverageCUDA": (43, 31, 39, 39, 39, 31, 40),
    "sn.ExecuteFirstLayer": (40, 32, 40, 40, 40, 32, 40),
    "sn.ExecuteTenthLayer": (62, 29, 37, 37, 37, 29, 37),
    "sn.Executefire2expand1x1": (58, 28, 36, 36, 36, 28, 36),
    "sn.Executefire2expand3x3": (30, 30, 29, 29, 29, 30, 39),
    "sn.Executefire2squeeze1x1": (60, 28, 36, 36, 36, 28, 40),
    "sn.Executefire3expand1x1": (58, 28, 36, 36, 36, 28, 36),
    "sn.Executefire3expand3x3": (30, 30, 29, 29, 29, 30, 39),
    "sn.Executefire3squeeze1x1": (60, 28, 36, 36, 36, 28, 40),
    "sn.Executefire4expand1x1": (58, 28, 36, 36, 36, 28, 36),
    "sn.Executefire4expand3x3": (30, 30, 29, 29, 29, 30, 39),
    "sn.Executefire4squeeze1x1": (60, 28, 36, 36, 36, 28, 40),
    "sn.Executefire5expand1x1": (58, 28, 36, 36, 36, 28, 36),
    "sn.Executefire5expand3x3": (30, 30, 29, 29, 29, 30, 39),
    "sn.Executefire5squeeze1x1": (60, 28, 36, 36, 36, 28, 40),
    "sn.Executefire6expand1x1": (58, 28, 36, 36, 36, 28, 36),
    "sn.Executefire6expand3x3": (30, 30, 29, 29, 29, 30, 39),
    "sn.Executefire6squeeze1x1": (60, 28, 36, 36, 36, 28, 40),
    "sn.Executefire7expand1x1": (58, 28, 36, 36, 36, 28, 36),
    "sn.Executefire7expand3x3": (30, 30, 29, 29, 29, 30, 39),
    "sn.Executefire7squeeze1x1": (60, 28, 36, 36, 36, 28, 40),
    "sn.Executefire8expand1x1": (64, 32, 40, 40, 40, 32, 64),
    "sn.Executefire8expand3x3": (30, 30, 29, 29, 29, 30, 39),
    "sn.Executefire8squeeze1x1": (60, 28, 36, 36, 36, 28, 40),
    "sn.Executefire9expand1x1": (64, 32, 40, 40, 40, 32, 64),
    "sn.Executefire9expand3x3": (30, 30, 29, 29, 29, 30, 39),
    "sn.Executefire9squeeze1x1": (60, 28, 36, 36, 36, 28, 40),
    "sn.global_pooling": (60, 30, 38, 38, 38, 32, 36),
    "sn.pooling1": (19, 20, 19, 19, 19, 21, 38),
    "sn.pooling4": (19, 20, 19, 19, 19, 21, 38),
    "sn.pooling8": (19, 20, 19, 19, 19, 21, 38),
}

REGISTERS = {name: dict(zip(ARCHITECTURES, row, strict=True)) for name, row in _ROWS.items()}
"""Per thread, by kernel and architecture."""

STATIC_SHARED_BYTES = {"gru.GPU_forward_pass_gru": 400, "lstm.ExecuteLSTM": 800}
"""The other kernels have none."""
