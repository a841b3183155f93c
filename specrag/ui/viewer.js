() => {
  // The sheet that shows documents (templates/viewer.html): opening, turning, focus. What it shows comes from the server.
  const place = document.getElementById("sr-viewer");
  const sheet = () => document.getElementById("sr-viewer-sheet");
  if (!place || !sheet()) return;
  const TURNS = ["leaf-back", "leaf-on", "leaf-to", "leaf-passage", "leaf-earlier", "leaf-later"];
  const openers = new Map(); // of quick looks, by their id: where the focus goes back to
  let opener = null;
  let key = sheet().dataset.srKey;
  let aim = null; // the part that was asked for and is not there yet: two quick presses turn two pages
  let typed = null; // in the field for the number, and not gone to yet: whatever comes meanwhile must not take it away

  const field = () => place.querySelector("[data-sr-leaf]");
  const wait = (kind) => { place.dataset.srWaiting = kind; };
  const back = () => {
    const same = opener && document.querySelectorAll(`[data-sr-id="${CSS.escape(opener.dataset.srId || "")}"]`);
    const near = opener?.isConnected && opener.checkVisibility() ? opener
      : [...(same || [])].find((one) => one.checkVisibility() && !place.contains(one));
    near?.focus();
  };
  // First of all listeners: a button that opens the sheet is a quick look where there is no script.
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("button");
    if (!button || button.disabled) return;
    if (button.dataset.srAction === "open") {
      event.preventDefault();
      const look = button.closest("[popover]");
      opener = (look && openers.get(look.id)) || button;
      aim = typed = null;
      wait("open");
      if (!sheet().matches(":popover-open")) sheet().showPopover();
      sheet().focus();
    } else if (button.popoverTargetElement && button.popoverTargetAction !== "hide")
      openers.set(button.popoverTargetElement.id, button);
    else if (TURNS.includes(button.dataset.srAction)) {
      const step = { "leaf-back": -1, "leaf-on": 1 }[button.dataset.srAction];
      if (step && aim !== null) button.dataset.srValue = Math.min(Math.max(0, aim + step), field().max - 1);
      aim = parseInt(button.dataset.srValue, 10);
      typed = null;
      wait("turn");
    }
  }, true);
  document.addEventListener("toggle", (event) => {
    if (event.target !== sheet() || event.newState !== "closed") return;
    typed = null;
    back();
  }, true);

  // What is marked comes into view, whenever another page does.
  const body = () => place.querySelector(".sr-sheet-body");
  const reveal = () => {
    const marks = [...place.querySelectorAll(".sr-box-evidence, .sr-box, .sr-mark-evidence, .sr-leaf-text .sr-mark-passage")]
      .filter((mark) => mark.checkVisibility() && !mark.closest(".sr-sheet-legend"));
    const mark = marks.find((one) => /evidence/.test(one.className)) || marks[0];
    const area = body().getBoundingClientRect();
    const at = mark?.getBoundingClientRect();
    body().scrollTop = at ? body().scrollTop + at.top - area.top - area.height / 4 : 0;
    if (at && body().scrollWidth > body().clientWidth)
      body().scrollLeft += at.left - area.left - Math.max(16, (area.width - at.width) / 2);
  };
  new MutationObserver(() => {
    const now = sheet()?.dataset.srKey;
    if (now === key) return;
    key = now;
    if (typed !== null) field().value = typed;
    const draw = place.querySelector('[data-sr-action="leaf-draw"]');
    // A page that was only passed by is not drawn: its picture would come after the page that is meant, and in its place.
    if (aim !== null && parseInt(draw.dataset.srValue, 10) !== aim && Number(field().max) > 0) return;
    delete place.dataset.srWaiting;
    aim = null;
    draw.click(); // it is off where there is nothing to draw
    const image = place.querySelector(".sr-leaf img");
    if (image && !image.complete) image.addEventListener("load", reveal, { once: true });
    requestAnimationFrame(reveal);
    // A button that was pressed may be off or gone on the new page.
    const held = document.activeElement;
    if (sheet().matches(":popover-open") && (!place.contains(held) || held.disabled || !held.checkVisibility()))
      (typed === null ? body() : field()).focus();
  }).observe(place, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-sr-key"] });

  const goTo = () => {
    const page = Math.min(Math.max(1, Math.round(Number(field().value)) || 1), Number(field().max));
    field().value = page;
    const go = place.querySelector('[data-sr-action="leaf-to"]');
    go.dataset.srValue = page - 1;
    go.click();
  };
  place.addEventListener("input", (event) => { if (event.target === field()) typed = field().value; });
  place.addEventListener("change", (event) => {
    if (event.target.type === "radio") return requestAnimationFrame(reveal);
    if (event.target === field() && typed !== null) goTo();
  });
  place.addEventListener("keydown", (event) => {
    const typing = event.target.tagName === "INPUT";
    // A value that was put back is no change to the browser.
    if (event.key === "Enter" && event.target === field() && typed !== null) return goTo();
    if (event.key === "Tab") {
      const stops = [...sheet().querySelectorAll('button, input, a[href], [tabindex="0"]')]
        .filter((one) => !one.disabled && one.tabIndex >= 0 && one.checkVisibility()
          && (one.type !== "radio" || one.checked));
      const edge = event.shiftKey ? stops[0] : stops.at(-1);
      if (document.activeElement !== edge && document.activeElement !== sheet()) return;
      if (document.activeElement === sheet() && !event.shiftKey) return;
      event.preventDefault();
      (event.shiftKey ? stops.at(-1) : stops[0]).focus();
    } else if (!typing && !event.altKey && !event.ctrlKey && !event.metaKey) {
      const turn = { ArrowLeft: "leaf-back", ArrowRight: "leaf-on" }[event.key];
      if (!turn || body().scrollWidth > body().clientWidth + 1) return;
      event.preventDefault();
      place.querySelector(`[data-sr-action="${turn}"]`).click();
    }
  });
}
