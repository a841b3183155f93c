() => {
  // The Traces tab: ticks, the search form, links, times. Listeners are delegated, as Gradio patches HTML by place.
  const tell = (id, text) => {
    const box = document.querySelector(`#${id} textarea, #${id} input`);
    if (!box || box.value === text) return;
    box.value = text;
    box.dispatchEvent(new Event("input", { bubbles: true }));
    box.dispatchEvent(new KeyboardEvent("keypress", { bubbles: true, key: " " })); // when Gradio says "input"
  };
  const runs = (count) => `${count} run${count === 1 ? "" : "s"}`;
  const set = (element, name, value) => { if (element[name] !== value) element[name] = value; };

  // Ticked runs by their ids, over several pages of the list; what is gone from the list of a search stays ticked.
  const ticked = new Set();
  let forgotten = "";
  const tick = () => {
    const turn = document.querySelector("[data-sr-forget]")?.dataset.srForget || ""; // what was ticked is deleted
    if (turn && turn !== forgotten) ticked.clear();
    forgotten = turn || forgotten;
    const boxes = [...document.querySelectorAll("input[data-sr-run]")];
    for (const box of boxes) set(box, "checked", ticked.has(box.dataset.srRun));
    const all = document.querySelector("input[data-sr-run-all]");
    if (all) {
      set(all, "checked", boxes.length > 0 && boxes.every((box) => box.checked));
      set(all, "indeterminate", !all.checked && boxes.some((box) => box.checked));
    }
    for (const button of document.querySelectorAll("[data-sr-runs]")) {
      const compares = button.dataset.srRuns === "compare";
      const text = compares ? "Compare 2 ticked" : `Delete ${ticked.size} ticked`;
      set(button, "hidden", compares ? ticked.size !== 2 : !ticked.size);
      if (button.textContent !== text) button.textContent = text;
      if (compares) continue;
      button.dataset.srConfirm = `Delete ${runs(ticked.size)} with the traces? They cannot be brought back.`;
    }
    tell("sr-traces-ticked", JSON.stringify([...ticked]));
  };
  document.addEventListener("change", (event) => {
    const box = event.target;
    const mark = (one) => box.checked ? ticked.add(one.dataset.srRun) : ticked.delete(one.dataset.srRun);
    if (box.dataset?.srRun !== undefined) mark(box);
    else if (box.dataset?.srRunAll !== undefined) document.querySelectorAll("input[data-sr-run]").forEach(mark);
    else return;
    tick();
  });

  // The search: its form is never sent anew. Days are the visitor's own, instants are told.
  const form = () => document.getElementById("sr-traces-filter");
  const instant = (day, time) => {
    const at = day && new Date(`${day}T${time}`);
    return at && !isNaN(at) ? at.toISOString() : "";
  };
  const search = () => {
    const wanted = Object.fromEntries(new FormData(form()));
    wanted.since = instant(wanted.since, "00:00:00.000");
    wanted.until = instant(wanted.until, "23:59:59.999");
    ticked.clear(); // what is not seen must not be deleted
    tick();
    tell("sr-traces-wanted", Object.values(wanted).some(Boolean) ? JSON.stringify(wanted) : "");
  };
  let waiting = 0;
  document.addEventListener("input", (event) => {
    if (event.target.form?.id !== "sr-traces-filter") return;
    clearTimeout(waiting);
    waiting = setTimeout(search, event.target.type === "search" ? 250 : 0);
  });
  document.addEventListener("submit", (event) => {
    if (event.target.id !== "sr-traces-filter") return;
    event.preventDefault();
    clearTimeout(waiting);
    search();
  });

  const address = (link) => new URL(link.getAttribute("value"), window.location.origin + window.location.pathname).href;
  const copied = async (button) => {
    const link = button.closest(".sr-share").querySelector("[data-sr-link]");
    try {
      await navigator.clipboard.writeText(link.value);
    } catch { // a page without https may not write to the clipboard by itself
      link.select();
      document.execCommand("copy");
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy the link"; }, 2000);
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("button");
    if (!button) return;
    if (button.dataset.srUnfilter !== undefined) {
      form().reset();
      search();
      form().querySelector("input").focus();
    } else if (button.dataset.srCopy !== undefined) copied(button);
  });
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.defaultPrevented) return;
    const card = event.target.closest?.(".sr-trace-head, .sr-diff");
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
    if (!card || typing || document.querySelector("dialog[open], :popover-open")) return;
    const action = { Escape: "runs-back", ArrowLeft: "run-newer", ArrowRight: "run-older" }[event.key];
    const button = action && card.querySelector(`.sr-trace-nav [data-sr-action="${action}"]`);
    if (!button || button.disabled || (event.target.tabIndex === 0 && event.target.role === "region")) return;
    event.preventDefault();
    button.click();
  });

  // Times are the visitor's own, and the link is the whole address.
  const written = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
  const local = (root) => {
    for (const time of root.querySelectorAll("time[data-sr-time]")) {
      const at = new Date(time.dateTime);
      if (isNaN(at) || time.dateTime.length < 16) continue;
      const text = written.format(at);
      set(time, "title", text);
      if (time.dataset.srTime === "full" && time.textContent !== text) time.textContent = text;
    }
    for (const link of root.querySelectorAll("input[data-sr-link]")) set(link, "value", address(link));
  };
  const watch = (root) => {
    const look = () => { tick(); local(root); };
    new MutationObserver(look).observe(root, {
      subtree: true, childList: true, attributeFilter: ["data-sr-run", "data-sr-forget", "datetime", "value"],
    });
    root.querySelector("#sr-traces-message")?.setAttribute("role", "status");
    look();
  };
  // A tab is made when it is first chosen.
  let watched = null;
  const find = () => {
    const root = document.getElementById("sr-traces");
    if (!root || root === watched) return;
    watched = root;
    watch(root);
  };
  new MutationObserver(find).observe(document.body, { subtree: true, childList: true });
  find();
}
