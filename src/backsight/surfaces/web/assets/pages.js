// What a script adds to pages that work without it: local times, the slider, fragments, keys, charts.
import { prepareCharts } from "./chart.js";

const root = document.documentElement;
root.classList.add("enhanced");

/** Read a page of this server as a document; no text is ever parsed as markup here. */
export function read(address) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("GET", address);
    request.responseType = "document";
    request.onload = () => (request.response ? resolve(request.response) : reject(new Error(request.statusText)));
    request.onerror = () => reject(new Error("no answer"));
    request.send();
  });
}

const turns = new Map(); // how often each part was asked for

/**
 * Replace a part of the page by the same part of another address; the whole page where that fails. Answers may come in
 * another order than they were asked for: only the one that was asked for last is shown.
 */
export async function swap(name, address, { remember = true } = {}) {
  const part = () => document.querySelector(`[data-fragment="${name}"]`);
  const from = new URL(address, location.href);
  from.searchParams.set("fragment", name);
  const turn = (turns.get(name) ?? 0) + 1;
  turns.set(name, turn);
  part().setAttribute("aria-busy", "true");
  try {
    const answer = (await read(from)).querySelector(`[data-fragment="${name}"]`);
    if (turns.get(name) !== turn) return null;
    if (!answer) throw new Error("no such part");
    part().replaceWith(document.adoptNode(answer));
    prepare(answer);
    if (remember) history.pushState(null, "", address);
    return answer;
  } catch {
    if (turns.get(name) !== turn) return null;
    if (remember) location.assign(address);
    part().removeAttribute("aria-busy");
    return null;
  }
}

function addressOf(form) {
  const fields = [...new FormData(form)].filter(([, value]) => value !== "");
  return `${form.getAttribute("action")}?${new URLSearchParams(fields)}`;
}

function localTimes(part) {
  const two = (number) => String(number).padStart(2, "0");
  for (const time of part.querySelectorAll("time")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime()) || time.dataset.local) continue;
    if (at.getSeconds() === 59 && at.getMilliseconds() === 999) at.setMilliseconds(1000);
    const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
    const seconds = time.textContent.length > 16 ? `:${two(at.getSeconds())}` : "";
    time.textContent = `${day} ${two(at.getHours())}:${two(at.getMinutes())}${seconds}`;
    time.dataset.local = "yes";
  }
  const zone = document.getElementById("zone");
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone && name !== "UTC") zone.textContent = `${name}, UTC on hover`;
}

function prepareCopies(part) {
  for (const button of part.querySelectorAll("[data-copy]")) {
    button.hidden = !navigator.clipboard; // it needs HTTPS or this machine
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      button.textContent = "copied";
    });
  }
}

function prepareForms(part) {
  for (const form of part.querySelectorAll("form[data-swap]")) {
    const send = () => {
      for (const [place, name] of form.dataset.swap.split(" ").entries()) swap(name, addressOf(form), { remember: !place });
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      send();
    });
    form.addEventListener("change", send);
  }
}

function prepareRefresh(part) {
  const waiting = part.matches?.("[data-refresh]") ? part : part.querySelector("[data-refresh]");
  if (waiting) {
    const again = () => swap(waiting.dataset.fragment, location.href, { remember: false });
    setTimeout(again, Number(waiting.dataset.refresh));
  }
}

function prepare(part) {
  localTimes(part);
  prepareCopies(part);
  prepareForms(part);
  prepareRefresh(part);
  prepareCharts(part, swap);
}

async function prepareBar() {
  const form = document.getElementById("state");
  if (!form) return;
  const go = () => location.assign(addressOf(form));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    go();
  });
  for (const field of form.querySelectorAll("select, [name=as_of]")) field.addEventListener("change", go);
  const slider = document.getElementById("slider");
  const text = document.getElementById("slider-text");
  const answer = await fetch(slider.dataset.source, { headers: { accept: "application/json" } });
  const instants = answer.ok ? await answer.json() : [];
  if (instants.length < 2) return;
  const chosen = form.elements.as_of.value;
  const place = chosen ? instants.findLastIndex((at) => Date.parse(at) <= Date.parse(chosen)) : instants.length;
  slider.max = instants.length; // the last place is now
  slider.value = place < 0 ? 0 : place;
  slider.hidden = false;
  const show = () => {
    const at = instants[slider.value];
    text.textContent = at ? `${at.replace("T", " ").slice(0, 16)} UTC` : "now";
    slider.setAttribute("aria-valuetext", text.textContent);
  };
  slider.addEventListener("input", show);
  slider.addEventListener("change", () => {
    form.elements.as_of.value = instants[slider.value] ?? "";
    go();
  });
  show();
}

/** J and K step through a list, Enter opens, / searches, ← and → go to the neighbouring change of a prompt. */
function onKey(event) {
  const typing = event.target.closest("input, textarea, select");
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") {
    const search = document.getElementById("search");
    if (search) {
      event.preventDefault();
      search.focus();
    }
  } else if (event.key === "j" || event.key === "k") {
    step(event.key === "j" ? 1 : -1);
  } else if (document.body.dataset.arrows && !event.target.closest(".chart")) {
    const link = { ArrowLeft: "earlier", ArrowRight: "later" }[event.key];
    if (link) document.getElementById(link)?.click();
  }
}

function step(by) {
  const rows = [...document.querySelectorAll("table.list tbody tr")];
  const now = rows.findIndex((row) => row.classList.contains("selected"));
  const next = rows[Math.min(rows.length - 1, Math.max(0, now + by))];
  if (!next) return;
  rows[now]?.classList.remove("selected");
  next.classList.add("selected");
  (next.querySelector("td > a, summary") ?? next.querySelector("button, input"))?.focus();
}

document.addEventListener("keydown", onKey);
addEventListener("popstate", () => location.reload());
prepare(document);
prepareBar();
