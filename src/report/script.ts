/** The script of a report: shows the values at the pointer, or by arrow keys, in every chart. */

/** JavaScript; texts are set as text, never as markup. */
export const script = `
for (const figure of document.querySelectorAll("figure[data-chart]")) {
  const chart = JSON.parse(figure.dataset.chart);
  const svg = figure.querySelector("svg");
  const cursor = figure.querySelector(".cursor");
  const readout = figure.querySelector(".readout");
  let shown = -1;
  const show = (index) => {
    shown = Math.min(chart.x.length - 1, Math.max(0, index));
    const at = chart.at[shown];
    cursor.setAttribute("x1", at);
    cursor.setAttribute("x2", at);
    cursor.setAttribute("visibility", "visible");
    readout.replaceChildren(element("div", "quiet", "after update " + chart.x[shown]));
    for (const series of chart.series) {
      if (series.values[shown] === "") continue;
      const row = element("div", "", "");
      row.append(element("span", "swatch " + series.colour, ""), series.label);
      row.append(element("span", "value", series.values[shown]));
      readout.append(row);
    }
    readout.hidden = false;
    const left = at < chart.width / 2;
    readout.style.left = left ? "auto" : "60px";
    readout.style.right = left ? "20px" : "auto";
  };
  const hide = () => {
    readout.hidden = true;
    cursor.setAttribute("visibility", "hidden");
  };
  svg.addEventListener("pointermove", (event) => {
    const area = svg.getBoundingClientRect();
    const place = ((event.clientX - area.left) / area.width) * chart.width;
    let nearest = 0;
    chart.at.forEach((at, i) => {
      if (Math.abs(at - place) < Math.abs(chart.at[nearest] - place)) nearest = i;
    });
    show(nearest);
  });
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("blur", hide);
  svg.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    event.preventDefault();
    show(shown + (event.key === "ArrowRight" ? 1 : -1));
  });
}
function element(name, className, text) {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}
`;
