// SPDX-License-Identifier: BSD-2-Clause
// The text of /metrics, and what two readings of it tell: rates of counters, quantiles of histograms.
"use strict";

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?[ \t]+(\S+)/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;
const ESCAPED = { n: "\n" };

function parseLabels(text) {
	const labels = new Map();

	for (const [, name, value] of (text || "").matchAll(LABEL))
		labels.set(name, value.replace(/\\(.)/g, (all, c) => ESCAPED[c] || c));
	return labels;
}

function parseNumber(text) {
	const infinities = { "+Inf": Infinity, "-Inf": -Infinity };

	return text in infinities ? infinities[text] : Number(text);
}

function matches(sample, match) {
	return Object.entries(match || {}).every(([name, value]) => sample.labels.get(name) === value);
}

// One answer of the server.
class Reading {
	constructor(text, time) {
		this.time = time; // seconds, of a clock that does not jump
		this.families = new Map();
		this.values = new Map(); // by the sample's name and labels as they are written
		for (const line of text.split("\n"))
			this.add(line);
	}

	add(line) {
		const found = line[0] === "#" ? null : SAMPLE.exec(line);

		if (!found)
			return;
		const [, name, labels, value] = found;
		const sample = { labels: parseLabels(labels), key: `${name}{${labels || ""}`, value: parseNumber(value) };

		if (Number.isNaN(sample.value))
			return;
		this.values.set(sample.key, sample.value);
		if (!this.families.has(name))
			this.families.set(name, []);
		this.families.get(name).push(sample);
	}

	samples(name, match) {
		return (this.families.get(name) || []).filter(s => matches(s, match));
	}

	// The sum of the samples, or undefined if there are none.
	total(name, match) {
		const samples = this.samples(name, match);

		return samples.length ? samples.reduce((sum, s) => sum + s.value, 0) : undefined;
	}

	label(name, label) {
		return this.samples(name).map(s => s.labels.get(label))[0];
	}

	// A map from each value of the label to the sum of its samples.
	totals(name, label) {
		return sumBy(this.samples(name), s => s.labels.get(label) || "", s => s.value);
	}

	// True if both are of one run of the server, so that counters have only grown.
	follows(before) {
		const start = "ringnfs_start_time_seconds";

		return before.total(start) === this.total(start) && this.time > before.time;
	}
}

function sumBy(samples, keyOf, valueOf) {
	const sums = new Map();

	for (const s of samples)
		sums.set(keyOf(s), (sums.get(keyOf(s)) || 0) + valueOf(s));
	return sums;
}

// Observations in buckets: [upper bound, observations up to it].
class Histogram {
	constructor(buckets) {
		this.buckets = [...buckets].sort((a, b) => a[0] - b[0]);
		this.count = this.buckets.length ? this.buckets[this.buckets.length - 1][1] : 0;
	}

	// Linear within a bucket; the largest finite bound if it lies beyond that. Undefined without observations.
	quantile(q) {
		let bound = 0, below = 0;

		if (!this.count)
			return undefined;
		for (const [upper, upTo] of this.buckets) {
			if (upTo >= q * this.count)
				return Number.isFinite(upper) ? bound + (upper - bound) * (q * this.count - below) / (upTo - below || 1) : bound;
			[bound, below] = [upper, upTo];
		}
		return bound;
	}
}

// The time between two readings of one run of the server.
class Interval {
	constructor(before, now) {
		this.before = before;
		this.now = now;
		this.seconds = now.time - before.time;
	}

	// A series that was not there before has begun at 0.
	growth(sample) {
		return Math.max(0, sample.value - (this.before.values.get(sample.key) || 0));
	}

	rate(name, match) {
		const samples = this.now.samples(name, match);

		return samples.length ? samples.reduce((sum, s) => sum + this.growth(s), 0) / this.seconds : undefined;
	}

	// A map from each key to the rate of its series.
	rates(name, keyOf) {
		return sumBy(this.now.samples(name), keyOf, s => this.growth(s) / this.seconds);
	}

	// A map from each key to the histogram of its series, which may be of several families. Series without a key are left out.
	histograms(names, keyOf) {
		const found = new Map();

		for (const s of names.flatMap(name => this.now.samples(name + "_bucket"))) {
			const key = keyOf(s), bound = parseNumber(s.labels.get("le") || "");

			if (key === undefined)
				continue;
			if (!found.has(key))
				found.set(key, new Map());
			found.get(key).set(bound, (found.get(key).get(bound) || 0) + this.growth(s));
		}
		return new Map([...found].map(([key, buckets]) => [key, new Histogram(buckets)]));
	}

	histogram(names, wanted) {
		return this.histograms(names, s => wanted(s) ? "" : undefined).get("") || new Histogram([]);
	}
}
