// Elements from data. Data only ever becomes text nodes, attributes and properties: nothing here parses HTML.

const SVG = "http://www.w3.org/2000/svg";

/** el("a", {class: "x", href, on: {click}}, "text", child, [more], null) */
export function el(tag, options = {}, ...children) {
  return fill(document.createElement(tag), options, children);
}

export function svg(tag, options = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), options, children);
}

function fill(node, { on = {}, data = {}, style = {}, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    node.setAttribute(name, value === true ? "" : value);
  }
  for (const [event, listener] of Object.entries(on)) node.addEventListener(event, listener);
  Object.assign(node.dataset, data);
  for (const [name, value] of Object.entries(style)) node.style.setProperty(name, value);
  append(node, children);
  return node;
}

function append(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : String(child));
  }
}

export function replace(node, ...children) {
  node.replaceChildren();
  append(node, children);
  return node;
}

/** Make `old` look like `fresh` by changing only what differs, so that focus, clicks and selections survive. */
export function patch(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  const isAlike = old.nodeName === fresh.nodeName && old.childNodes.length === fresh.childNodes.length;
  if (!isAlike) return old.replaceWith(fresh);
  if (old.nodeType === Node.TEXT_NODE) return (old.data = fresh.data);
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const pairs = [...old.childNodes].map((child, index) => [child, fresh.childNodes[index]]);
  for (const [child, replacement] of pairs) patch(child, replacement);
}

/** Read out by screen readers, seen by no one. */
export function announce(text) {
  document.getElementById("announcer").textContent = text;
}

export function isTyping() {
  const active = document.activeElement;
  return Boolean(active?.matches("input, textarea, select, [contenteditable]"));
}
