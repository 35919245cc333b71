// Numbers over time, drawn by uPlot; what a line is stands at its end, where the eye arrives, and not in a legend.
//
// `.data` has `times`, `lines` ({values, kind, text, format, isFilled}), `isLog`, `axis` (how values are written),
// `limit`, `bands` (of the ground), `events`, `room` (for the words at the ends), `says` (for who cannot see it).

import { html, render } from "../../vendor/lit-html/lit-html.js";
import { classTag } from "../parts.js";
import { beside, spread } from "./spread.js";

const STEPS_S = [1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600];
const LABEL_PX = 18;
const NEAR_PX = 12;
const LETTER_PX = 7;
const pad = (number) => String(number).padStart(2, "0");

function timeOfDay(moment, stepS) {
  const date = new Date(moment * 1000);
  return `${pad(date.getHours())}:${pad(date.getMinutes())}${stepS < 60 ? `:${pad(date.getSeconds())}` : ""}`;
}

/** Where a scale of tens begins and ends, at least two of them. */
function decades(lines) {
  let least = Infinity;
  let most = -Infinity;
  for (const { values } of lines) {
    for (const value of values) {
      if (value > 0 && value < least) least = value;
      if (value > most) most = value;
    }
  }
  if (!(most > 0)) return [0.001, 1];
  const from = Math.floor(Math.log10(least) + 1e-9);
  return [10 ** from, 10 ** Math.max(from + 2, Math.ceil(Math.log10(most) - 1e-9))];
}

class Chart extends HTMLElement {
  #data = null; #plot = null; #shape = ""; #labels = null; #width = 0; #height = 0;
  #observer = new ResizeObserver(() => this.#draw());

  set data(data) {
    this.#data = data;
    this.#draw();
  }

  connectedCallback() {
    this.setAttribute("role", "img");
    this.#observer.observe(this);
  }

  disconnectedCallback() {
    this.#observer.disconnect();
    this.#drop();
  }

  #drop() {
    this.#plot?.destroy();
    this.#labels?.remove();
    this.#plot = this.#labels = null;
    this.#shape = "";
  }

  #draw() {
    const data = this.#data;
    const { clientWidth: width, clientHeight: height } = this;
    if (!data || width === 0 || height === 0) return;
    this.setAttribute("aria-label", data.says ?? "");
    const theme = document.documentElement.dataset.theme;
    const shape = [theme, data.isLog, data.room, data.lines.map((line) => `${line.kind}${line.isFilled}${line.isHidden}`)].join();
    if (shape !== this.#shape) {
      this.#drop();
      this.#plot = new globalThis.uPlot(this.#options(width, height), this.#columns(), this);
      this.#labels = document.createElement("div");
      this.#labels.className = "ends";
      this.append(this.#labels);
      this.#shape = shape;
    } else {
      if (width !== this.#width || height !== this.#height) this.#plot.setSize({ width, height });
      this.#plot.setData(this.#columns());
    }
    this.#width = width;
    this.#height = height;
    this.#label(null);
  }

  /** Nothing can be drawn at or below zero where the scale is one of tens. */
  #columns() {
    const { times, lines, isLog } = this.#data;
    const fit = (values) => (values.length === times.length ? values : times.map((_time, index) => values[index] ?? null));
    return [times, ...lines.map(({ values }) => (isLog ? fit(values).map((value) => (value > 0 ? value : null)) : fit(values)))];
  }

  #options(width, height) {
    const style = getComputedStyle(this);
    const colour = (name) => style.getPropertyValue(name).trim();
    const font = '12px Plex, system-ui, sans-serif';
    const soft = colour("--soft");
    const line = colour("--line");
    const { isLog, room = 76 } = this.#data;
    const y = isLog ? { distr: 3, log: 10, range: () => decades(this.#data.lines) } : { range: (_plot, least, most) => this.#range(least, most) };
    return {
      width,
      height,
      padding: [12, room, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false, setScale: false }, points: { show: false } },
      scales: { x: { time: this.#data.isTime !== false, range: (_plot, from, to) => this.#data.window ?? [from, to] }, y },
      axes: [
        { stroke: soft, font, size: 26, gap: 7, space: 90, incrs: STEPS_S, grid: { show: false }, ticks: { show: false },
          values: (plot, splits, _axis, _space, stepS) => splits.map((moment) => this.#whole(plot, moment, this.#moment(moment, stepS))) },
        { stroke: soft, font, size: this.#data.axisRoom ?? 53, gap: 7, space: isLog ? 1 : 40, grid: { stroke: line, width: 1 }, ticks: { show: false },
          splits: isLog ? () => this.#tens() : undefined, filter: (_plot, splits) => splits,
          values: (_plot, splits) => splits.map((value) => this.#data.axis(value)) },
      ],
      series: [{}, ...this.#data.lines.map((each) => this.#series(each, colour))],
      hooks: {
        drawClear: [(plot) => this.#ground(plot, colour)],
        draw: [(plot) => this.#events(plot, soft, font, colour)],
        setCursor: [(plot) => this.#label(plot.cursor.idx)],
      },
    };
  }

  /** The words below a moment, if the chart does not end within them. */
  #whole(plot, moment, words) {
    const { min, max } = plot.scales.x;
    const wide = this.#width - (this.#data.axisRoom ?? 53) - (this.#data.room ?? 76);
    const left = ((max - moment) / (max - min)) * wide + (this.#data.room ?? 76);
    return left >= words.length * LETTER_PX / 2 ? words : "";
  }

  #moment(moment, stepS) {
    return this.#data.isTime === false ? `${moment} s` : timeOfDay(moment, stepS);
  }

  #range(least, most) {
    if (this.#data.range) return this.#data.range(least, most);
    return [0, most > 0 ? most * 1.12 : 1];
  }

  #tens() {
    const [from, to] = decades(this.#data.lines);
    const tens = [];
    for (let value = from; value <= to * 1.001; value *= 10) tens.push(value);
    return tens;
  }

  #series({ kind, isFilled, isStepped, dash, width }, colour) {
    const strokes = { c3: "--class-3", c2: "--class-2", c1: "--class-1", c0: "--class-0", accent: "--accent", soft: "--soft" };
    const stroke = colour(strokes[kind] ?? "--steel");
    const dashes = { c1: [7, 4], c0: [2, 3] };
    return {
      stroke,
      width: width ?? (kind === "c3" ? 2.4 : 1.6),
      dash: dash ?? (isFilled ? undefined : dashes[kind]),
      fill: isFilled ? `${stroke}22` : undefined,
      // between two gaps there is no line, so a value that stands alone is a dot
      points: { show: true, size: 4, width: 0, fill: stroke, filter: (plot, number) => lonely(plot.data[number]) },
      paths: isStepped ? globalThis.uPlot.paths.stepped({ align: 1 }) : undefined,
    };
  }

  #ground(plot, colour) {
    const { ctx, bbox } = plot;
    for (const [from, to, name] of this.#data.bands ?? []) {
      const top = Math.max(bbox.top, Math.min(bbox.top + bbox.height, plot.valToPos(to, "y", true)));
      const bottom = Math.max(bbox.top, Math.min(bbox.top + bbox.height, plot.valToPos(from, "y", true)));
      ctx.fillStyle = colour(name);
      ctx.fillRect(bbox.left, top, bbox.width, bottom - top);
    }
  }

  /** What happened, as dashed verticals with their words beside them; words that would lie over anything are left out. */
  #events(plot, soft, font, colour) {
    const { ctx, bbox } = plot;
    const ratio = devicePixelRatio;
    const [from, to] = [plot.scales.x.min, plot.scales.x.max];
    const lines = [];
    for (const { t, text } of this.#data.events ?? []) {
      const x = t < from || t > to ? null : plot.valToPos(t, "x", true);
      // what happened at once is one line, with the first one's words
      if (x !== null && x - (lines.at(-1)?.x ?? -Infinity) >= NEAR_PX * ratio) lines.push({ x, text });
    }
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = soft;
    ctx.lineWidth = 1.3 * ratio;
    ctx.setLineDash([3 * ratio, 3 * ratio]);
    ctx.font = font.replace("12px", `${12 * ratio}px`);
    ctx.textAlign = "left";
    const gap = 6 * ratio;
    const y = this.#belowLimit(plot, bbox.top + 9 * ratio, ratio);
    const places = beside(lines.map(({ x, text }) => ({ x, size: ctx.measureText(text).width })), bbox.left, bbox.left + bbox.width, gap);
    lines.forEach(({ x, text }, number) => {
      ctx.beginPath();
      ctx.moveTo(x, bbox.top - 4 * ratio);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      if (places[number] !== null) ctx.fillText(text, places[number], y);
    });
    const { limit } = this.#data;
    if (limit) {
      const y = plot.valToPos(limit, "y", true);
      ctx.strokeStyle = colour("--bad");
      ctx.setLineDash([6 * ratio, 4 * ratio]);
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
    }
    ctx.restore();
  }

  /** Where words stand that are not to be struck through by the limit: as high as was asked, or right below it. */
  #belowLimit(plot, y, ratio) {
    const { limit } = this.#data;
    const at = limit ? plot.valToPos(limit, "y", true) : -Infinity;
    return Math.abs(at - (y - 4 * ratio)) < 10 * ratio ? at + 15 * ratio : y;
  }

  /** The words at the ends of the lines: the last values, or those under the pointer. */
  #label(index) {
    const plot = this.#plot;
    if (!plot || !this.#labels) return;
    const { lines, times } = this.#data;
    const top = plot.bbox.top / devicePixelRatio;
    const height = plot.bbox.height / devicePixelRatio;
    const left = (plot.bbox.left + plot.bbox.width) / devicePixelRatio;
    const isPointed = index !== null && index !== undefined && index < times.length - 1;
    const labels = [];
    lines.forEach((line, number) => {
      if (line.isHidden) return;
      const last = lastKnown(plot.data[number + 1], 15);
      if (last < 0 && !isPointed) return;
      const value = plot.data[number + 1][last];
      const at = last < 0 ? height : plot.valToPos(value, "y");
      const shown = (line.labels ?? line.values)[isPointed ? index : last];
      labels.push({ line, at: Math.max(8, Math.min(height - 8, at)), words: line.format(shown ?? null) });
    });
    spread(labels, LABEL_PX, 4, height - 4);
    render(html`${labels.map(({ line, words }) => html`<span class="end ${line.kind}">${line.level === undefined ? "" : classTag(line.level)}${line.name ?? ""} ${words}</span>`)}${
      isPointed ? html`<span class="moment">${this.#data.isTime === false ? `${times[index].toFixed(1)} s` : timeOfDay(times[index], 1)}</span>` : ""}`, this.#labels);
    [...this.#labels.querySelectorAll(".end")].forEach((element, number) => {
      element.style.left = `${left + 7}px`;
      element.style.top = `${top + labels[number].at - 9}px`;
    });
    const moment = this.#labels.querySelector(".moment");
    if (moment) {
      moment.style.top = `${top + height + 8}px`;
      moment.style.left = `${Math.max(30, Math.min(left - 30, plot.valToPos(times[index], "x") + plot.bbox.left / devicePixelRatio))}px`;
    }
  }
}

/** Where a value has no neighbour. */
function lonely(values) {
  const found = [];
  for (let index = 0; index < values.length; index += 1) {
    if (values[index] !== null && (values[index - 1] ?? null) === null && (values[index + 1] ?? null) === null) found.push(index);
  }
  return found;
}

/** The last value that is known, if it is one of the last few. */
function lastKnown(values, few) {
  for (let index = values.length - 1; index >= Math.max(0, values.length - few); index -= 1) {
    if (values[index] !== null && values[index] !== undefined) return index;
  }
  return -1;
}

customElements.define("tieline-chart", Chart);
