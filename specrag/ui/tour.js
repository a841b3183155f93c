() => {
  // The walkthrough (specrag/ui/tour.py): plays recorded runs on a stage of its own. It writes to nothing else on
  // the page, so a visitor's own run goes on unseen behind it and is there again when the tour ends.
  const dialog = document.getElementById("sr-tour");
  const stage = document.getElementById("sr-tour-stage");
  const parts = stage?.querySelector(".sr-tour-parts");
  if (!dialog || !parts) return;
  const at = (name) => document.getElementById(`sr-tour-${name}`);
  const choice = dialog.querySelector(".sr-tour-choice");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let script = null;
  let run = 0;
  let step = 0;
  let shown = -1; // frame
  let timer = 0;
  let before = null; // what the page was like

  const load = async () => {
    const folder = location.pathname.replace(/\/?$/, "/");
    const answer = await fetch(`${folder}walkthrough.json`);
    if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
    return answer.json();
  };
  const now = () => script.runs[run].steps[step];
  const frames = () => script.runs[run].frames;

  // What stands in a part at a frame is what the last frame before it that changed the part has put there.
  const draw = (frame) => {
    if (frame === shown) return;
    for (const place of parts.children) {
      const name = place.dataset.srPart;
      let last = frame;
      while (last > 0 && !(name in frames()[last].parts)) last -= 1;
      const html = frames()[last].parts[name] ?? "";
      if (place.srHtml !== html) place.innerHTML = place.srHtml = html;
    }
    shown = frame;
    aim();
  };
  const play = (from, to) => {
    clearTimeout(timer);
    draw(still.matches ? to : from);
    const began = performance.now();
    const zero = frames()[from].at;
    const go = () => {
      const clock = zero + (performance.now() - began) * script.speed;
      let frame = Math.max(from, shown);
      while (frame < to && frames()[frame + 1].at <= clock) frame += 1;
      draw(frame);
      if (frame < to) timer = setTimeout(go, Math.max(0, (frames()[frame + 1].at - clock) / script.speed));
      else reveal();
    };
    if (!still.matches) go();
  };

  // The light falls on everything that the step is about; a shadow as large as the page leaves the rest dim.
  const area = () => {
    const boxes = [...parts.querySelectorAll(now().spot)].map((one) => one.getBoundingClientRect());
    const seen = boxes.filter((box) => box.width && box.height);
    if (!seen.length) return null;
    const left = Math.min(...seen.map((box) => box.left));
    const top = Math.min(...seen.map((box) => box.top));
    const right = Math.max(...seen.map((box) => box.right));
    return { left, top, width: right - left, height: Math.max(...seen.map((box) => box.bottom)) - top };
  };
  const aim = () => {
    if (!dialog.open || !script) return;
    const spot = area();
    light.hidden = !spot;
    if (!spot) return;
    const margin = 6;
    for (const [side, value] of Object.entries(spot))
      light.style[side] = `${value + (side === "left" || side === "top" ? -margin : 2 * margin)}px`;
  };
  const reveal = () => {
    const spot = area();
    if (!spot) return;
    const room = dialog.getBoundingClientRect().top - 12;
    const wanted = spot.height < room ? (room - spot.height) / 2 : 14;
    window.scrollBy({ top: spot.top - wanted, behavior: still.matches ? "auto" : "smooth" });
    aim();
  };
  const light = at("light");
  addEventListener("scroll", aim, { capture: true, passive: true });
  addEventListener("resize", aim);

  const write = (title, sentences) => {
    at("title").textContent = title;
    // the title has the focus already when an arrow key turns a step, so its text says which one it is
    const named = document.createElement("span");
    named.className = "sr-hidden";
    named.textContent = script ? `Step ${step + 1} of ${script.runs[run].steps.length}: ${title}.` : title;
    at("text").replaceChildren(named, ...sentences.map((text) => {
      const line = document.createElement("p");
      line.textContent = text;
      return line;
    }));
    at("text").scrollTop = 0;
    at("text").tabIndex = at("text").scrollHeight > at("text").clientHeight ? 0 : -1; // to be scrolled by keys
  };
  const show = (forward) => {
    const { title, text, from, to } = now();
    at("number").textContent = step + 1;
    [...dialog.querySelectorAll(".sr-tour-dots li")].forEach((dot, place) => dot.classList.toggle("sr-on", place <= step));
    write(title, text);
    choice.hidden = step !== 0;
    at("back").disabled = step === 0;
    at("again").hidden = still.matches || frames()[to].at - frames()[from].at < 1000;
    at("next").textContent = step === script.runs[run].steps.length - 1 ? "Done" : "Next";
    at("title").focus();
    forward ? play(from, to) : play(to, to);
    reveal();
  };
  const go = (by) => {
    if (!script) return;
    const last = script.runs[run].steps.length - 1;
    if (step + by > last) return dialog.close();
    if (step + by < 0) return;
    step += by;
    show(by > 0);
  };
  const choose = (chosen) => {
    run = chosen;
    shown = -1;
    [...choice.children].forEach((button, place) => button.setAttribute("aria-pressed", String(place === run)));
    show(true);
  };
  const offer = () => choice.replaceChildren(...script.runs.map(({ question }, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sr-button";
    button.textContent = question;
    button.addEventListener("click", () => choose(place));
    return button;
  }));

  const tabs = () => [...document.querySelectorAll('#sr-tabs > .tab-wrapper [role="tab"]')];
  const open = async (opener) => {
    if (dialog.open) return;
    const tab = tabs().find((one) => one.getAttribute("aria-selected") === "true");
    before = { opener, tab, y: scrollY };
    const ask = tabs().find((one) => one.textContent.trim() === "Ask");
    if (ask && ask !== tab) ask.click();
    stage.parentElement.dataset.srTouring = "";
    parts.hidden = false;
    dialog.showModal();
    step = 0;
    if (!script) write("The recording is loading", []);
    try {
      script ??= await load();
    } catch (error) {
      write("The recording could not be loaded", [`${error.message}. Reload the page and try again.`]);
      at("next").disabled = at("back").disabled = true;
      return;
    }
    if (!dialog.open) return; // ended while it was loading
    at("next").disabled = false;
    offer();
    choose(0);
  };
  dialog.addEventListener("close", () => {
    clearTimeout(timer);
    delete stage.parentElement.dataset.srTouring;
    light.hidden = parts.hidden = true;
    for (const place of parts.children) place.innerHTML = place.srHtml = "";
    shown = -1;
    const { opener, tab, y } = before;
    if (tab?.isConnected && tab.getAttribute("aria-selected") !== "true") tab.click();
    requestAnimationFrame(() => {
      scrollTo({ top: y, behavior: "instant" });
      (opener?.isConnected && opener.checkVisibility() ? opener : at("open")).focus({ preventScroll: true });
    });
  });
  dialog.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const by = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1 }[event.key];
    if (by) {
      event.preventDefault();
      return go(by);
    }
    if (event.key === "Enter" && event.target === at("title")) return go(1);
    if (event.key !== "Tab") return;
    const stops = [...dialog.querySelectorAll('[tabindex="0"], button')].filter((one) => !one.disabled && one.checkVisibility());
    const edge = event.shiftKey ? stops[0] : stops.at(-1);
    if (document.activeElement !== edge && !(event.shiftKey && document.activeElement === at("title"))) return;
    event.preventDefault();
    (event.shiftKey ? stops.at(-1) : stops[0]).focus();
  });
  at("next").addEventListener("click", () => go(1));
  at("back").addEventListener("click", () => go(-1));
  at("again").addEventListener("click", () => play(now().from, now().to));
  at("end").addEventListener("click", () => dialog.close());
  document.addEventListener("click", (event) => {
    const opener = event.target.closest?.("button[data-sr-tour]");
    if (opener) open(opener);
  });
  if (new URLSearchParams(location.search).has("tour")) open(at("open"));
}
