// SPDX-License-Identifier: BSD-2-Clause
// Numbers as people read them. Each function takes undefined, too, for a figure that is not known.
"use strict";

const NONE = "–";
const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

// Three digits: 1.23, 12.3, 123.
function three(n) {
	return n >= 100 ? whole.format(n) : n >= 10 ? n.toFixed(1) : n.toFixed(2);
}

// The number, and its unit. From that many on, the next unit is taken.
function scaleBytes(n, limit) {
	let unit = 0;

	while (n >= limit && unit + 1 < BYTE_UNITS.length) {
		n /= 1024;
		unit++;
	}
	return [n, BYTE_UNITS[unit]];
}

function bytes(n) {
	if (n === undefined)
		return NONE;
	const [scaled, unit] = scaleBytes(n, 1000);

	return `${n < 1000 ? whole.format(scaled) : three(scaled)} ${unit}`;
}

function bytesPerSecond(n) {
	return n === undefined ? NONE : bytes(n) + "/s";
}

// The labels of axes, whose numbers are round.
function tickBytes(n) {
	const [scaled, unit] = scaleBytes(n, 1024);

	return n ? `${Number(scaled.toFixed(2))} ${unit}/s` : "0";
}

function tickDuration(s) {
	return duration(s).replace(/\.0+ /, " ");
}

function count(n) {
	return n === undefined ? NONE : whole.format(n);
}

// Of events a second: small ones are seldom whole.
function rate(n) {
	return n === undefined ? NONE : n && n < 10 ? (n < 0.05 ? "< 0.1" : n.toFixed(1)) : whole.format(n);
}

function perSecond(n) {
	return n === undefined ? NONE : rate(n) + " /s";
}

function duration(s) {
	if (s === undefined)
		return NONE;
	if (s < 1e-6)
		return s > 0 ? "< 1 µs" : "0 s";
	return s < 1e-3 ? three(s * 1e6) + " µs" : s < 1 ? three(s * 1e3) + " ms" : three(s) + " s";
}

function percent(share) {
	return `${whole.format(100 * share)} %`;
}

// The two largest units.
function age(s) {
	const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
	const first = units.findIndex(([, size]) => s >= size || size === 1);
	const [name, size] = units[first], next = units[first + 1];
	const text = `${Math.floor(s / size)} ${name}`;

	return next ? `${text} ${Math.floor(s % size / next[1])} ${next[0]}` : text;
}

function clock(date, withSeconds) {
	return date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: withSeconds ? "2-digit" : undefined });
}
