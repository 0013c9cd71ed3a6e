// Plotly, loaded when a page first draws a curve, in the colours of the theme.

let loading = null;

export function loadPlotly() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = "/static/plotly.min.js";
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => {
      loading = null;
      reject(
        new Error("the script that draws curves did not load; install it with pip install 'gymnasium-solver[web]'"),
      );
    };
    document.head.append(script);
  });
  return loading;
}

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export const palette = () => [1, 2, 3, 4, 5, 6].map((index) => colour(`line-${index}`));

/** `#rrggbb` made transparent. */
export function faint(hex, alpha) {
  const part = (at) => parseInt(hex.slice(at, at + 2), 16);
  return `rgba(${part(1)}, ${part(3)}, ${part(5)}, ${alpha})`;
}

/** Plotly reads tags in its texts; names are not to have any. */
export function label(text) {
  return String(text).replaceAll("<", "‹").replaceAll(">", "›");
}

const CONFIG = { displayModeBar: false, responsive: true, doubleClick: false, scrollZoom: false };

/** Draw or redraw; `axes` are merged into the layout's. */
export async function draw(node, traces, { x = {}, y = {}, shapes = [], annotations = [], legend = false } = {}) {
  const Plotly = await loadPlotly();
  const text = colour("muted");
  const axis = {
    gridcolor: colour("line"),
    zeroline: false,
    linecolor: colour("line"),
    tickfont: { color: text, size: 11 },
    fixedrange: false,
  };
  await Plotly.react(
    node,
    traces,
    {
      margin: { l: 52, r: 10, t: legend ? 26 : 8, b: 30 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "inherit", color: text, size: 11 },
      hovermode: "x unified",
      hoverlabel: {
        bgcolor: colour("surface"),
        bordercolor: colour("line"),
        font: { color: colour("text"), size: 12 },
      },
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
      showlegend: legend,
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { color: colour("text"), size: 12 } },
      xaxis: { ...axis, exponentformat: "SI", hoverformat: ",.0f", nticks: 7, ...x },
      yaxis: { ...axis, exponentformat: "e", nticks: 5, ...y, fixedrange: true },
      shapes,
      annotations,
    },
    CONFIG,
  );
}

export function forget(node) {
  window.Plotly?.purge(node);
}
