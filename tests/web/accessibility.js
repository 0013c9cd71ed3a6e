// Asked in the page: which controls have no name, and which text is too faint for its background (WCAG AA, 4.5 to 1).

({
  nameless: () =>
    [...document.querySelectorAll("a, button, input, select, textarea, [role=img]")]
      .filter((node) => !(node.ariaLabel || node.textContent.trim() || node.labels?.length || node.title))
      .map((node) => node.outerHTML),

  faint: () => {
    const parse = (text) => text.match(/[\d.]+/g).map(Number);
    const linear = (part) => (part <= 10 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4);
    const luminance = ([red, green, blue]) => 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
    const behind = (node) => {
      for (; node; node = node.parentElement) {
        const colour = parse(getComputedStyle(node).backgroundColor);
        if ((colour[3] ?? 1) === 1) return colour;
      }
      return [255, 255, 255];
    };
    const found = new Set();
    for (const node of document.querySelectorAll("body *")) {
      const hasText = [...node.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.data.trim());
      const isLeftOut = node.closest("svg, :disabled, .js-plotly-plot, noscript");
      if (!hasText || isLeftOut || !node.checkVisibility()) continue;
      const [one, other] = [luminance(parse(getComputedStyle(node).color)), luminance(behind(node))];
      const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
      if (contrast < 4.5) found.add(`${contrast.toFixed(2)} ${node.className}: ${node.textContent.slice(0, 40)}`);
    }
    return [...found];
  },
});
