// Elements that draw themselves in the size that they have: one for pictures made of shapes, one for time series.

import { render, nothing } from "../../vendor/lit-html/lit-html.js";

/** Calls `.draw(width, height)` for a template, whenever it is given a new one or has another size. */
class Figure extends HTMLElement {
  #draw = null;
  #observer = new ResizeObserver(() => this.#paint());

  set draw(draw) {
    this.#draw = draw;
    this.#paint();
  }

  connectedCallback() {
    this.#observer.observe(this);
  }

  disconnectedCallback() {
    this.#observer.disconnect();
  }

  #paint() {
    const { clientWidth: width, clientHeight: height } = this;
    render(this.#draw && width > 0 ? this.#draw(width, height) : nothing, this);
  }
}

customElements.define("tieline-figure", Figure);
