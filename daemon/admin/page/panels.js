// SPDX-License-Identifier: BSD-2-Clause
// The parts of the page, each filled anew from a reading or an interval. Rows beyond ROWS_MAX are counted only.
"use strict";

const ROWS_MAX = 60;
const QUANTILES = [0.5, 0.95, 0.99];
const CALLS = "ringnfs_calls_total", DURATION = "ringnfs_call_duration_seconds", COMPOUND = "ringnfs_compound_duration_seconds";
const PLURALS = {
	open: "Opens", lock: "Locks", delegation: "Delegations", session: "Sessions", slot: "Slots", owner: "Owners", kept_reply: "Kept replies",
	copy: "Copies under way", copy_source: "Sources of copies",
};

// NFSv4's operations are parts of a call: COMPOUND is the call, and has families of its own without operations.
function isCall(s) {
	const operation = s.labels.get("operation");

	return !(s.labels.get("version") || "").startsWith("4") || operation === undefined || operation === "NULL";
}

function isError(s) {
	return s.labels.get("status") !== "OK";
}

function versionOf(s) {
	const version = s.labels.get("version") || "";

	return /^\d/.test(version) ? "v" + version : version;
}

function sum(values) {
	return values.reduce((a, b) => a + b, 0);
}

// Seconds within which the quantiles of all calls were answered.
function latency(interval) {
	const all = interval.histogram([DURATION, COMPOUND], isCall);

	return QUANTILES.map(q => all.quantile(q));
}

// Calls and errors a second. Errors are those of operations, of which a call may have several.
function callRates(interval) {
	const calls = interval.rates(CALLS, isCall).get(true), compounds = interval.rate(COMPOUND + "_count");
	const known = interval.now.families.has(CALLS) || compounds !== undefined;

	return known ? [(calls || 0) + (compounds || 0), interval.rates(CALLS, isError).get(true) || 0] : [undefined, undefined];
}

class Tiles {
	constructor(root) {
		this.root = root;
		this.cells = new Map();
	}

	set(title, figure, more) {
		if (!this.cells.has(title)) {
			const [value, note] = [el("dd", { class: "figure" }), el("dd", { class: "more" })];

			this.cells.set(title, [value, note]);
			this.root.append(el("div", {}, el("dt", {}, title), value, note));
		}
		const [value, note] = this.cells.get(title), [number, ...unit] = figure.split(" ");

		value.replaceChildren(number, ...(unit.length ? [el("span", { class: "unit" }, " " + unit.join(" "))] : []));
		note.textContent = more || "";
	}
}

// columns: [title, key, format, class or none]. The first is the name of the row.
class Table {
	constructor(root, caption, columns, sortKey) {
		this.columns = columns;
		this.sortKey = sortKey;
		this.rows = [];
		this.empty = "";
		this.body = el("tbody");
		this.heads = columns.map(([title, key, , c]) => this.makeHead(title, key, c));
		root.setAttribute("aria-label", caption);
		root.append(el("thead", {}, el("tr", {}, ...this.heads)), this.body);
		this.markSort();
	}

	makeHead(title, key, c) {
		const button = el("button", { type: "button", title: "Sort by this" }, title);

		button.addEventListener("click", () => {
			this.sortKey = key;
			this.markSort();
			this.show(this.rows, this.empty);
		});
		return el("th", { scope: "col", class: c || "" }, button);
	}

	markSort() {
		this.heads.forEach((head, i) => {
			const key = this.columns[i][1];

			if (key !== this.sortKey)
				head.removeAttribute("aria-sort");
			else
				head.setAttribute("aria-sort", key === "name" ? "ascending" : "descending");
		});
	}

	compare(a, b) {
		const order = (x, y) => x.localeCompare(y, "en", { numeric: true });
		const by = this.sortKey, name = order(a.name, b.name) || order(a.version, b.version);

		return by === "name" ? name : (b[by] || 0) - (a[by] || 0) || name;
	}

	show(rows, empty) {
		this.rows = rows;
		this.empty = empty;
		const shown = [...rows].sort((a, b) => this.compare(a, b)).slice(0, ROWS_MAX).map(row => this.makeRow(row));
		const note = rows.length > ROWS_MAX ? `and ${rows.length - ROWS_MAX} more` : rows.length ? "" : empty;

		if (note)
			shown.push(el("tr", {}, el("td", { colspan: this.columns.length, class: "empty" }, note)));
		this.body.replaceChildren(...shown);
	}

	makeRow(row) {
		const cells = this.columns.map(([, key, format, c], i) => {
			if (i === 0)
				return el("th", { scope: "row" }, ...(row.version ? [el("span", { class: "version" }, row.version)] : []), row.name);
			const cell = el("td", { class: `${c || ""} ${key === "errors" && row[key] ? "errors" : ""}` }, format(row[key]));

			if (row.share !== undefined && i === 1)
				cell.append(makeShare(row.share));
			return cell;
		});

		return el("tr", {}, ...cells);
	}
}

function makeShare(share) {
	const bar = el("span", { class: "share", "aria-hidden": "true" });

	bar.style.width = `${Math.round(100 * share)}%`;
	return bar;
}

function operationRows(interval) {
	const key = s => `${versionOf(s)}\n${s.labels.get("operation")}`;
	const rates = interval.rates(CALLS, key), errors = interval.rates(CALLS, s => isError(s) ? key(s) : "");
	const times = interval.histograms([DURATION], key);
	const most = Math.max(...rates.values());

	return [...rates].filter(([, v]) => v > 0).map(([k, v]) => {
		const [version, name] = k.split("\n"), h = times.get(k);
		const [p50, p95, p99] = QUANTILES.map(q => h ? h.quantile(q) : undefined);

		return { version, name, rate: v, share: v / most, p50, p95, p99, errors: errors.get(k) || 0 };
	});
}

function exportRows(interval) {
	const by = s => s.labels.get("export") || "";
	const [read, written] = ["ringnfs_read_bytes_total", "ringnfs_written_bytes_total"].map(name => [interval.rates(name, by), interval.now.totals(name, "export")]);
	const names = new Set([...read[1].keys(), ...written[1].keys()]);

	return [...names].map(name => ({
		version: "", name, read: read[0].get(name), written: written[0].get(name), readAll: read[1].get(name), writtenAll: written[1].get(name),
	}));
}

// A card with a list of names and values. Rows are [name, text] or [name, text, class]; a meter follows its row if the
// row has a fourth member, the share of what there is.
class Card {
	constructor(parent, title) {
		this.list = el("dl", { class: "list" });
		this.note = el("p", { class: "note" });
		this.root = el("section", { class: "card" }, el("h2", {}, title), this.note, this.list);
		this.root.setAttribute("aria-label", title);
		parent.append(this.root);
	}

	show(rows, empty) {
		this.note.textContent = rows.length ? "" : empty;
		this.list.replaceChildren(...rows.slice(0, ROWS_MAX).map(([name, text, c, share]) => {
			const parts = [el("dt", {}, name), el("dd", { class: c || "" }, text)];

			if (share !== undefined)
				parts.push(el("dd", { class: "bar" }, makeMeter(name, share)));
			return el("div", {}, ...parts);
		}));
	}
}

function makeMeter(name, share) {
	const meter = el("meter", { min: 0, max: 1, low: 0.8, high: 0.9, optimum: 0, "aria-label": `${name}: share in use` });

	meter.value = share;
	return meter;
}

// A label as text: "rdma_connections" is "RDMA connections".
function words(text) {
	const plain = text.replace(/[_-]+/g, " ").replace(/\b(tcp|rdma)\b/g, name => name.toUpperCase()).replace(/\bnfs(\d)/g, "NFSv$1");

	return plain.charAt(0).toUpperCase() + plain.slice(1);
}

// The same behind another word: its first letter is small, unless it is a name in capitals.
function after(text) {
	const found = words(text);

	return /^[A-Z]{2}/.test(found) ? found : found.charAt(0).toLowerCase() + found.slice(1);
}

function countsOf(reading, name, label) {
	return [...reading.totals(name, label)].map(([key, value]) => [PLURALS[key] || words(key), count(value)]);
}
