"""What a review of version 1 says and the paper (version 2) does not; version 1 itself was not at hand, so some words may be its own."""

REVIEW_ONLY = (
    (
        "Concentration zone N = 16 to 4096 (elsewhere 32 to 512), benefit of the weight at 64 to 512, regime I at 2 to 8, III at 8192 to 131072",
        "a shaded band without numbers; N = 2, 256, 8192, 131072 are plotted, and quantitative use is declined",
    ),
    ("The peak is typically at N = 4 to 64", "'intermediate N'; the peaks of its figure: A6, A7"),
    (
        "Homogeneous batches at N = 2 explain M_ret in the simulation",
        "homogeneous groups are said of very small N in 3.2 (A9); of the simulation only that Q_pos grows slowly and mass is retained",
    ),
    (
        "The simulation weights by the population's success rate, a best case",
        "the weight uses the sampled group's; no such limitation is stated",
    ),
    (
        "Any algorithm with three given properties shrinks the unsampled-correct mass, whatever the algorithmic choices",
        "not in v2, which says only that the weight leaves clipping, ratios and rewards alone (false of GRPO with ratios: B1)",
    ),
    (
        "Both terms are negative when S_R > 0, which is *the* condition; the drift is the root of concentration",
        "both *can* contribute negatively (C6); the weight is motivated by sampled-correct exposure, S_R goes the same way",
    ),
    (
        "The drift donates its mass to sampled actions",
        "only that unsampled actions lose probability through the baseline",
    ),
    ("*Prompts* of high success are more often reward-positive", "an expectation at a fixed prompt (D4)"),
    (
        "S_R is the average reward, or captures it better than the mean reward does",
        "S_R = R_c P_pos + R_w P_neg, a batch baseline",
    ),
    (
        "Three model families, Qwen2.5-1.5B-Math among them (36.7/74.4 ...)",
        "three models of different scale: Qwen2.5-7B, Qwen3-4B-Base, Llama-3.2-3B-Instruct (v1 had the 1.5B-Math)",
    ),
    (
        "pass@256 +3.5 on math and +3.8 OOD; pass@1 preserved in 15 of 18, OOD +1.1",
        "+3.9 and +4.1 (F3); 9 of 9 on math, 7 of 9 OOD, +1.5 (F4)",
    ),
    ("Group sizes 2, 8, 32; GRPO at three sizes only", "2, 4, 8, 16, 32 (F6)"),
    (
        "gamma .5 and 1; robust to gamma; a smooth method",
        "language models .5, 1, 2, maze .5, 1, simulation 0, 1; a small practical search range (F9)",
    ),
    ("F-GRPO with N = 8 matches or exceeds N = 32", "matches it on pass@256, a modest trade-off in math pass@1 (F7)"),
    (
        "The test may be anti-conservative through correlated rollouts",
        "raw quantiles, which are conservative for independent rollouts (F14)",
    ),
    ("256 samples per problem", "1024 (App P, Q)"),
    (
        "No comparison with differential smoothing, no learning-rate control; F-GRPO has the best OOD pass@256",
        "DS-GRPO and a low learning rate are in Table 3; DS-GRPO has the best pass@256 on both (F9)",
    ),
    ("Figure 1 shows bars of N = 8 against 32", "pass@1 against pass@256 for N = 2, 8, 32"),
    ("F-GRPO leads MATH500 pass@1, 76.2 against 76.7", "Table 11: KL leads with 76.7"),
    ("A sweep over six orders of magnitude", "N = 2 to 131072, 17 sizes, 4.8 decades"),
    ("The rise of the NLL is causally linked, a direct window", "'diagnostic', 'qualitatively consistent' (F8)"),
    ("N = 32 falls in the large-N regime, as a quotation of 3.1", "not in v2; 5.4 says it partially recovers (F6)"),
    (
        "The weight has no effect at N = 131072 since the success estimate is rarely high there",
        "not in v2, and false: the estimate starts at .63",
    ),
    ("No maze", "Section 5.2 and App K (F1)"),
)
"""Pairs: what the review says, what version 2 has instead."""
