// A line without axes: how a number has moved, beside the number.

import { html, svg } from "../../vendor/lit-html/lit-html.js";

const POINTS = 60;

/** At most so many values, each the mean of those that it stands for; a gap stays a gap only if all of it is one. */
function thinned(values) {
  const size = Math.max(1, Math.ceil(values.length / POINTS));
  const thin = [];
  for (let at = 0; at < values.length; at += size) {
    const part = values.slice(at, at + size).filter((value) => value !== null);
    thin.push(part.length ? part.reduce((sum, value) => sum + value, 0) / part.length : null);
  }
  return thin;
}

export function spark(values, kind = "", width = 72, height = 24) {
  const thin = thinned(values);
  const known = thin.filter((value) => value !== null);
  if (known.length < 2) return "";
  const most = Math.max(...known);
  const least = Math.min(0, ...known);
  const x = (index) => 1 + (index * (width - 4)) / (thin.length - 1);
  const y = (value) => height - 2 - ((value - least) / (most - least || 1)) * (height - 5);
  let way = "";
  let area = "";
  let first = -1;
  let last = -1;
  thin.forEach((value, index) => {
    if (value === null) return;
    const isNext = index > 0 && thin[index - 1] !== null;
    way += `${isNext ? "L" : "M"}${x(index).toFixed(1)} ${y(value).toFixed(1)}`;
    if (!isNext && last >= 0) area += `L${x(last).toFixed(1)} ${height}ZM${x(index).toFixed(1)} ${height}`;
    if (first < 0) area += `M${x(index).toFixed(1)} ${height}`;
    area += `L${x(index).toFixed(1)} ${y(value).toFixed(1)}`;
    first = first < 0 ? index : first;
    last = index;
  });
  area += `L${x(last).toFixed(1)} ${height}Z`;
  return html`<svg class="spark ${kind}" width=${width} height=${height} viewBox="0 0 ${width} ${height}" aria-hidden="true">${
    svg`<path class="area" d=${area}/><path class="way" d=${way}/><circle class="end" cx=${x(last)} cy=${y(thin[last])} r="2.2"/>`}</svg>`;
}
