() => {
  // The presenter view: the Ask tab in large type and nothing to press. It hides and enlarges by CSS alone
  // (assets/tour.css), so whatever run the tab follows goes on being shown.
  const button = document.getElementById("sr-present");
  const leave = document.getElementById("sr-present-leave");
  const stage = document.getElementById("sr-tour-stage");
  const heading = document.getElementById("sr-present-question");
  if (!button || !leave || !heading) return;
  const root = document.documentElement;
  const on = () => root.dataset.srPresenting !== undefined;

  // The question of the run that is shown; what is typed afterwards is none yet.
  let run = "";
  const look = () => {
    const id = document.querySelector("#sr-run-id textarea, #sr-run-id input")?.value || "";
    const text = document.querySelector("#sr-question textarea")?.value.trim() || "";
    if (id === run && (heading.textContent || !text)) return;
    if (id) heading.textContent = text;
    run = id;
  };
  const shown = document.getElementById("sr-answer");
  if (shown) new MutationObserver(look).observe(shown, { subtree: true, childList: true, characterData: true });

  // Sizes are in pixels everywhere, so a projector is told once how much larger all of them are.
  const fit = () => root.style.setProperty("--sr-zoom", Math.min(2, Math.max(1.1, innerWidth / 1100)).toFixed(2));
  addEventListener("resize", fit);
  fit();

  const set = (wanted) => {
    if (wanted === on()) return;
    const ask = [...document.querySelectorAll('#sr-tabs > .tab-wrapper [role="tab"]')].find((tab) => tab.textContent.trim() === "Ask");
    if (wanted && ask?.getAttribute("aria-selected") !== "true") ask?.click();
    look();
    wanted ? (root.dataset.srPresenting = "") : delete root.dataset.srPresenting;
    wanted ? (stage.parentElement.dataset.srPresented = "") : delete stage.parentElement.dataset.srPresented;
    leave.hidden = heading.hidden = !wanted;
    button.setAttribute("aria-pressed", String(wanted));
    const url = new URL(location);
    wanted ? url.searchParams.set("present", "1") : url.searchParams.delete("present");
    history.replaceState(null, "", url);
    scrollTo({ top: 0, behavior: "instant" });
    (wanted ? leave : button).focus({ preventScroll: true });
  };
  button.addEventListener("click", () => set(true));
  leave.addEventListener("click", () => set(false));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && on() && !document.querySelector("dialog[open], :popover-open")) set(false);
  });
  if (new URLSearchParams(location.search).get("present") === "1") set(true);
}
