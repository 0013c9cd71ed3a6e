// Which curves a run page shows together, and in which order.

/** Curves of one chart, by name and label. */
const together = (title, labels) => ({ title, names: Object.keys(labels), labels });
const REWARD = {
  ...together("Reward", { "train/roll/ep_rew_mean": "training", "val/roll/ep_rew_mean": "evaluation" }),
  isReward: true,
  isWide: true,
  isTall: true,
};
const GRADIENTS = together("Gradient norm by part", {
  "train/metrics/grad_norm/all": "all",
  "train/metrics/grad_norm/trunk": "trunk",
  "train/metrics/grad_norm/actor_head": "actor",
  "train/metrics/grad_norm/critic_head": "critic",
});
const TIMES = together("Seconds per epoch", {
  "train/sys/time_rollout": "rollout",
  "train/sys/time_update": "update",
  "train/sys/time_eval": "evaluation",
});
const VALUES = together("Action values", {
  "train/metrics/q_mean": "mean",
  "train/metrics/q_max": "largest",
  "train/metrics/q_bound": "bound",
});
const RETURNS = together("Values and returns", {
  "train/data/value_mean": "value",
  "train/data/return_mean": "return",
});

const single = (name) => ({ names: [name] });

const GROUPS = [
  { title: "Reward", charts: [REWARD, { ...single("train/roll/ep_len_mean"), isTall: true }] },
  {
    title: "Health of the update",
    charts: [
      ...["kl_divergence", "clip_fraction", "explained_variance", "entropy_relative"].map((name) =>
        single(`train/metrics/${name}`),
      ),
      GRADIENTS,
      ...[
        "update_norm_ratio",
        "grad_clip_fraction",
        "dead_units",
        "td_error",
        "target_distance",
        "action_saturation",
        "ratio_deviation_max",
      ].map((name) => single(`train/metrics/${name}`)),
    ],
  },
  { title: "Losses", charts: ["policy", "value", "entropy", "total"].map((name) => single(`train/loss/${name}`)) },
  {
    title: "Values and exploration",
    charts: [
      VALUES,
      RETURNS,
      ...[
        "train/data/advantage_std",
        "train/metrics/entropy",
        "train/metrics/policy_std",
        "train/metrics/alpha",
        "train/data/action_top_share",
      ].map(single),
      ...[
        "train/metrics/visited_share",
        "train/metrics/bonus_mean",
        "train/roll/ep_bonus_mean",
        "train/data/reward_zero_share",
      ].map(single),
    ],
  },
  { title: "Pace", charts: [single("train/sys/fps"), TIMES, single("train/sys/rss_mb")] },
];

/** The groups with what this run recorded; empty ones are left out. */
export function groupsOf(recorded) {
  const known = new Set(recorded);
  return GROUPS.map(({ title, charts }) => ({
    title,
    charts: charts
      .map((chart) => ({ ...chart, names: chart.names.filter((name) => known.has(name)) }))
      .filter(({ names }) => names.length),
  })).filter(({ charts }) => charts.length);
}

/** `train/metrics/kl_divergence` → `kl divergence` */
export function shortName(name) {
  const words = name.split("/");
  const tail = words.at(-2) === "grad_norm" ? words.slice(-2).join(" ") : words.at(-1);
  const origin = { val: "evaluation ", test: "final " }[words[0]] ?? "";
  return (origin + tail)
    .replaceAll("_", " ")
    .replace("ep rew", "reward")
    .replace("ep len", "episode length")
    .replace("kl", "KL");
}
