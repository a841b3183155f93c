() => {
  // The replay of a run (specrag/ui/detail/film.py): the server sends all pictures once, as changes of lines of
  // HTML that it made itself; here they are played. The stage stands in for the page's own board meanwhile.
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const root = () => document.querySelector("#sr-detail-replay .sr-replay");
  const part = (name) => root() && document.querySelector(`#sr-detail ${name}`);
  let film = null; // { key, run, frames, end, verdict, retrieved, at: frame on stage, lines: {part: [...]} }
  let playing = null; // { since, from }: clock of the browser and of the replay when it was started
  let speed = 1;
  let now = null; // ms; null is the finished page
  let stood = null; // the player that is on the page
  let wanted = null; // what to do once the film is here
  const PATIENCE_MS = 15000;

  const text = (ms) => ms < 1000 ? `${Math.round(ms)} ms` : ms < 120000 ? `${(ms / 1000).toFixed(1)} s`
    : `${Math.floor(ms / 60000)} min ${Math.floor(ms % 60000 / 1000)} s`;
  const end = () => film?.end ?? (Number(root()?.dataset.srEnd) || 0);
  const says = (words) => {
    const place = part(".sr-replay-says bdi");
    if (!place) return;
    // each event of a replay that plays by itself would talk over the one before
    const live = playing ? "off" : "polite", line = place.parentElement;
    if (line.getAttribute("aria-live") !== live) line.setAttribute("aria-live", live);
    if (place.textContent !== words) place.textContent = words;
  };

  // Changes of lines: [line, kept at its start, at its end, between] or [first line, lines that go, new lines].
  const change = (lines, changes) => {
    for (const one of changes) {
      if (Array.isArray(one[2])) lines.splice(one[0], one[1], ...one[2]);
      else {
        const old = lines[one[0]];
        lines[one[0]] = old.slice(0, one[1]) + one[3] + old.slice(old.length - one[2]);
      }
    }
  };
  // Nodes that are the same stay, so that focus, open folds and animations do.
  const morph = (old, fresh) => {
    const before = [...old.childNodes], after = [...fresh.childNodes];
    after.forEach((node, place) => {
      const mine = before[place];
      if (!mine) old.append(node);
      else if (mine.nodeName !== node.nodeName) mine.replaceWith(node);
      else if (node.nodeType === Node.ELEMENT_NODE) {
        for (const { name } of [...mine.attributes]) if (!node.hasAttribute(name) && name !== "open") mine.removeAttribute(name);
        for (const { name, value } of node.attributes) if (mine.getAttribute(name) !== value) mine.setAttribute(name, value);
        morph(mine, node);
      } else if (mine.nodeValue !== node.nodeValue) mine.nodeValue = node.nodeValue;
    });
    before.slice(after.length).forEach((node) => node.remove());
  };
  const draw = (name) => {
    const place = part(`.sr-stage-${name}`);
    const fresh = document.createElement("template");
    fresh.innerHTML = film.lines[name].join("\n");
    if (place) morph(place, fresh.content);
  };

  // The timeline needs no pictures: the finished one is uncovered up to now.
  const bars = () => {
    const place = part(".sr-stage-timeline");
    if (!place || place.dataset.srKey === film.key) return place;
    const own = document.querySelector("#sr-detail-timeline .sr-timeline");
    place.replaceChildren(...(own ? [own.cloneNode(true)] : []));
    place.setAttribute("aria-hidden", "true");
    place.dataset.srKey = film.key;
    return place;
  };
  const uncover = (ms) => {
    const place = bars();
    if (!place) return;
    const share = 100 * ms / (Number(root().dataset.srAxis) || end() || 1);
    for (const lane of place.querySelectorAll(".sr-lane:not(.sr-axis)")) {
      let begun = false;
      for (const bar of lane.querySelectorAll(".sr-span")) {
        bar.dataset.srWidth ??= bar.style.width;
        const left = parseFloat(bar.style.left), width = parseFloat(bar.dataset.srWidth);
        begun ||= left <= share;
        bar.style.width = `${Math.max(0, Math.min(width, share - left))}%`;
        bar.style.visibility = left <= share ? "visible" : "hidden";
      }
      lane.style.visibility = begun ? "visible" : "hidden";
    }
  };

  const frameAt = (ms) => {
    let low = 0, high = film.frames.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (film.frames[middle][0] <= ms) low = middle; else high = middle - 1;
    }
    return low;
  };
  const controls = () => {
    const place = root();
    if (!place) return;
    const at = now ?? end();
    const seek = part(".sr-seek");
    const value = String(end() ? Math.round(1000 * at / end()) : 1000);
    if (document.activeElement !== seek || !seek.matches(":active")) seek.value = value;
    seek.setAttribute("aria-valuetext", now === null ? "the end" : `${text(at)} of ${text(end())}`);
    const clock = part(".sr-clock");
    const told = `${text(at)} of ${text(end())}`;
    if (clock.textContent !== told) clock.textContent = told;
    const play = part(".sr-play");
    const label = playing ? "Pause" : "Play";
    if (play.textContent !== label) play.textContent = label;
    play.setAttribute("aria-pressed", String(!!playing));
    for (const button of place.querySelectorAll("[data-sr-speed]"))
      button.setAttribute("aria-pressed", String(Number(button.dataset.srSpeed) === speed));
    part('[data-sr-replay="verdict"]').disabled = film !== null && film.verdict === null;
    place.toggleAttribute("data-sr-replaying", now !== null);
    for (const one of document.querySelectorAll("#sr-detail .sr-stage")) one.hidden = now === null;
  };
  // Show the run as it was at this time; null or the end is the finished page.
  const show = (ms) => {
    now = ms === null || ms >= end() || !film.frames.length ? null : Math.max(0, ms);
    if (now === null) {
      film.at = -1;
      film.lines = { status: [], answer: [], board: [] };
      says("The run as it ended.");
      return controls();
    }
    const target = frameAt(now);
    if (target < film.at) {
      film.at = -1;
      film.lines = { status: [], answer: [], board: [] };
    }
    const touched = new Set(film.at < 0 ? ["status", "answer", "board"] : []);
    while (film.at < target) {
      film.at += 1;
      for (const [name, changes] of Object.entries(film.frames[film.at][2])) {
        change(film.lines[name], changes);
        touched.add(name);
      }
    }
    touched.forEach(draw);
    const words = film.frames[target][1];
    if (words) says(`${text(film.frames[target][0])}: ${words}`);
    root().toggleAttribute("data-sr-unfound", film.retrieved === null || now < film.retrieved);
    uncover(now);
    controls();
  };

  const pause = () => {
    playing = null;
    if (film) controls();
  };
  const turn = (clock) => {
    if (!playing || !film) return;
    if (!root() || root().dataset.srRun !== film.run) return pause(); // another run, or no longer on the page
    const at = playing.from + speed * (clock - playing.since);
    if (at >= end()) playing = null;
    show(at);
    if (playing) requestAnimationFrame(turn);
  };
  const play = () => {
    if (still.matches) return step(1);
    playing = { since: performance.now(), from: now ?? 0 };
    show(playing.from);
    requestAnimationFrame(turn);
  };
  const step = (by) => {
    pause();
    const times = film.frames.map((frame) => frame[0]);
    const at = now ?? end();
    const next = by > 0 ? (now === null ? times[0] : times.find((time) => time > at)) : times.findLast((time) => time < at);
    show(next ?? (by > 0 ? null : times[0] ?? null));
  };
  const doing = {
    play: () => playing ? pause() : play(),
    back: () => step(-1),
    step: () => step(1),
    verdict: () => { pause(); show(film.verdict); },
    end: () => { pause(); show(null); },
    start: () => { pause(); show(film.frames[0]?.[0] ?? null); },
    seek: (share) => { pause(); show(share >= 1000 ? null : end() * share / 1000); },
  };
  // The film comes from the server when it is first wanted.
  const want = (name, value) => {
    const place = root();
    if (!place) return;
    if (film && film.run === place.dataset.srRun) return doing[name](value);
    const mine = wanted = { name, value, run: place.dataset.srRun };
    says("Preparing the replay.");
    // Gradio hears no second press while it waits for an answer, and after a request that was lost it does
    document.querySelector("#sr-detail-load button, button#sr-detail-load")?.click();
    setTimeout(() => {
      if (wanted !== mine) return;
      wanted = null;
      if (root()?.dataset.srRun === mine.run) says("The replay has not come. Press again to ask for it once more.");
    }, PATIENCE_MS);
  };

  document.addEventListener("click", (event) => {
    const copy = event.target.closest?.("[data-sr-copy-prompt]");
    if (copy) return copied(copy);
    const button = event.target.closest?.("[data-sr-replay]");
    if (!button || button.disabled) return;
    if (button.dataset.srReplay !== "speed") return want(button.dataset.srReplay);
    if (playing) playing = { since: performance.now(), from: now ?? 0 };
    speed = Number(button.dataset.srSpeed);
    controls();
  });
  document.addEventListener("input", (event) => {
    if (event.target.matches?.(".sr-seek")) want("seek", Number(event.target.value));
  });
  document.addEventListener("keydown", (event) => {
    if (!event.target.closest?.(".sr-player") || event.ctrlKey || event.metaKey || event.altKey) return;
    const on = event.target.tagName === "BUTTON";
    const name = { ArrowRight: "step", ArrowLeft: "back", Home: "start", End: "end", " ": on ? null : "play" }[event.key];
    if (!name) return;
    event.preventDefault();
    want(name);
  });
  const copied = async (button) => {
    const text = button.parentElement.querySelector("pre")?.textContent ?? "";
    const done = await navigator.clipboard?.writeText(text).then(() => true, () => false);
    button.textContent = done ? "Copied" : "Select and copy";
    if (!done) getSelection().selectAllChildren(button.parentElement.querySelector("pre"));
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  };

  new MutationObserver(() => {
    const place = root();
    const told = document.querySelector("#sr-detail-film .sr-film");
    if (place !== stood) { // the tab was left and entered again, or another run came
      stood = place;
      playing = now = null;
      if (film) film.at = -1;
    }
    if (place && place.dataset.srRun !== film?.run && film && !told) {
      playing = film = now = null;
      controls();
    }
    if (wanted && document.querySelector("#sr-detail-film .sr-notice")) {
      wanted = null;
      says("This replay could not be prepared.");
    }
    if (!place || !told || told.dataset.srRun !== place.dataset.srRun || told.dataset.srKey === film?.key) return;
    film = { ...JSON.parse(told.textContent), key: told.dataset.srKey, run: told.dataset.srRun, at: -1, lines: { status: [], answer: [], board: [] } };
    const then = wanted;
    wanted = null;
    if (then && then.run === film.run) doing[then.name](then.value);
  }).observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-sr-run", "data-sr-key"] });
}
