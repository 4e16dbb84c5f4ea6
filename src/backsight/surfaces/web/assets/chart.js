// Charts: arrow keys and the pointer read values, a drag filters or zooms, the wheel and + − zoom.

export function prepareCharts(part, swap) {
  for (const chart of part.querySelectorAll(".chart")) {
    prepareReading(chart);
    if (chart.id === "scatter") prepareBrush(chart, swap);
  }
  const zoomed = part.matches?.('[data-fragment="chart"]') ? part : part.querySelector('[data-fragment="chart"]');
  if (zoomed?.querySelector(".chart")) prepareZoom(zoomed, swap);
}

/** One tab stop a chart: the arrow keys step through the rows of its table. */
function prepareReading(chart) {
  const rows = [...chart.querySelectorAll("tbody tr")];
  const heads = [...chart.querySelectorAll("thead th")].map((head) => head.textContent);
  const output = chart.querySelector("output");
  let place = -1;
  const read = (number) => {
    place = Math.max(0, Math.min(rows.length - 1, number));
    const cells = [...rows[place].cells].map((cell) => cell.textContent);
    output.textContent = cells.map((text, index) => (index ? `${heads[index]} ${text}` : text)).join(", ");
    for (const cursor of chart.querySelectorAll(".cursor")) {
      const left = Number(cursor.dataset.left);
      const x = left + Number(rows[place].dataset.place) * (Number(cursor.dataset.right) - left);
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
      cursor.classList.add("on");
    }
  };
  chart.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
    const end = { Home: 0, End: rows.length - 1 }[event.key];
    if (event.target !== chart || !rows.length || (by === undefined && end === undefined)) return;
    event.preventDefault();
    read(end ?? (place < 0 ? (by > 0 ? 0 : rows.length - 1) : place + by));
  });
  chart.addEventListener("pointermove", (event) => {
    const drawing = event.target.closest("svg");
    const cursor = drawing?.querySelector(".cursor");
    if (!cursor || !rows.length || event.buttons) return;
    const share = shareAt(drawing, cursor, event);
    const places = rows.map((row) => Math.abs(Number(row.dataset.place) - share));
    read(places.indexOf(Math.min(...places)));
  });
}

function pointIn(drawing, event) {
  const box = drawing.getBoundingClientRect();
  const scale = drawing.viewBox.baseVal.width / box.width;
  return { x: (event.clientX - box.left) * scale, y: (event.clientY - box.top) * scale };
}

function shareAt(drawing, cursor, event) {
  const left = Number(cursor.dataset.left);
  return (pointIn(drawing, event).x - left) / (Number(cursor.dataset.right) - left);
}

/** A rectangle that follows the pointer; `done` gets its two corners. */
function dragged(drawing, event, done) {
  const start = pointIn(drawing, event);
  const box = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  box.setAttribute("class", "selection");
  drawing.append(box);
  const follow = (move) => {
    const end = pointIn(drawing, move);
    box.setAttribute("x", Math.min(start.x, end.x));
    box.setAttribute("y", Math.min(start.y, end.y));
    box.setAttribute("width", Math.abs(end.x - start.x));
    box.setAttribute("height", Math.abs(end.y - start.y));
  };
  const stop = (up) => {
    removeEventListener("pointermove", follow);
    box.remove();
    const end = pointIn(drawing, up);
    if (Math.abs(end.x - start.x) > 4) done(start, end);
  };
  event.preventDefault();
  addEventListener("pointermove", follow);
  addEventListener("pointerup", stop, { once: true });
}

function prepareBrush(chart, swap) {
  for (const area of chart.querySelectorAll(".brush")) {
    area.addEventListener("pointerdown", (event) => {
      const of = Object.fromEntries(Object.entries(area.dataset).map(([name, value]) => [name, Number(value)]));
      dragged(area.closest("svg"), event, (start, end) => {
        const across = (x) => of.low + ((x - of.x0) / (of.x1 - of.x0)) * (of.high - of.low);
        const up = (y) => of.bottom + ((y - of.y0) / (of.y1 - of.y0)) * (of.top - of.bottom);
        filter({ mae_r: [across(start.x), across(end.x)], mfe_r: [up(start.y), up(end.y)] }, swap);
      });
    });
  }
}

function filter(bounds, swap) {
  const address = new URL(location.href);
  address.searchParams.delete("cursor");
  for (const [name, ends] of Object.entries(bounds)) {
    address.searchParams.set(`${name}_from`, Math.min(...ends).toFixed(3));
    address.searchParams.set(`${name}_to`, Math.max(...ends).toFixed(3));
  }
  swap("table", `${address.pathname}${address.search}`);
}

function prepareZoom(part, swap) {
  const chart = part.querySelector(".chart");
  const from = Date.parse(part.dataset.from);
  const to = Date.parse(part.dataset.to);
  const show = (start, end) => {
    const address = new URL(location.href);
    address.searchParams.set("from", new Date(start).toISOString());
    address.searchParams.set("to", new Date(end).toISOString());
    return swap("chart", `${address.pathname}${address.search}`).then((answer) => answer?.querySelector(".chart")?.focus());
  };
  const zoom = (factor, share = 0.5) => {
    const at = from + share * (to - from);
    return show(at - (at - from) * factor, at + (to - at) * factor);
  };
  for (const link of part.querySelectorAll("[data-zoom]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      swap("chart", link.getAttribute("href"));
    });
  }
  let busy = false;
  chart.addEventListener(
    "wheel",
    (event) => {
      const drawing = event.target.closest("svg");
      if (!drawing || busy || (!event.ctrlKey && document.activeElement !== chart)) return;
      event.preventDefault();
      busy = true;
      zoom(event.deltaY > 0 ? 1.5 : 0.67, shareAt(drawing, drawing.querySelector(".cursor"), event));
    },
    { passive: false },
  );
  chart.addEventListener("keydown", (event) => {
    if (event.key === "+" || event.key === "=") zoom(0.5);
    if (event.key === "-") zoom(2);
  });
  for (const drawing of chart.querySelectorAll("svg")) {
    drawing.addEventListener("pointerdown", (event) => {
      const cursor = drawing.querySelector(".cursor");
      const first = shareAt(drawing, cursor, event);
      chart.focus();
      dragged(drawing, event, (_start, end) => {
        const left = Number(cursor.dataset.left);
        const last = (end.x - left) / (Number(cursor.dataset.right) - left);
        const [low, high] = [first, last].sort((a, b) => a - b);
        show(from + low * (to - from), from + high * (to - from));
      });
    });
  }
}
