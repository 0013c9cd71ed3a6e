// An episode played again: frames with a slider, and what the agent did, got and expected at every step.

import { get, runPath } from "./api.js";
import { el, replace } from "./dom.js";
import { number, whole } from "./format.js";
import { parsePlace } from "./places.js";
import { strip } from "./strip.js";
import { loading, notice } from "./widgets.js";

const SPEEDS = [0.5, 1, 2, 4];
const FRAMES_PER_SECOND = 30;

export async function show({ id, document: run, container, signal }) {
  const names = run.checkpoints;
  if (!names.length) {
    replace(container, notice("There is no checkpoint to play yet."));
    return null;
  }
  const asked = parsePlace(location.hash).query.checkpoint;
  const checkpoint = el(
    "select",
    { id: "checkpoint" },
    names.map((name) => el("option", { value: name, selected: name === (asked ?? "best") }, name)),
  );
  const seed = el("input", { id: "episode-seed", type: "number", min: 0, placeholder: "any", class: "narrow" });
  const go = el("button", { type: "button", class: "primary" }, "Play an episode");
  const stage = el("div");
  let player = null;
  signal.addEventListener("abort", () => player?.pause());

  go.addEventListener("click", async () => {
    player?.pause();
    go.disabled = true;
    replace(stage, loading("the episode; the environment is being played"));
    try {
      const episode = await get(runPath(id, "episode"), { checkpoint: checkpoint.value, seed: seed.value }, { signal });
      player = makePlayer(episode);
      replace(stage, player.node);
      player.play();
    } catch (error) {
      if (!signal.aborted) replace(stage, notice(error.message, "bad"));
    }
    go.disabled = false;
  });
  replace(
    container,
    el(
      "div",
      { class: "tools" },
      el("label", { for: "checkpoint" }, "Checkpoint"),
      checkpoint,
      el("label", { for: "episode-seed" }, "Seed"),
      seed,
      go,
    ),
    stage,
  );
  return {
    keys: {
      " ": ["play or pause", () => player?.toggle()],
      ArrowLeft: ["one step back", () => player?.step(-1)],
      ArrowRight: ["one step forward", () => player?.step(1)],
    },
  };
}

function makePlayer(episode) {
  const { actions, rewards, values } = episode;
  const frames = withoutGaps(episode.frames ?? []);
  const length = Math.max(actions.length, 1);
  const sums = [];
  rewards.forEach((reward, index) => sums.push((sums[index - 1] ?? 0) + reward));
  let at = 0;
  let timer = null;

  const picture = el("img", { class: "frame", alt: "The environment as it is drawn" });
  const slider = el("input", { type: "range", min: 0, max: length - 1, value: 0, "aria-label": "Step of the episode" });
  const button = el("button", { type: "button", class: "primary play" }, "Play");
  const speed = el(
    "select",
    { "aria-label": "Speed" },
    SPEEDS.map((factor) => el("option", { value: factor, selected: factor === 1 }, `${factor}×`)),
  );
  const now = el("dl", { class: "facts now" });
  const strips = [
    strip("reward", rewards, seek),
    values.some((value) => value !== null) && strip("value", values, seek),
    typeof actions[0] === "number" && strip("action", actions, seek),
  ].filter(Boolean);

  function seek(index) {
    at = Math.max(0, Math.min(length - 1, index));
    if (frames[at]?.startsWith("data:image/")) picture.src = frames[at];
    slider.value = at;
    replace(
      now,
      [
        ["Step", `${at + 1} of ${length}`],
        ["Action", action(actions[at])],
        ["Reward", number(rewards[at])],
        ["Value", number(values[at] ?? null)],
        ["Return so far", number(sums[at])],
      ].map(([name, text]) => el("div", {}, el("dt", {}, name), el("dd", {}, text))),
    );
    for (const one of strips) one.mark(at);
  }
  function pause() {
    clearInterval(timer);
    timer = null;
    button.textContent = "Play";
  }
  function play() {
    if (at >= length - 1) seek(0);
    button.textContent = "Pause";
    clearInterval(timer);
    timer = setInterval(
      () => (at >= length - 1 ? pause() : seek(at + 1)),
      1000 / (FRAMES_PER_SECOND * Number(speed.value)),
    );
  }
  const toggle = () => (timer === null ? play() : pause());
  const step = (by) => {
    pause();
    seek(at + by);
  };
  button.addEventListener("click", toggle);
  slider.addEventListener("input", () => {
    pause();
    seek(Number(slider.value));
  });
  speed.addEventListener("change", () => timer !== null && play());
  seek(0);
  const node = el(
    "div",
    { class: "player" },
    frames.length ? picture : notice("This environment cannot be drawn; its values, actions and rewards are below."),
    el(
      "div",
      { class: "stack" },
      el(
        "p",
        { class: "verdict" },
        `Return ${number(episode.return)} in ${whole(length)} steps`,
        episode.notice && el("span", { class: "muted" }, ` ${episode.notice}`),
      ),
      el(
        "div",
        { class: "row" },
        button,
        el("button", { type: "button", "aria-label": "Step back", on: { click: () => step(-1) } }, "‹"),
        el("button", { type: "button", "aria-label": "Step on", on: { click: () => step(1) } }, "›"),
        speed,
      ),
      slider,
      now,
      strips.map((one) => one.node),
    ),
  );
  return { node, play, pause, toggle, step };
}

/** Of a long episode not every step has a frame; the one before it stays. */
function withoutGaps(frames) {
  let last = null;
  return frames.map((frame) => (last = frame ?? last));
}

function action(value) {
  return Array.isArray(value)
    ? `[${value
        .flat()
        .map((one) => number(one, 3))
        .join(", ")}]`
    : number(value, 3);
}
