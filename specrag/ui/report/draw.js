for (const place of document.querySelectorAll("[data-sr-figure]")) {
  const { data, layout } = JSON.parse(place.querySelector("script").textContent);
  Plotly.newPlot(place, data, layout, { responsive: true, displayModeBar: false });
}
