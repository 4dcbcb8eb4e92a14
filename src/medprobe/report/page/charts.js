// Drawings from numbers (figures/plots.py says what they hold), by Chart.js.
const charts = (() => {
  // Colours that colour-blind readers tell apart, and marks that differ too; further series have a
  // colour again with another mark and a broken line: as in figures/plots.py.
  const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#11AAEE", "#884422", "#AABB66",
    "#555566"];
  const MARKS = ["circle", "rect", "triangle", "rectRot", "crossRot", "rectRounded", "cross", "star"];
  const LINES = [[], [6, 4], [2, 3]];
  const { Chart } = ChartJS;
  Chart.register(...Object.values(ChartJS).filter(one => one !== Chart));
  let ink = null; // another than the page's own, while it is printed

  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // A point's name stands in the nearest place beside it where it meets no point and no other name,
  // with a line to it where that is far: as in figures/plots.py.
  const SIDES = [[1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [-1, 1], [1, -1], [-1, -1]];
  const FAR = [7, 17, 29, 43];
  function write({ ctx, chartArea: area }, name, mark, taken) {
    const width = ctx.measureText(name).width;
    for (const far of FAR) for (const [right, down] of SIDES) {
      const x = mark.x + far * right, y = mark.y + (right ? far : far + 4) * down;
      const left = x + width * (right - 1) / 2;
      const box = [left, y - 7, left + width, y + 7];
      if (box[0] < area.left || box[2] > area.right || box[1] < area.top || box[3] > area.bottom
        || taken.some(b => box[0] < b[2] && b[0] < box[2] && box[1] < b[3] && b[1] < box[3])) continue;
      taken.push(box);
      ctx.textBaseline = "middle";
      ctx.fillText(name, left, y);
      if (far > FAR[0]) {
        ctx.lineWidth = 0.5;
        ctx.beginPath(); ctx.moveTo(mark.x, mark.y); ctx.lineTo(x, y); ctx.stroke();
      }
      return;
    }
  }
  // Lines from low to high, chance, and the names of points.
  const additions = {
    id: "additions",
    afterDatasetsDraw(chart) {
      const { ctx, scales: { x, y }, chartArea: area } = chart;
      const { across, chance } = chart.options.plugins.additions;
      const marks = chart.data.datasets.flatMap((_, at) => chart.getDatasetMeta(at).data);
      const taken = marks.map(mark => [mark.x - 4, mark.y - 4, mark.x + 4, mark.y + 4]);
      ctx.save();
      chart.data.datasets.forEach((series, at) => {
        if (!chart.isDatasetVisible(at)) return;
        ctx.strokeStyle = series.borderColor;
        ctx.fillStyle = Chart.defaults.color;
        ctx.lineWidth = 1.6;
        chart.getDatasetMeta(at).data.forEach((mark, index) => {
          const { low, high, name } = series.data[index];
          if (typeof low === "number" && typeof high === "number") {
            ctx.beginPath();
            if (across) { ctx.moveTo(x.getPixelForValue(low), mark.y); ctx.lineTo(x.getPixelForValue(high), mark.y); }
            else { ctx.moveTo(mark.x, y.getPixelForValue(low)); ctx.lineTo(mark.x, y.getPixelForValue(high)); }
            ctx.stroke();
          }
          if (name) write(chart, name, mark, taken);
        });
      });
      if (typeof chance === "number") {
        ctx.strokeStyle = Chart.defaults.color;
        ctx.setLineDash([2, 4]);
        ctx.beginPath();
        ctx.moveTo(x.getPixelForValue(chance), area.top);
        ctx.lineTo(x.getPixelForValue(chance), area.bottom);
        ctx.stroke();
      }
      ctx.restore();
    },
  };
  Chart.register(additions);

  // A label in lines of some twenty letters.
  const wrapped = text => String(text).split(/(?<=[ :·_-])/).reduce((lines, word) => {
    const last = lines[lines.length - 1];
    if (last !== undefined && (last + word).length <= 20) lines[lines.length - 1] += word;
    else lines.push(word);
    return lines;
  }, []);

  // Where the points of each line stand, one below another: room for those there are, and a gap.
  function stacked({ lines, series }) {
    const there = new Map(lines.map(line => [line, []]));
    series.forEach(([, points], index) => points.forEach(([at]) => there.get(at)?.push(index)));
    const starts = new Map();
    let height = 0;
    const ys = lines.map(line => {
      const room = Math.max(there.get(line).length, 1.2);
      starts.set(line, height + 0.9);
      height += room + 0.8;
      return height - room / 2 - 0.4;
    });
    const place = (line, index) => starts.get(line) + there.get(line).indexOf(index);
    return { height, ys, place };
  }

  function settings(numbers, look) {
    const { kind, lines, series, chance } = numbers;
    const across = kind === "intervals";
    const rows = across ? stacked(numbers) : null;
    const datasets = series.map(([name, points], index) => {
      const style = look(name, index);
      const colour = COLOURS[style % COLOURS.length];
      const round = Math.floor(style / COLOURS.length);
      const data = points.map(([at, value, low, high]) => ({
        intervals: { x: value, y: rows?.place(at, index), low, high, at },
        curves: { x: at, y: value, low, high, at },
        points: { x: at, y: value, name: low },
        stacked: { x: value, y: at },
      })[kind]);
      return { label: name, data, borderColor: colour, backgroundColor: colour,
        pointStyle: MARKS[(style + round) % MARKS.length], pointRadius: 4.5, pointHoverRadius: 6,
        borderDash: kind === "curves" ? LINES[round % LINES.length] : [],
        borderWidth: kind === "curves" ? 1.6 : kind === "stacked" ? 0 : 2,
        showLine: kind === "curves" };
    });
    const highs = series.flatMap(([, points]) => points.map(([, , , high]) => high ?? 0));
    const grid = { color: css("--line") };
    const title = text => ({ display: Boolean(text), text });
    const scales = {
      x: { grid, title: title(numbers.x), suggestedMax: across ? Math.max(...highs) : undefined },
      y: { grid, title: title(numbers.y), beginAtZero: true, suggestedMax: Math.max(...highs) },
    };
    if (across || kind === "stacked") {
      Object.assign(scales.x, { beginAtZero: true, stacked: kind === "stacked" });
      if (kind === "stacked") scales.x.max = 100;
      scales.y = across
        ? { grid: { display: false }, reverse: true, min: 0, max: rows.height,
          afterBuildTicks: axis => { axis.ticks = rows.ys.map(value => ({ value })); },
          ticks: { autoSkip: false, callback: (_, at) => wrapped(lines[at] ?? "") } }
        : { type: "category", labels: lines, stacked: true, grid: { display: false },
          ticks: { autoSkip: false, callback: value => wrapped(lines[value]) } };
    }
    if (kind === "curves") {
      Object.assign(scales.x, lines ? { type: "category", labels: lines, offset: true } : { type: "linear" });
    }
    // An axis that reaches four, such as one of ranks, needs no fractions.
    for (const axis of [scales.x, scales.y]) {
      if (axis.suggestedMax >= 4) axis.ticks = { precision: 0, ...axis.ticks };
    }
    if (kind === "points") { scales.x.type = "logarithmic"; scales.x.ticks = { maxRotation: 0 }; scales.y.grace = "8%"; }
    const said = ({ dataset, raw }) => {
      const value = across || kind === "stacked" ? raw.x : raw.y;
      const interval = typeof raw.low === "number" ? ` [${round(raw.low)}, ${round(raw.high)}]` : "";
      return `${dataset.label}: ${round(value)}${interval}`;
    };
    const heading = ([one]) => one && (one.raw.at ?? one.raw.name ?? one.raw.y);
    return {
      type: { intervals: "scatter", points: "scatter", curves: "line", stacked: "bar" }[kind],
      data: { datasets },
      options: {
        animation: false, maintainAspectRatio: false, indexAxis: kind === "stacked" ? "y" : "x",
        scales,
        plugins: {
          additions: { across, chance },
          legend: { display: series.length > 1, position: "top", align: "start",
            labels: { usePointStyle: true, boxHeight: 7 } },
          tooltip: { callbacks: { title: heading, label: said } },
        },
      },
    };
  }

  const height = numbers =>
    numbers.kind === "intervals" ? 90 + 13 * stacked(numbers).height
      : numbers.kind === "stacked" ? 100 + 36 * numbers.lines.length : 340;

  // Draw into an element, in the place of what is drawn there; `look` gives a series its colour.
  function draw(box, numbers, look, caption) {
    box.chart?.destroy();
    Chart.defaults.color = ink ?? css("--ink");
    Chart.defaults.font.family = "system-ui, sans-serif";
    box.style.height = `${height(numbers)}px`;
    const canvas = document.createElement("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", caption);
    box.replaceChildren(canvas);
    box.chart = new Chart(canvas, settings(numbers, look));
  }

  return { draw, print: on => { ink = on ? "#1c2430" : null; } };
})();
