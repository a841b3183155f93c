() => {
  // The Ask tab in the browser: exact values of tokens, evidence that answers point at, runs shown again, a lost run found again.
  const within = () => document.querySelector(".gradio-container .contain") ?? document.body;

  // One tip for everything that says more when it is hovered over or focused.
  const tip = document.createElement("div");
  tip.id = "sr-tip";
  tip.className = "sr sr-tip";
  tip.setAttribute("role", "tooltip");
  tip.popover = "manual";
  let about = null;
  const hide = () => {
    if (!about) return;
    if (about.dataset.srTitle) about.title = about.dataset.srTitle;
    delete about.dataset.srTitle;
    about.removeAttribute("aria-describedby");
    for (const one of document.querySelectorAll(".sr-pointed"))
      if (!one.closest(".sr-panel:popover-open")) one.classList.remove("sr-pointed");
    about = null;
    tip.hidePopover();
  };
  const tell = (target, text) => {
    hide();
    about = target;
    tip.textContent = text;
    if (!tip.isConnected) within().append(tip);
    // A panel or the viewer that opens or closes moves the focus while it does so, and nothing else may open then.
    requestAnimationFrame(() => {
      if (about !== target || !tip.isConnected) return;
      if (!tip.matches(":popover-open")) tip.showPopover();
      place(target);
    });
  };
  const place = (target) => {
    const at = target.getClientRects()[0] ?? target.getBoundingClientRect();
    const above = at.top - tip.offsetHeight - 6;
    tip.style.left = `${Math.max(8, Math.min(at.left, document.documentElement.clientWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${above >= 4 ? above : at.bottom + 6}px`;
  };
  const tellToken = (token) => {
    const text = token.title || token.dataset.srTitle;
    tell(token, text);
    token.dataset.srTitle = text; // the browser's own tip would stand over ours
    token.removeAttribute("title");
  };

  // Evidence: the marks in the panel that a citation, a source or a sentence of a rationale stands for.
  const marksOf = (one) => {
    if (one.dataset.srEvidence)
      return one.dataset.srEvidence.split(" ").map((id) => document.getElementById(id)).filter((mark) => mark);
    const panel = document.getElementById(one.getAttribute("popovertarget"));
    return [...(panel?.querySelectorAll(".sr-passage mark") ?? [])];
  };
  const point = (one) => {
    const marks = marksOf(one);
    const panel = marks[0]?.closest(".sr-panel");
    if (!panel) return;
    const number = panel.querySelector(".sr-panel-head b").textContent;
    tell(one, `${number}: “${marks[0].textContent.trim()}”`);
    one.setAttribute("aria-describedby", tip.id);
    for (const mark of marks) {
      mark.classList.add("sr-pointed");
      const id = CSS.escape(mark.closest(".sr-panel").id);
      for (const chip of document.querySelectorAll(`.sr-chip[popovertarget="${id}"]`)) chip.classList.add("sr-pointed");
    }
  };
  const POINTS = ".sr-said, .sr-cite, .sr-source";
  const about_ = (target) => {
    const one = target.closest?.(`.sr-token, ${POINTS}`);
    if (!one || one === about) return;
    one.matches(".sr-token") ? tellToken(one) : point(one);
  };
  document.addEventListener("pointerover", (event) => about_(event.target));
  document.addEventListener("focusin", (event) => about_(event.target));
  document.addEventListener("pointerout", (event) => {
    if (about && !about.contains(event.relatedTarget) && about !== document.activeElement) hide();
  });
  document.addEventListener("focusout", (event) => { if (event.target === about) hide(); });
  document.addEventListener("scroll", () => {
    const at = about?.getBoundingClientRect();
    if (at) at.bottom > 0 && at.top < innerHeight ? place(about) : hide();
  }, true);

  const reveal = (panel) => {
    const mark = panel.querySelector("mark.sr-pointed") ?? panel.querySelector(".sr-passage mark");
    if (mark) panel.scrollTop += mark.getBoundingClientRect().top - panel.getBoundingClientRect().top - panel.clientHeight / 3;
  };
  // The browser gives the focus back to what opened a panel, unless that lay in another panel.
  const openers = new Map(); // by the id of the panel
  document.addEventListener("toggle", (event) => {
    if (!event.target.matches?.(".sr-panel")) return;
    if (event.newState === "open") return reveal(event.target);
    for (const mark of event.target.querySelectorAll(".sr-pointed")) mark.classList.remove("sr-pointed");
    const opener = openers.get(event.target.id);
    const held = document.activeElement;
    if ((held === document.body || event.target.contains(held)) && opener?.isConnected) opener.focus({ preventScroll: true });
  }, true);

  // Messages to the server; the same text twice would be no news to Gradio.
  let turn = 0;
  const put = (text) => {
    const box = document.querySelector("#sr-show textarea, #sr-show input");
    if (!box) return;
    box.value = `${text} ${++turn}`;
    box.dispatchEvent(new Event("input", { bubbles: true }));
    box.dispatchEvent(new KeyboardEvent("keypress", { bubbles: true, key: " " }));
  };
  const type = (text) => {
    const box = document.querySelector("#sr-question textarea");
    box.value = text;
    box.dispatchEvent(new Event("input", { bubbles: true }));
    box.focus();
    box.scrollIntoView({ block: "nearest" });
  };
  // A next question that is being typed survives a reload, which Gradio does by itself after a lost connection.
  const address = () => new URL(location).searchParams.get("run") ?? "";
  const isQuestion = (target) => target.matches?.("#sr-question textarea");
  document.addEventListener("input", (event) => {
    if (!isQuestion(event.target) || !event.isTrusted) return;
    try { sessionStorage.setItem("sr-typed", JSON.stringify({ run: address(), text: event.target.value })); } catch { }
  });
  try {
    const typed = JSON.parse(sessionStorage.getItem("sr-typed"));
    const box = document.querySelector("#sr-question textarea");
    if (typed?.text && typed.run === address() && !box.value) {
      box.value = typed.text;
      box.dispatchEvent(new Event("input", { bubbles: true }));
    }
  } catch { }
  document.addEventListener("click", (event) => {
    const said = event.target.closest?.(".sr-said");
    if (said) {
      event.preventDefault();
      const marks = marksOf(said);
      hide();
      if (!marks.length || !marks[0].closest(".sr-panel").parentElement.checkVisibility()) return;
      for (const mark of marks) mark.classList.add("sr-pointed");
      marks[0].closest(".sr-panel").showPopover({ source: said });
      return;
    }
    const button = event.target.closest?.("button");
    if (!button) return;
    if (button.matches(POINTS)) hide();
    if (button.popoverTargetElement && button.popoverTargetAction !== "hide") openers.set(button.popoverTargetElement.id, button);
    if (button.dataset.srShow !== undefined) put(`${button.dataset.srShow} show`);
    if (button.dataset.srQuestion !== undefined) type(button.dataset.srQuestion);
    if (button.dataset.srAction === "answer-comment")
      button.dataset.srValue = button.closest(".sr-comment").querySelector("input").value;
  }, true); // before the listener that sends what a button is about
  document.addEventListener("keydown", (event) => {
    const target = event.target;
    if (event.key === "Escape") hide();
    if (event.key === "Enter" && target.dataset?.srComment !== undefined)
      target.closest(".sr-comment").querySelector("button").click();
    if (!target.matches?.(".sr-token")) return;
    const tokens = [...target.closest("[data-sr-tokens]").children];
    const at = tokens.indexOf(target);
    const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: tokens.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = tokens[Math.max(0, Math.min(to, tokens.length - 1))];
    target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });

  // A run goes on without us: when nothing has come of it for a while, the connection is gone, and it is followed anew.
  const QUIET_MS = 6000;
  const MOST_MS = 60000;
  let heard = performance.now();
  let patience = QUIET_MS;
  const answer = document.getElementById("sr-answer");
  new MutationObserver(() => {
    heard = performance.now();
    patience = QUIET_MS;
  }).observe(answer, { subtree: true, childList: true, characterData: true });
  setInterval(async () => {
    const run = address();
    const running = run && document.querySelector("#sr-answer .sr-look-running");
    if (!running || performance.now() - heard < patience) return;
    heard = performance.now();
    patience = Math.min(2 * patience, MOST_MS);
    try {
      if (!(await fetch(`${location.pathname.replace(/\/?$/, "/")}health`)).ok) return;
    } catch {
      return; // the server is not there; later, perhaps
    }
    put(`${run} again`);
  }, 1000);
}
