// Start a training: a configuration, what to change in it, how far and how often.

import { get, post } from "./api.js";
import { el, replace } from "./dom.js";
import { setPageKeys } from "./keyboard.js";
import { groupPlace, runPlace } from "./places.js";
import { notice, snippet } from "./widgets.js";

export async function show({ root, query, signal, health }) {
  document.title = "Train · gymnasium-solver";
  setPageKeys({ Escape: ["back to the list", () => (location.hash = "#/")] });
  if (health.read_only) {
    replace(root, el("h1", {}, "Train"), notice("This server only reads; start one without --read-only."));
    return;
  }
  const names = (await get("/configs", {}, { signal })).filter((entry) => !entry.problem).map((entry) => entry.config_id);
  const config = el("input", {
    id: "config",
    list: "configs",
    required: true,
    autocomplete: "off",
    placeholder: "CartPole-v1:ppo",
    value: query.config ?? "",
  });
  const overrides = el("textarea", {
    id: "overrides",
    rows: 4,
    placeholder: "policy_lr=0.001\nn_envs=8",
    spellcheck: "false",
  });
  const steps = el("input", { id: "steps", type: "number", min: 1, placeholder: "as configured" });
  const seeds = el("input", { id: "seeds", type: "number", min: 1, max: 64, value: 1 });
  const go = el("button", { class: "primary" }, "Start training");
  const failure = el("div", { role: "alert" });
  const preview = el("div");
  const field = (label, input, hint) =>
    el(
      "div",
      { class: "field" },
      el("label", { for: input.id }, label),
      input,
      hint && el("span", { class: "muted small" }, hint),
    );
  const form = el(
    "form",
    { class: "stack form" },
    field(
      "Configuration",
      config,
      "ENV:VARIANT; any Gymnasium environment works, those listed come with settings that were measured",
    ),
    el(
      "datalist",
      { id: "configs" },
      names.map((name) => el("option", { value: name })),
    ),
    field("Changes", overrides, "One a line: field=value"),
    el("div", { class: "row" }, field("Environment steps", steps), field("Seeds", seeds)),
    failure,
    go,
  );
  replace(root, el("h1", {}, "Train"), el("div", { class: "columns" }, form, preview));

  config.addEventListener("change", showPreview);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    go.disabled = true;
    replace(failure, notice("Starting: the environment is being built…"));
    try {
      const body = {
        config_id: config.value.trim(),
        overrides: parse(overrides.value),
        seeds: Number(seeds.value) || 1,
      };
      if (steps.value) body.max_env_steps = Number(steps.value);
      const started = await post("/runs", body);
      location.hash = body.seeds > 1 ? groupPlace(started.group) : runPlace(started.run_id);
    } catch (error) {
      replace(failure, notice(error.message, "bad"));
      go.disabled = false;
    }
  });
  if (config.value) showPreview();

  async function showPreview() {
    try {
      const found = await get(
        `/configs/${config.value.trim().split("/").map(encodeURIComponent).join("/")}`,
        {},
        { signal },
      );
      replace(preview, snippet(found.yaml.trimEnd(), `${found.config_id}, resolved`));
    } catch (error) {
      if (!signal.aborted) replace(preview, notice(error.message, "warn"));
    }
  }
}

/** `field=value` a line → an object; values are JSON where they can be read as such. */
function parse(text) {
  const changes = {};
  for (const line of text
    .split("\n")
    .map((one) => one.trim())
    .filter(Boolean)) {
    const [name, ...rest] = line.split("=");
    if (!rest.length) throw new Error(`"${line}" is not field=value`);
    changes[name.trim()] = read(rest.join("=").trim());
  }
  return changes;
}

function read(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
