// SPDX-License-Identifier: BSD-2-Clause
// Elements of the page, and plots over time. Texts become text nodes, never markup.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = { left: 74, right: 12, top: 10, bottom: 22 };
const LEAST_SECONDS = 60; // that a plot shows
const TICK_SECONDS = [15, 30, 60, 120, 300, 600, 1200, 1800];

function fill(node, attributes, children) {
	for (const [name, value] of Object.entries(attributes || {}))
		node.setAttribute(name, value);
	node.append(...(children || []));
	return node;
}

function el(name, attributes, ...children) {
	return fill(document.createElement(name), attributes, children);
}

function svg(name, attributes, ...children) {
	return fill(document.createElementNS(SVG, name), attributes, children);
}

// A round step, so that about four of them reach the largest value. In powers of 1024 if that is the unit.
function niceStep(most, binary) {
	const unit = binary ? 1024 ** Math.max(0, Math.floor(Math.log(most) / Math.log(1024))) : 1;
	const raw = most / unit / 4, power = 10 ** Math.floor(Math.log10(raw));

	return unit * power * [1, 2, 2.5, 5, 10].find(m => m * power >= raw * 0.999);
}

// Positions from 0 (bottom) to 1, and the values that lines are drawn at.
function linearScale(most, least, binary) {
	const step = niceStep(Math.max(most, least), binary);
	const top = Math.ceil(Math.max(most, least) / step) * step, ticks = [];

	for (let n = 0; n * step <= top * 1.0001; n++)
		ticks.push(n * step);
	return { at: v => v / top, ticks };
}

function logScale(most, smallest) {
	const low = Math.floor(Math.log10(smallest)), high = Math.max(low + 1, Math.ceil(Math.log10(most)));
	const ticks = [];

	for (let power = low; power <= high; power++)
		ticks.push(10 ** power);
	return { at: v => (Math.log10(Math.max(v, 10 ** low)) - low) / (high - low), ticks };
}

// Some series over time. options: title, series ([class, name] each), format, and if wanted: log, binary, least (what
// the axis reaches at least).
class Plot {
	constructor(options) {
		this.options = options;
		this.points = []; // [time, values]; a value is undefined where it is not known
		this.cursor = null; // time that the reader points at
		this.current = options.series.map(() => el("dd", {}, NONE));
		this.at = el("span", { class: "at" });
		this.area = el("div", { class: "plot", tabindex: "0", role: "img" });
		this.root = el("section", { class: "card" }, this.makeHead(), this.area);
		this.root.setAttribute("aria-label", options.title);
		this.listen();
	}

	makeHead() {
		const swatch = c => svg("svg", { viewBox: "0 0 22 8", "aria-hidden": "true" }, svg("path", { class: "series " + c, d: "M0 4H22" }));
		const entries = this.options.series.map(([c, name], i) =>
			el("div", {}, swatch(c), el("dt", {}, name), this.current[i]));

		return el("div", { class: "plot-head" }, el("h2", {}, this.options.title, this.at), el("dl", { class: "legend" }, ...entries));
	}

	listen() {
		this.area.addEventListener("pointermove", e => this.point(this.timeAt(e.offsetX)));
		this.area.addEventListener("pointerleave", () => this.point(null));
		this.area.addEventListener("blur", () => this.point(null));
		this.area.addEventListener("keydown", e => this.onKey(e));
		new ResizeObserver(() => this.draw()).observe(this.area);
	}

	onKey(e) {
		const step = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
		const shown = this.shown();

		if (e.key === "Escape")
			this.point(null);
		if (!step || !shown.length)
			return;
		const at = this.cursor === null ? shown.length - 1 : shown.indexOf(this.nearest()) + step;

		this.point(shown[Math.min(Math.max(at, 0), shown.length - 1)][0]);
		e.preventDefault();
	}

	point(time) {
		this.cursor = time;
		this.draw();
	}

	// Adds a point, and forgets those from before the oldest time.
	add(time, values, oldest) {
		this.points.push([time, values]);
		while (this.points.length && this.points[0][0] < oldest)
			this.points.shift();
	}

	// As much of the last seconds as there is, but some width from the start.
	show(now, seconds) {
		const first = this.points.length ? this.points[0][0] : now;

		this.now = now;
		this.seconds = Math.min(seconds, Math.max(now - first, LEAST_SECONDS));
		this.draw();
	}

	shown() {
		return this.points.filter(([time]) => time >= this.now - this.seconds);
	}

	nearest() {
		const distance = p => Math.abs(p[0] - this.cursor);

		return this.shown().reduce((best, p) => !best || distance(p) < distance(best) ? p : best, null);
	}

	size() {
		return { width: Math.max(this.area.clientWidth, 200), height: Math.max(this.area.clientHeight, 100) };
	}

	timeAt(x) {
		const inner = this.size().width - MARGIN.left - MARGIN.right;

		return this.now - this.seconds * (1 - (x - MARGIN.left) / inner);
	}

	scale(points) {
		const values = points.flatMap(([, v]) => v).filter(v => v !== undefined && (!this.options.log || v > 0));
		const most = values.reduce((a, b) => Math.max(a, b), 0), least = values.reduce((a, b) => Math.min(a, b), Infinity);

		return this.options.log ? logScale(most || 1e-3, most ? least : 1e-5) : linearScale(most, this.options.least || 1, this.options.binary);
	}

	draw() {
		if (!this.now)
			return;
		const { width, height } = this.size(), points = this.shown(), scale = this.scale(points);
		const inner = { w: width - MARGIN.left - MARGIN.right, h: height - MARGIN.top - MARGIN.bottom };
		const x = t => MARGIN.left + inner.w * (1 - (this.now - t) / this.seconds);
		const y = v => MARGIN.top + inner.h * (1 - scale.at(v));
		const parts = [...this.drawTimes(x, inner), ...this.drawValues(scale, y, inner), ...this.drawSeries(points, x, y, inner)];

		this.tell(points);
		if (this.cursor !== null && points.length) {
			const at = x(this.nearest()[0]).toFixed(1);

			parts.push(svg("path", { class: "cursor", d: `M${at} ${MARGIN.top}V${MARGIN.top + inner.h}` }));
		}
		this.area.replaceChildren(svg("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, ...parts));
	}

	drawTimes(x, inner) {
		const step = TICK_SECONDS.find(s => this.seconds / s * 70 <= inner.w) || 1800;
		const clockNow = Date.now() / 1000, labels = [];

		for (let t = Math.ceil((clockNow - this.seconds) / step) * step; t <= clockNow; t += step) {
			const at = x(this.now - (clockNow - t));

			if (at > MARGIN.left + 16 && at < MARGIN.left + inner.w - 12)
				labels.push(svg("text", { x: at.toFixed(1), y: MARGIN.top + inner.h + 17, "text-anchor": "middle" },
					clock(new Date(t * 1000), step < 60)));
		}
		return labels;
	}

	drawValues(scale, y, inner) {
		return scale.ticks.flatMap(v => [
			svg("path", { class: "grid", d: `M${MARGIN.left} ${Math.round(y(v))}h${inner.w}` }),
			svg("text", { x: MARGIN.left - 8, y: Math.round(y(v)) + 4, "text-anchor": "end" }, this.options.tick(v)),
		]);
	}

	// Lines are broken where values are not known. The area below the first series is filled.
	drawSeries(points, x, y, inner) {
		const parts = [];

		this.options.series.forEach(([c], i) => {
			const runs = [[]];

			for (const [time, values] of points)
				if (values[i] === undefined)
					runs.push([]);
				else
					runs[runs.length - 1].push(`${x(time).toFixed(1)} ${y(values[i]).toFixed(1)}`);
			for (const run of runs.filter(r => r.length)) {
				const line = "M" + run.join("L"), ends = [run[0], run[run.length - 1]].map(p => p.split(" ")[0]);

				if (i === 0 && !this.options.log)
					parts.unshift(svg("path", { class: "area", d: `${line}V${MARGIN.top + inner.h}H${ends[0]}Z` }));
				parts.push(svg("path", { class: "series " + c, d: run.length > 1 ? line : line + "h1" }));
			}
		});
		return parts;
	}

	// Values at the cursor, or the latest ones, in the legend; and for those who cannot see the plot.
	tell(points) {
		const pointed = this.cursor !== null && points.length > 0;
		const [time, values] = pointed ? this.nearest() : points[points.length - 1] || [this.now, []];
		const when = pointed ? "at " + clock(new Date(Date.now() - (this.now - time) * 1000), true) : "";
		const texts = this.options.series.map((s, i) => this.options.format(values[i]));

		texts.forEach((text, i) => this.current[i].textContent = text);
		this.at.textContent = when;
		this.area.setAttribute("aria-label", `${this.options.title} ${when || "now"}: ` +
			this.options.series.map(([, name], i) => `${name} ${texts[i]}`).join(", ") + ". Arrow keys read earlier values.");
	}
}
