() => {
  // One polite status line for screen readers: the element that stays, not its content, which is replaced.
  for (const id of ["sr-status", "sr-documents-message", "sr-evaluate-status"]) {
    const line = document.getElementById(id);
    line?.setAttribute("role", "status");
    line?.setAttribute("aria-live", "polite");
  }
  // Gradio's accordions do not say whether they are open.
  const tell = () => document.querySelectorAll("button.label-wrap").forEach((button) =>
    button.setAttribute("aria-expanded", String(button.classList.contains("open"))));

  // What is done inside our own HTML goes to the server through a hidden box; see specrag/ui/acts.py.
  const boxOf = (action) => {
    const heard = (name) => document.querySelector(`.sr-acts-${CSS.escape(name)} :is(textarea, input)`);
    for (let end = action.length; end > 0; end = action.lastIndexOf("-", end - 1)) {
      const box = heard(action.slice(0, end));
      if (box) return box;
    }
    return heard("rest");
  };
  const send = (action, id, value = "") => {
    const box = boxOf(action);
    if (!box) return;
    const turn = `${performance.timeOrigin}-${performance.now()}-${Math.random()}`; // Gradio may say one thing twice
    box.value = JSON.stringify({ action, id, value, turn });
    box.dispatchEvent(new Event("input", { bubbles: true }));
    box.dispatchEvent(new KeyboardEvent("keypress", { bubbles: true, key: " " })); // when Gradio says "input"
  };
  // Ticked boxes by the id of what they stand for: the server sends lists anew, and Gradio patches them by place.
  // The same file has the same id in every collection, so ticks end with the collection that they were made in.
  const ticked = new Set();
  const shelf = () => document.querySelector('#sr-collection-card [data-sr-action="export"]')?.dataset.srId ?? "";
  let tickedIn = "";
  const tick = () => {
    const now = shelf();
    if (now && now !== tickedIn) {
      ticked.clear();
      tickedIn = now;
    }
    const boxes = [...document.querySelectorAll("input[data-sr-tick]")];
    for (const box of boxes) box.checked = ticked.has(box.dataset.srTick);
    const all = document.querySelector("input[data-sr-tick-all]");
    if (all) {
      all.checked = boxes.length > 0 && boxes.every((box) => box.checked);
      all.indeterminate = !all.checked && boxes.some((box) => box.checked);
    }
    const known = new Set(boxes.map((box) => box.dataset.srTick));
    const chosen = [...ticked].filter((id) => known.has(id));
    for (const button of document.querySelectorAll("[data-sr-ticked]")) {
      const text = chosen.length ? `${button.dataset.srTicked} ${chosen.length} ticked` : button.dataset.srTicked;
      if (button.textContent !== text) button.textContent = text;
      if (button.hidden !== !chosen.length) button.hidden = !chosen.length;
    }
    return chosen;
  };
  document.addEventListener("change", (event) => {
    const box = event.target;
    if (box.dataset?.srTick !== undefined) box.checked ? ticked.add(box.dataset.srTick) : ticked.delete(box.dataset.srTick);
    else if (box.dataset?.srTickAll !== undefined)
      for (const one of document.querySelectorAll("input[data-sr-tick]"))
        box.checked ? ticked.add(one.dataset.srTick) : ticked.delete(one.dataset.srTick);
    else return;
    tick();
  });
  // Ask before something is done that cannot be undone, and for a password; the browser's own dialogs block the page.
  // "close" comes a moment after the dialog has closed, which may be when the next question is asked already.
  let asking = null;
  const ask = (button, count) => new Promise((resolve) => {
    asking?.(null);
    const dialog = document.getElementById("sr-dialog");
    const [no, yes] = dialog.querySelectorAll("button");
    const field = dialog.querySelector("label");
    const input = field.querySelector("input");
    dialog.querySelector("p").textContent = (button.dataset.srConfirm || "").replaceAll("{n}", count);
    yes.textContent = button.dataset.srYes || button.textContent.trim();
    yes.classList.toggle("sr-button-bad", button.dataset.srBad !== undefined);
    field.hidden = button.dataset.srPassword === undefined;
    input.required = !field.hidden;
    input.value = "";
    dialog.returnValue = "no";
    const closed = () => { if (!dialog.open) asking?.(dialog.returnValue === "yes" ? input.value : null); };
    asking = (typed) => {
      dialog.removeEventListener("close", closed);
      asking = null;
      input.value = "";
      resolve(typed);
    };
    dialog.addEventListener("close", closed);
    dialog.showModal();
    (field.hidden ? no : input).focus();
  });
  document.addEventListener("click", async (event) => {
    const opener = event.target.closest?.("[data-sr-clicks]");
    if (opener) document.querySelector(opener.dataset.srClicks)?.click();
    const button = event.target.closest?.("[data-sr-action]");
    if (!button || button.disabled) return;
    const { srAction: action, srId: id = "" } = button.dataset;
    const chosen = button.dataset.srTicked === undefined ? null : tick();
    const of = chosen ? tickedIn : id; // the list may be another one by the time that the question is answered
    let value = button.dataset.srValue || "";
    if (button.dataset.srConfirm !== undefined) {
      const typed = await ask(button, chosen?.length ?? 1);
      if (typed === null) return;
      value = typed || value;
    }
    if (button.dataset.srBack !== undefined) focused = place(button.dataset.srBack, id);
    send(action, of, chosen ?? value);
  });
  // Enter in the password field means yes, although No comes first in the order of tabs.
  document.addEventListener("keydown", (event) => {
    const dialog = event.target.closest?.("#sr-dialog");
    if (event.key !== "Enter" || !dialog || event.target.tagName !== "INPUT") return;
    event.preventDefault();
    if (event.target.reportValidity()) dialog.close("yes");
  });
  // The focus stays on what it was on when a list changes around it, and goes where an answer wants it to be.
  let focused = null;
  const answered = new Set();
  const place = (action, id) => `[data-sr-action="${CSS.escape(action)}"][data-sr-id="${CSS.escape(id)}"]`;
  const key = (element) => element?.dataset?.srAction
    ? place(element.dataset.srAction, element.dataset.srId || "")
    : element?.dataset?.srTick !== undefined ? `[data-sr-tick="${CSS.escape(element.dataset.srTick)}"]` : null;
  document.addEventListener("focusin", (event) => { focused = key(event.target); });
  document.addEventListener("pointerdown", (event) => { if (!event.target.closest?.("[data-sr-action]")) focused = null; });
  const refocus = () => {
    for (const wants of document.querySelectorAll("[data-sr-focus]")) {
      if (answered.has(wants.dataset.srFocus)) continue;
      answered.add(wants.dataset.srFocus);
      if (wants.checkVisibility()) return wants.focus();
    }
    const now = document.activeElement;
    const lost = !now || now === document.body || key(now) !== null;
    if (!focused || !lost || key(now) === focused) return;
    const seen = (what) => [...document.querySelectorAll(what)].find((one) => one.checkVisibility()); // other tabs have theirs
    const same = seen(focused);
    if (same) same.focus();
    else if (key(now) === null) seen("[data-sr-home]")?.focus();
  };
  new MutationObserver(() => { tell(); tick(); refocus(); })
    .observe(document.body, { subtree: true, childList: true, attributeFilter: ["class", "data-sr-id", "data-sr-tick", "data-sr-focus"] });
  tell();
}
