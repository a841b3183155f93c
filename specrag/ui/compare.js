() => {
  // One polite status line, as on the other tabs: the element that stays, not its content.
  const line = document.getElementById("sr-compare-status");
  line?.setAttribute("role", "status");
  line?.setAttribute("aria-live", "polite");

  // The race is watched again in the browser: bars and lines were sent along with it, so no run and no server
  // is needed, and a slow connection does not make it jerk. One race at a time; see compare_race.html.
  const STEP_MS = 500; // between two pictures for whoever wants no motion
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;
  let show = null;

  const lanes = (race) => [...race.querySelectorAll("[data-sr-lane]")]
    .filter((lane) => lane.dataset.srTotal)
    .map((lane) => ({
      total: Number(lane.dataset.srTotal),
      bars: [...lane.querySelectorAll(".sr-phase")].map((bar) => ({
        bar, from: Number(bar.dataset.srFrom), to: Number(bar.dataset.srTo), width: bar.style.width,
      })),
      reel: JSON.parse(lane.dataset.srReel || "[]"),
      said: lane.querySelector("[data-sr-race-said]"),
      time: lane.querySelector("[data-sr-race-time]"),
    }))
    .map((lane) => ({ ...lane, words: lane.said.textContent, took: lane.time.textContent }));

  const set = (element, text) => { if (element && element.textContent !== text) element.textContent = text; };
  const clock = () => show.race.querySelector("[data-sr-race-clock]");
  const button = () => show.race.querySelector("[data-sr-race-play]");

  const draw = (at) => {
    for (const lane of show.lanes) {
      for (const { bar, from, to } of lane.bars)
        bar.style.width = `${(100 * Math.max(0, Math.min(at, to) - from)) / show.end}%`;
      const spoken = lane.reel.filter(([when]) => when <= at);
      set(lane.said, spoken.length ? spoken[spoken.length - 1][1] : "");
      set(lane.time, at >= lane.total ? lane.took : "");
    }
    set(clock(), seconds(at));
  };

  const finish = () => {
    for (const lane of show.lanes) {
      for (const { bar, width } of lane.bars) bar.style.width = width;
      set(lane.said, lane.words);
      set(lane.time, lane.took);
    }
    set(clock(), "");
    set(button(), "Watch it again");
    show = null;
  };

  const same = () => show.race.isConnected && show.race.dataset.srRace === show.id;
  const speed = () => Number(show.race.querySelector('[data-sr-race-speed][aria-pressed="true"]')?.dataset.srRaceSpeed || 1);

  const tick = (now) => {
    if (!show) return;
    if (!same()) { show = null; return; } // another comparison is on the page by now
    if (show.paused) return;
    show.at += Math.min(now - show.last, 250) * speed();
    show.last = now;
    if (show.at >= show.stop) return finish();
    const picture = calm.matches ? Math.floor(show.at / STEP_MS) * STEP_MS : show.at;
    if (picture !== show.drawn) draw((show.drawn = picture));
    requestAnimationFrame(tick);
  };

  const run = () => { show.last = performance.now(); requestAnimationFrame(tick); };

  const play = (race) => {
    if (show && show.race === race && same()) {
      show.paused = !show.paused;
      set(button(), show.paused ? "Go on" : "Pause");
      if (!show.paused) run();
      return;
    }
    if (show && same()) finish();
    const found = lanes(race);
    show = {
      race, id: race.dataset.srRace, lanes: found, end: Number(race.dataset.srEnd), at: 0, paused: false,
      stop: Math.max(...found.map((lane) => lane.total)),
    };
    set(button(), "Pause");
    draw((show.drawn = 0));
    run();
  };

  document.addEventListener("click", (event) => {
    const pressed = event.target.closest?.("[data-sr-race-play], [data-sr-race-speed]");
    const race = pressed?.closest("[data-sr-race]");
    if (!race) return;
    if (pressed.dataset.srRaceSpeed === undefined) return play(race);
    for (const other of race.querySelectorAll("[data-sr-race-speed]"))
      other.setAttribute("aria-pressed", String(other === pressed));
  });
}
