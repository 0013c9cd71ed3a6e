// Light or dark: as the system has it, unless the user chose.

const CHOICE = "gsolve-theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const watchers = new Set();

export function isDark() {
  return document.documentElement.dataset.theme === "dark";
}

/** Called after every change; returns what ends that. */
export function onTheme(watcher) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

export function toggleTheme() {
  localStorage.setItem(CHOICE, isDark() ? "light" : "dark");
  apply();
}

export function apply() {
  document.documentElement.dataset.theme = localStorage.getItem(CHOICE) ?? (system.matches ? "dark" : "light");
  for (const watcher of watchers) watcher();
}

system.addEventListener("change", apply);
